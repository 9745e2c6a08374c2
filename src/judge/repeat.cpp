#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cpverify/dtype.hpp"
#include "cpverify/finding.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "judge/checks.hpp"
#include "judge/finding_log.hpp"
#include "judge/judge.hpp"
#include "judge/output_view.hpp"
#include "run/runner.hpp"

namespace cpverify::judge {
namespace {

/// Bits of a CP strategy against those of strategy single.
class BitwiseComparison {
 public:
  explicit BitwiseComparison(const CellEvidence& evidence)
      : evidence_{evidence}, log_{Check::bitwise, evidence.strategy, evidence.mode} {}

  void compare_step(std::size_t step) {
    const Plan& plan = (*evidence_.plans)[step];
    const StepContext context = step_context(*evidence_.problem, plan.step);
    index_single(step, context);
    for (const OutputView& view :
         output_views(*evidence_.problem, plan, evidence_.run->steps[step], &log_)) {
      for (std::size_t i = 0; i < view.num_cells(); ++i) {
        const OutputView::Cell cell = view.cell(i);
        if (cell.token >= 0) compare_cell(context, view, cell);
      }
    }
  }

  [[nodiscard]] const FindingLog& log() const noexcept { return log_; }
  [[nodiscard]] std::uint64_t compared() const noexcept { return compared_; }

 private:
  [[nodiscard]] std::size_t row(const OutputView::Cell& cell) const noexcept {
    return static_cast<std::size_t>(cell.token) * evidence_.problem->scenario.model.num_heads_q +
           cell.head;
  }

  /// Where strategy single keeps each (token, head), null for what it does not hold.
  void index_single(std::size_t step, const StepContext& context) {
    const std::size_t rows = context.places.size() * evidence_.problem->scenario.model.num_heads_q;
    single_attention_.assign(rows, nullptr);
    single_lse_.assign(rows, nullptr);
    for (const OutputView& view : output_views(*evidence_.problem, (*evidence_.single_plans)[step],
                                               evidence_.single->steps[step], nullptr)) {
      std::vector<const std::byte*>& rows_of_kind =
          view.kind() == OutputKind::lse ? single_lse_ : single_attention_;
      for (std::size_t i = 0; i < view.num_cells(); ++i) {
        const OutputView::Cell cell = view.cell(i);
        if (cell.token >= 0) rows_of_kind[row(cell)] = cell.data;
      }
    }
  }

  void compare_cell(const StepContext& context, const OutputView& view,
                    const OutputView::Cell& cell) {
    const std::byte* single =
        view.kind() == OutputKind::lse ? single_lse_[row(cell)] : single_attention_[row(cell)];
    if (single == nullptr) return;
    compared_ += view.elems_per_head();
    if (std::memcmp(cell.data, single, view.cell_bytes()) == 0) return;
    const DType dtype = view.buffer().dtype;
    const std::size_t size = size_bytes(dtype);
    for (std::uint32_t dim = 0; dim < view.elems_per_head(); ++dim) {
      const std::byte* found = cell.data + dim * size;
      const std::byte* expected = single + dim * size;
      if (std::memcmp(found, expected, size) == 0) continue;
      Finding* finding = note_cell(log_, "bitwise_difference", context, view, cell.at(dim));
      if (finding == nullptr) continue;
      finding->detail = fmt::format("found {:.9g} ({}), single has {:.9g} ({})",
                                    element_value(dtype, found), element_bits(dtype, found),
                                    element_value(dtype, expected), element_bits(dtype, expected));
    }
  }

