#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cpverify/dtype.hpp"
#include "cpverify/finding.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "judge/checks.hpp"
#include "judge/diagnosis.hpp"
#include "judge/error_bound.hpp"
#include "judge/finding_log.hpp"
#include "judge/judge.hpp"
#include "judge/output_view.hpp"
#include "judge/step_coverage.hpp"
#include "reference/attention.hpp"

namespace cpverify::judge {
namespace {

/// Counts keys from LSE: with q = 0 every visible key adds exactly 1 to l.
class KeyCount {
 public:
  explicit KeyCount(const CellEvidence& evidence)
      : evidence_{evidence}, log_{Check::count, evidence.strategy, evidence.mode} {}

  void compare_step(std::size_t step) {
    const Plan& plan = (*evidence_.plans)[step];
    const StepContext context = step_context(*evidence_.problem, plan.step);
    const reference::StepReference& expected = (*evidence_.reference)[plan.step];
    const ModelSpec& model = evidence_.problem->scenario.model;
    const Arithmetic arithmetic = arithmetic_of(model, plan.numerics);
    StepCoverage coverage{context};
    for (const OutputView& view :
         output_views(*evidence_.problem, plan, evidence_.run->steps[step], &log_)) {
      if (view.kind() != OutputKind::lse) continue;
      for (std::size_t i = 0; i < view.num_cells(); ++i) {
        const OutputView::Cell cell = view.cell(i);
        ++report_.compared;
        if (cell.token < 0) {
          check_pad_cell(log_, plan.step, view, cell);
          continue;
        }
        coverage.add(cell);
        const auto token = static_cast<std::size_t>(cell.token);
        const std::size_t row = token * expected.num_heads_q + cell.head;
        const RowMagnitudes magnitudes{.num_keys = expected.num_keys[token],
                                       .lse = expected.lse[row],
                                       .max_abs_score = expected.max_abs_score[row],
                                       .max_abs_value = expected.max_abs_value[row],
                                       .has_sink = expected.has_sinks};
        compare_cell(context, view, cell, {.arithmetic = arithmetic, .row = magnitudes});
      }
    }
    coverage.note_missing(log_, OutputKind::lse);
  }

  [[nodiscard]] CheckReport report() const {
    CheckReport report = report_;
    report.findings = log_.findings();
    return report;
  }
  [[nodiscard]] bool has_findings() const noexcept { return !log_.empty(); }

 private:
  struct Expectation {
    Arithmetic arithmetic;
    RowMagnitudes row;
  };

  void compare_cell(const StepContext& context, const OutputView& view,
                    const OutputView::Cell& cell, const Expectation& expected) {
    const double lse = view.value(cell, 0);
    // A sink of 0 counts as a key: the reference's logits of mode count are 0.
    const std::int64_t terms = expected.row.num_keys + (expected.row.has_sink ? 1 : 0);
    const auto keys = static_cast<double>(terms);
    const double bound = RowBound{expected.arithmetic, expected.row}.lse();
    // exp turns an error of `bound` into one of keys * bound; half a key decides.
    const bool is_decidable = keys * bound < 0.5;
    if (!is_decidable) {
      report_.is_weak = true;
      report_.reason = fmt::format("{} keys are too many to be counted in f32", keys);
    }
    const double counted = counted_keys(lse);
    const bool is_right = terms == 0     ? lse == expected.row.lse
                          : is_decidable ? counted == keys
                                         : within(lse, expected.row.lse, bound);
    if (is_right) return;
    const char* kind = std::isnan(lse) ? "nan_in_output"
                       : terms == 0    ? "empty_row_error"
                                       : "count_mismatch";
    Finding* finding = note_cell(log_, kind, context, view, cell);
    if (finding == nullptr) return;
    finding->detail = fmt::format(
        "found {:.12g} keys, expected {}{} (LSE {:.9g}, expected {:.9g})", counted, terms,
        expected.row.has_sink ? ", a sink one of them" : "", lse, expected.row.lse);
    if (is_base_2(lse, expected.row.lse, bound)) finding->detail += "; LSE is in base 2";
  }

