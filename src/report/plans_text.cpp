#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cpverify/dtype.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "report/plan_names.hpp"
#include "report/report.hpp"

namespace cpverify::report {
namespace {

constexpr std::size_t kLineWidth = 100;
/// Values printed of one array; --json has all of them.
constexpr std::size_t kValuesShown = 64;

std::string shape_text(const Buffer& buffer) {
  return fmt::format("{} [{}]", cpverify::name(buffer.dtype), fmt::join(buffer.shape, ", "));
}

/// Values behind a margin, wrapped.
std::string wrapped(const std::vector<std::int64_t>& values, std::size_t margin) {
  std::string text;
  std::size_t column = margin;
  const std::size_t shown = std::min(values.size(), kValuesShown);
  for (std::size_t i = 0; i < shown; ++i) {
    const std::string value = fmt::format("{}", values[i]);
    if (column + value.size() + 1 > kLineWidth) {
      text += '\n' + std::string(margin, ' ');
      column = margin;
    } else if (i > 0) {
      text += ' ';
      ++column;
    }
    text += value;
    column += value.size();
  }
  if (values.size() > shown) text += fmt::format(" ... {} values in all", values.size());
  return text;
}

struct OperationText {
  const RankPlan& rank;

  std::string operator()(const Launch& launch) const {
    return fmt::format("launch {} <<<[{}], [{}]>>>", launch.entry, fmt::join(launch.grid, ", "),
                       fmt::join(launch.block, ", "));
  }
  std::string operator()(const Collective& collective) const {
    std::string peers;
    if (collective.kind == CollectiveKind::send_recv) {
      peers = fmt::format(", to {} and from {} of the group", collective.send_peer,
                          collective.recv_peer);
    }
    return fmt::format("{} {} -> {}, {} {} per rank{}: {}", name(collective.kind),
                       reference_text(rank, collective.send), reference_text(rank, collective.recv),
                       collective.count, cpverify::name(collective.dtype), peers,
                       collective.meaning);
  }
  std::string operator()(const Copy& copy) const {
    return fmt::format("copy {} -> {}, {} bytes", reference_text(rank, copy.source),
                       reference_text(rank, copy.target), copy.bytes);
  }
  std::string operator()(const Fill& fill) const {
    return fmt::format("fill {}, {} words of {:#010x}", reference_text(rank, fill.target),
                       fill.count, fill.pattern);
  }
};

void add_rank(const RankPlan& rank, std::string& text) {
  text += fmt::format("  rank {}: cp {}, tp {}, query heads [{}, {}), kv heads [{}, {})\n",
                      rank.rank.value(), rank.cp_rank, rank.tp_rank, rank.heads_q.first,
                      rank.heads_q.first + rank.heads_q.count, rank.heads_kv.first,
                      rank.heads_kv.first + rank.heads_kv.count);
  std::size_t name_width = 0;
  std::size_t shape_width = 0;
  for (const Buffer& buffer : rank.buffers) {
    name_width = std::max(name_width, buffer.name.size());
    shape_width = std::max(shape_width, shape_text(buffer).size());
  }
  const std::size_t margin = 4 + name_width + 2 + shape_width + 2;
  for (const Buffer& buffer : rank.buffers) {
    const std::string content = buffer.role == BufferRole::metadata
                                    ? wrapped(buffer.values, margin)
                                    : std::string{name(buffer.role)};
    text += fmt::format("    {:<{}}  {:<{}}  {}\n", buffer.name, name_width, shape_text(buffer),
                        shape_width, content);
  }
  for (std::size_t i = 0; i < rank.operations.size(); ++i) {
    const Operation& operation = rank.operations[i];
    text += fmt::format("    {:>2}. {}: {}", i, operation.label,
                        std::visit(OperationText{rank}, operation.body));
    if (operation.stream != 0) text += fmt::format(", on stream {}", operation.stream);
    if (!operation.after.empty())
      text += fmt::format(", after {}", fmt::join(operation.after, " "));
    text += '\n';
  }
}

void add_plan(const Problem& problem, const Plan& plan, std::string& text) {
  text += fmt::format("step {}, strategy {}, CP {}\n", plan.step, cpverify::name(plan.strategy),
                      plan.is_cp_on ? "on" : "off");
  for (const StepRow& row : problem.steps[plan.step].rows) {
    text += fmt::format("  request {}: {}, {} computed, {} scheduled\n",
                        problem.scenario.requests[row.request.value()].id, name(row.state),
                        row.computed, row.scheduled);
  }
  for (const RankPlan& rank : plan.ranks) add_rank(rank, text);
}

}  // namespace

std::string plans_text(const Problem& problem, const std::vector<Plan>& plans) {
  std::string text;
  for (const Plan& plan : plans) add_plan(problem, plan, text);
  return text;
}

}  // namespace cpverify::report