  const CellEvidence& evidence_;
  FindingLog log_;
  std::vector<const std::byte*> single_attention_;  ///< [T, Hq]
  std::vector<const std::byte*> single_lse_;        ///< [T, Hq]
  std::uint64_t compared_ = 0;
};

/// First element in which two captures of one buffer differ, or -1.
std::int64_t first_difference(const std::vector<std::byte>& a, const std::vector<std::byte>& b,
                              std::size_t elem_bytes) {
  const auto [left, right] = std::ranges::mismatch(a, b);
  if (left == a.end() && right == b.end()) return -1;
  return static_cast<std::int64_t>(static_cast<std::size_t>(left - a.begin()) / elem_bytes);
}

std::size_t elem_bytes_of(const RankPlan& rank, const std::string& buffer) {
  for (const Buffer& candidate : rank.buffers) {
    if (candidate.name == buffer) return std::max<std::size_t>(size_bytes(candidate.dtype), 1);
  }
  return 1;
}

/// All captured buffers of a rank under their names.
std::map<std::string, const std::vector<std::byte>*> buffers(const run::RankCapture& capture) {
  std::map<std::string, const std::vector<std::byte>*> all{{"k_pool", &capture.k_pool},
                                                           {"v_pool", &capture.v_pool}};
  for (const auto& [name, bytes] : capture.outputs) all.emplace(name, &bytes);
  return all;
}

/// Fills in where a second run first differs. False when the captured bytes do not.
bool locate_difference(const CellEvidence& evidence, Finding& finding) {
  const std::size_t steps =
      std::min({evidence.run->steps.size(), evidence.rerun->steps.size(), evidence.plans->size()});
  for (std::size_t step = 0; step < steps; ++step) {
    const Plan& plan = (*evidence.plans)[step];
    const std::vector<run::RankCapture>& first = evidence.run->steps[step].ranks;
    const std::vector<run::RankCapture>& second = evidence.rerun->steps[step].ranks;
    const std::size_t ranks = std::min({first.size(), second.size(), plan.ranks.size()});
    for (std::size_t r = 0; r < ranks; ++r) {
      const auto others = buffers(second[r]);
      for (const auto& [name, bytes] : buffers(first[r])) {
        const auto other = others.find(name);
        if (other == others.end()) continue;
        const std::int64_t element =
            first_difference(*bytes, *other->second, elem_bytes_of(plan.ranks[r], name));
        if (element < 0) continue;
        finding.step = plan.step;
        finding.rank = plan.ranks[r].rank;
        finding.buffer = name;
        finding.element = element;
        return true;
      }
    }
  }
  return false;
}

}  // namespace

CheckReport check_bitwise(const CellEvidence& evidence) {
  if (evidence.strategy == StrategyKind::single) return not_applicable("is strategy single");
  const std::vector<Plan>& plans = *evidence.plans;
  if (std::ranges::none_of(plans, [](const Plan& plan) { return plan.is_bitwise; }))
    return not_applicable("the strategy does not promise the bits of single");
  if (evidence.single == nullptr || evidence.single_plans == nullptr)
    return not_applicable("strategy single was not run");
  const std::size_t steps = std::min({comparable_steps(evidence), complete_steps(*evidence.single),
                                      evidence.single_plans->size()});
  if (steps == 0) return not_applicable("strategy single did not complete a step");
  BitwiseComparison comparison{evidence};
  for (std::size_t step = 0; step < steps && comparison.log().empty(); ++step) {
    if (plans[step].is_bitwise) comparison.compare_step(step);
  }
  CheckReport report;
  report.compared = comparison.compared();
  report.findings = comparison.log().findings();
  return report;
}

CheckReport check_determinism(const CellEvidence& evidence) {
  if (evidence.rerun == nullptr) return not_applicable("not run a second time");
  CheckReport report;
  report.compared = 1;
  if (evidence.run->digest == evidence.rerun->digest) return report;
  FindingLog log{Check::determinism, evidence.strategy, evidence.mode};
  Finding* finding = log.note({.kind = "nondeterminism",
                               .step = 0,
                               .rank = std::nullopt,
                               .buffer = std::string{},
                               .request = std::string{}});
  const bool is_located = locate_difference(evidence, *finding);
  finding->detail = fmt::format("digest {:016x}, second run {:016x}{}", evidence.run->digest,
                                evidence.rerun->digest,
                                is_located ? "" : "; the captured bytes agree, the faults do not");
  report.findings = log.findings();
  return report;
}

}  // namespace cpverify::judge