  const CellEvidence& evidence_;
  FindingLog log_;
  CheckReport report_;
};

/// Bits of mode poison against those of mode random: the two differ only in bytes that no correct
/// kernel lets into a result.
class PoisonComparison {
 public:
  explicit PoisonComparison(const CellEvidence& evidence)
      : evidence_{evidence}, log_{Check::poison, evidence.strategy, evidence.mode} {}

  void compare_step(std::size_t step) {
    const Plan& plan = (*evidence_.plans)[step];
    const StepContext context = step_context(*evidence_.problem, plan.step);
    const std::vector<OutputView> clean =
        output_views(*evidence_.problem, plan, evidence_.random->steps[step], nullptr);
    for (const OutputView& view :
         output_views(*evidence_.problem, plan, evidence_.run->steps[step], &log_)) {
      const OutputView* model = nullptr;
      for (const OutputView& candidate : clean) {
        if (&candidate.buffer() == &view.buffer()) model = &candidate;
      }
      if (model != nullptr) compare_view(context, view, *model);
    }
  }

  [[nodiscard]] const FindingLog& log() const noexcept { return log_; }
  [[nodiscard]] std::uint64_t compared() const noexcept { return compared_; }

 private:
  void compare_view(const StepContext& context, const OutputView& view, const OutputView& model) {
    const std::size_t size = size_bytes(view.buffer().dtype);
    for (std::size_t i = 0; i < view.num_cells(); ++i) {
      const OutputView::Cell cell = view.cell(i);
      compared_ += view.elems_per_head();
      if (cell.token < 0) {
        check_pad_cell(log_, context.step->index, view, cell);
        continue;
      }
      const std::byte* clean = model.cell(i).data;
      for (std::uint32_t dim = 0; dim < view.elems_per_head(); ++dim) {
        const bool is_nan = std::isnan(view.value(cell, dim));
        if (!is_nan && std::memcmp(cell.data + dim * size, clean + dim * size, size) == 0) continue;
        Finding* finding = note_cell(log_, is_nan ? "poison_nan" : "poison_difference", context,
                                     view, cell.at(dim));
        if (finding == nullptr) continue;
        finding->detail =
            fmt::format("found {:.9g} ({}), mode random has {:.9g} ({})", view.value(cell, dim),
                        element_bits(view.buffer().dtype, cell.data + dim * size),
                        element_value(view.buffer().dtype, clean + dim * size),
                        element_bits(view.buffer().dtype, clean + dim * size));
      }
    }
  }

  const CellEvidence& evidence_;
  FindingLog log_;
  std::uint64_t compared_ = 0;
};

}  // namespace

CheckReport check_count(const CellEvidence& evidence) {
  if (evidence.mode != DataMode::count) return not_applicable("mode count only");
  KeyCount count{evidence};
  const std::size_t steps = comparable_steps(evidence);
  for (std::size_t step = 0; step < steps && !count.has_findings(); ++step)
    count.compare_step(step);
  return count.report();
}

CheckReport check_poison(const CellEvidence& evidence) {
  if (evidence.mode != DataMode::poison) return not_applicable("mode poison only");
  if (evidence.random == nullptr) return not_applicable("mode random was not run");
  PoisonComparison comparison{evidence};
  const std::size_t steps = std::min(comparable_steps(evidence), complete_steps(*evidence.random));
  for (std::size_t step = 0; step < steps && comparison.log().empty(); ++step)
    comparison.compare_step(step);
  if (steps == 0) return not_applicable("mode random did not complete a step");
  CheckReport report;
  report.compared = comparison.compared();
  report.findings = comparison.log().findings();
  return report;
}

}  // namespace cpverify::judge
