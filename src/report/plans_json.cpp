#include <cstddef>
#include <cstdint>
#include <string>
#include <type_traits>
#include <variant>
#include <vector>

#include <nlohmann/json.hpp>

#include "cpverify/dtype.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "report/json_text.hpp"
#include "report/plan_names.hpp"
#include "report/report.hpp"

namespace cpverify::report {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const HeadRange& heads) {
  Json json;
  json["first"] = heads.first;
  json["count"] = heads.count;
  return json;
}

/// Values as nested arrays of the buffer's shape, flat when they do not fill it.
Json values_json(const Buffer& buffer) {
  const bool is_matrix = buffer.shape.size() == 2 && buffer.shape[1] > 0 &&
                         buffer.size_elems() == static_cast<std::int64_t>(buffer.values.size());
  if (!is_matrix) return buffer.values;
  Json rows = Json::array();
  const auto width = static_cast<std::ptrdiff_t>(buffer.shape[1]);
  for (auto row = buffer.values.begin(); row != buffer.values.end(); row += width)
    rows.push_back(std::vector<std::int64_t>(row, row + width));
  return rows;
}

Json to_json(const Buffer& buffer) {
  Json json;
  json["name"] = buffer.name;
  json["role"] = text(name(buffer.role));
  json["dtype"] = text(cpverify::name(buffer.dtype));
  json["shape"] = buffer.shape;
  if (buffer.input) {
    json["tensor"] = text(name(buffer.input->tensor));
    json["heads"] = to_json(buffer.input->heads);
  }
  if (buffer.output) {
    json["output"] = text(name(buffer.output->kind));
    json["heads"] = to_json(buffer.output->heads);
    json["row_tokens"] = buffer.output->row_tokens;
  }
  return json;
}

struct OperationWriter {
  const RankPlan& rank;
  Json& json;

  void operator()(const Launch& launch) const {
    json["type"] = "launch";
    json["module"] = launch.module;
    json["entry"] = launch.entry;
    json["grid"] = launch.grid;
    json["block"] = launch.block;
    json["shared_bytes"] = launch.shared_bytes;
    json["arguments"] = Json::array();
    for (const KernelArgument& argument : launch.arguments) {
      const auto add = [this](const auto& value) {
        if constexpr (std::is_same_v<std::decay_t<decltype(value)>, BufferRef>) {
          json["arguments"].push_back(reference_text(rank, value));
        } else {
          json["arguments"].push_back(value);
        }
      };
      std::visit(add, argument);
    }
  }
  void operator()(const Collective& collective) const {
    json["type"] = text(name(collective.kind));
    json["group"] = collective.group;
    json["send"] = reference_text(rank, collective.send);
    json["recv"] = reference_text(rank, collective.recv);
    json["count"] = collective.count;
    json["dtype"] = text(cpverify::name(collective.dtype));
    json["meaning"] = collective.meaning;
    if (collective.kind != CollectiveKind::send_recv) return;
    json["send_peer"] = collective.send_peer;
    json["recv_peer"] = collective.recv_peer;
  }
  void operator()(const Copy& copy) const {
    json["type"] = "copy";
    json["source"] = reference_text(rank, copy.source);
    json["target"] = reference_text(rank, copy.target);
    json["bytes"] = copy.bytes;
  }
  void operator()(const Fill& fill) const {
    json["type"] = "fill";
    json["target"] = reference_text(rank, fill.target);
    json["count"] = fill.count;
    json["pattern"] = fill.pattern;
  }
};

Json to_json(const RankPlan& rank) {
  Json json;
  json["rank"] = rank.rank.value();
  json["cp_rank"] = rank.cp_rank;
  json["tp_rank"] = rank.tp_rank;
  json["heads_q"] = to_json(rank.heads_q);
  json["heads_kv"] = to_json(rank.heads_kv);
  json["metadata"] = Json::object();
  json["buffers"] = Json::array();
  for (const Buffer& buffer : rank.buffers) {
    if (buffer.role == BufferRole::metadata) json["metadata"][buffer.name] = values_json(buffer);
    json["buffers"].push_back(to_json(buffer));
  }
  json["operations"] = Json::array();
  for (const Operation& operation : rank.operations) {
    Json entry;
    entry["label"] = operation.label;
    std::visit(OperationWriter{.rank = rank, .json = entry}, operation.body);
    if (operation.stream != 0) entry["stream"] = operation.stream;
    if (!operation.after.empty()) entry["after"] = operation.after;
    json["operations"].push_back(entry);
  }
  return json;
}

Json to_json(const Problem& problem, const StepRow& row) {
  Json json;
  json["request"] = problem.scenario.requests[row.request.value()].id;
  json["computed"] = row.computed;
  json["scheduled"] = row.scheduled;
  json["state"] = text(name(row.state));
  json["block_table"] = row.block_table;
  json["slots"] = row.slots;
  return json;
}

Json to_json(const Problem& problem, const Plan& plan) {
  Json json;
  json["step"] = plan.step;
  json["strategy"] = text(cpverify::name(plan.strategy));
  json["is_cp_on"] = plan.is_cp_on;
  json["is_bitwise"] = plan.is_bitwise;
  json["numerics"] = {{"p_dtype", text(cpverify::name(plan.numerics.p_dtype))},
                      {"is_tensor_core", plan.numerics.is_tensor_core},
                      {"kv_tile", plan.numerics.kv_tile}};
  json["rows"] = Json::array();
  for (const StepRow& row : problem.steps[plan.step].rows)
    json["rows"].push_back(to_json(problem, row));
  json["groups"] = Json::array();
  for (const Group& group : plan.groups) {
    Json members = Json::array();
    for (const RankId member : group.members) members.push_back(member.value());
    Json entry;
    entry["name"] = group.name;
    entry["members"] = members;
    json["groups"].push_back(entry);
  }
  json["ranks"] = Json::array();
  for (const RankPlan& rank : plan.ranks) json["ranks"].push_back(to_json(rank));
  return json;
}

}  // namespace

std::string plans_json(const Problem& problem, const std::vector<Plan>& plans) {
  Json json;
  json["schema"] = "cpverify.plan";
  json["schema_version"] = 1;
  json["scenario"] = problem.scenario.name;
  json["plans"] = Json::array();
  for (const Plan& plan : plans) json["plans"].push_back(to_json(problem, plan));
  return json_text(json);
}

}  // namespace cpverify::report
