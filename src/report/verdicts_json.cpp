#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "cpverify/finding.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/verdict.hpp"
#include "report/json_text.hpp"
#include "report/report.hpp"
#include "report/rule_text.hpp"

namespace cpverify::report {
namespace {

using Json = nlohmann::ordered_json;

Json to_json(const Finding& finding) {
  Json json;
  json["check"] = text(name(finding.check));
  json["kind"] = finding.kind;
  json["strategy"] = text(name(finding.strategy));
  json["mode"] = text(name(finding.mode));
  json["step"] = finding.step;
  if (finding.rank) json["rank"] = finding.rank->value();
  if (!finding.request.empty()) json["request"] = finding.request;
  if (finding.token) json["token"] = *finding.token;
  if (finding.key) json["key"] = *finding.key;
  if (finding.head) json["head"] = *finding.head;
  if (finding.page) json["page"] = *finding.page;
  if (finding.slot) json["slot"] = *finding.slot;
  if (!finding.buffer.empty()) json["buffer"] = finding.buffer;
  if (finding.element) json["element"] = *finding.element;
  if (!finding.kernel.empty()) json["kernel"] = finding.kernel;
  if (!finding.source.empty()) json["source"] = finding.source;
  json["count"] = finding.count;
  json["detail"] = finding.detail;
  return json;
}

Json to_json(const std::vector<Finding>& findings) {
  Json json = Json::array();
  for (const Finding& finding : findings) json.push_back(to_json(finding));
  return json;
}

Json to_json(const CheckResult& result) {
  Json json;
  json["check"] = text(name(result.check));
  json["outcome"] = text(name(result.outcome));
  json["reason"] = result.reason;
  json["compared"] = result.compared;
  json["worst_ratio"] = rounded(result.worst_ratio);
  return json;
}

Json to_json(const TopologySpec& topology) {
  return {{"cp", topology.cp}, {"tp", topology.tp}, {"dcp", topology.dcp}};
}

Json to_json(const CellVerdict& cell) {
  Json json;
  json["strategy"] = text(name(cell.strategy));
  json["mode"] = text(name(cell.mode));
  json["outcome"] = text(name(cell.outcome));
  json["digest"] = cell.digest;
  json["checks"] = Json::array();
  for (const CheckResult& result : cell.checks) json["checks"].push_back(to_json(result));
  json["findings"] = to_json(cell.findings);
  json["broken_rules"] = Json::array();
  for (const BrokenRule& rule : cell.rules) json["broken_rules"].push_back(rule_json(rule));
  return json;
}

/// How many cells of each strategy, topology and mode there are by outcome: what a gate asks first.
Json executed_json(const std::vector<Verdict>& verdicts) {
  using Key = std::tuple<StrategyKind, std::array<std::uint32_t, 3>, DataMode>;
  std::map<Key, std::map<Outcome, std::uint64_t>> counts;
  for (const Verdict& verdict : verdicts) {
    const TopologySpec& world = verdict.topology;
    for (const CellVerdict& cell : verdict.cells) {
      const Key key{cell.strategy, {world.cp, world.tp, world.dcp}, cell.mode};
      ++counts[key][cell.outcome];
    }
  }
  Json json = Json::array();
  for (const auto& entry : counts) {
    const auto& [strategy, world, mode] = entry.first;
    Json cells = Json::object();
    for (const auto& count : entry.second) cells[text(name(count.first))] = count.second;
    json.push_back({{"strategy", text(name(strategy))},
                    {"topology", {{"cp", world[0]}, {"tp", world[1]}, {"dcp", world[2]}}},
                    {"mode", text(name(mode))},
                    {"cells", std::move(cells)}});
  }
  return json;
}

Json to_json(const Verdict& verdict) {
  Json json;
  json["scenario"] = verdict.scenario;
  json["path"] = verdict.path;
  json["schedule"] = verdict.schedule;
  json["mma_accumulation"] = verdict.mma_accumulation;
  json["reduction"] = verdict.reduction;
  json["topology"] = to_json(verdict.topology);
  json["outcome"] = text(name(verdict.outcome));
  json["cells"] = Json::array();
  for (const CellVerdict& cell : verdict.cells) json["cells"].push_back(to_json(cell));
  json["missing_findings"] = verdict.missing_findings;
  json["unexpected_findings"] = to_json(verdict.unexpected_findings);
  json["unexpected_rules"] = verdict.unexpected_rules;
  json["repro"] = verdict.repro;
  return json;
}

}  // namespace

std::string verdicts_json(const std::vector<Verdict>& verdicts) {
  Json json;
  json["schema"] = "cpverify.verdicts";
  json["schema_version"] = 1;
  json["executed"] = executed_json(verdicts);
  json["verdicts"] = Json::array();
  for (const Verdict& verdict : verdicts) json["verdicts"].push_back(to_json(verdict));
  return json_text(json);
}

}  // namespace cpverify::report
