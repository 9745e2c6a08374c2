#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

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

/// Compares all rows of one kind of output with the fp64 reference.
class NumericComparison {
 public:
  NumericComparison(const CellEvidence& evidence, OutputKind kind)
      : evidence_{evidence},
        kind_{kind},
        log_{kind == OutputKind::lse ? Check::lse : Check::output, evidence.strategy,
             evidence.mode} {}

  void compare_step(std::size_t step) {
    const Plan& plan = (*evidence_.plans)[step];
    const StepContext context = step_context(*evidence_.problem, plan.step);
    const reference::StepReference& expected = (*evidence_.reference)[plan.step];
    compute_bounds(plan, expected);
    StepCoverage coverage{context};
    for (const OutputView& view :
         output_views(*evidence_.problem, plan, evidence_.run->steps[step], &log_)) {
      if (view.kind() != kind_) continue;
      for (std::size_t i = 0; i < view.num_cells(); ++i) {
        const OutputView::Cell cell = view.cell(i);
        compared_ += view.elems_per_head();
        if (cell.token < 0) {
          check_pad_cell(log_, plan.step, view, cell);
          continue;
        }
        coverage.add(cell);
        for (std::uint32_t dim = 0; dim < view.elems_per_head(); ++dim)
          compare_element(context, view, cell, dim);
      }
    }
    coverage.note_missing(log_, kind_);
  }

  [[nodiscard]] CheckReport report() const {
    CheckReport report;
    report.compared = compared_;
    report.worst_ratio = worst_ratio_;
    report.findings = log_.findings();
    return report;
  }
  [[nodiscard]] bool has_findings() const noexcept { return !log_.empty(); }

 private:
  void compute_bounds(const Plan& plan, const reference::StepReference& expected) {
    expected_ = &expected;
    bounds_.clear();
    const ModelSpec& model = evidence_.problem->scenario.model;
    const Arithmetic arithmetic = arithmetic_of(model, plan.numerics);
    for (std::size_t i = 0; i < expected.lse.size(); ++i) {
      const std::size_t token = i / expected.num_heads_q;
      bounds_.emplace_back(arithmetic, RowMagnitudes{.num_keys = expected.num_keys[token],
                                                     .lse = expected.lse[i],
                                                     .max_abs_score = expected.max_abs_score[i],
                                                     .max_abs_value = expected.max_abs_value[i],
                                                     .has_sink = expected.has_sinks});
    }
  }

  void compare_element(const StepContext& context, const OutputView& view,
                       const OutputView::Cell& cell, std::uint32_t dim) {
    const auto token = static_cast<std::size_t>(cell.token);
    const std::size_t row = token * expected_->num_heads_q + cell.head;
    const bool is_lse = kind_ == OutputKind::lse;
    const std::size_t element = row * expected_->head_dim + dim;
    const double expected = is_lse ? expected_->lse[row] : expected_->out[element];
    const bool is_empty = expected_->num_keys[token] == 0 && !expected_->has_sinks;
    const double bound = is_empty ? 0.0
                         : is_lse ? bounds_[row].lse()
                                  : bounds_[row].output(expected_->abs_mass[element], expected);
    const double found = view.value(cell, dim);
    worst_ratio_ = std::max(worst_ratio_, error_ratio(found, expected, bound));
    if (within(found, expected, bound)) return;
    const char* kind = std::isnan(found) ? "nan_in_output"
                       : is_empty        ? "empty_row_error"
                       : is_lse          ? "lse_error"
                                         : "output_error";
    Finding* finding = note_cell(log_, kind, context, view, cell.at(dim));
    if (finding == nullptr) return;
    finding->detail =
        fmt::format("found {:.9g}, expected {:.9g}, error {:.3g}, bound {:.3g}, {} visible keys",
                    found, expected, std::abs(found - expected), bound, expected_->num_keys[token]);
    if (!is_lse) finding->detail += fmt::format(", dim {}", dim);
    if (is_lse && is_base_2(found, expected, bound)) finding->detail += "; LSE is in base 2";
  }

  const CellEvidence& evidence_;
  OutputKind kind_;
  FindingLog log_;
  const reference::StepReference* expected_ = nullptr;
  std::vector<RowBound> bounds_;  ///< [T, Hq]
  std::uint64_t compared_ = 0;
  double worst_ratio_ = 0.0;
};

CheckReport compare_all(const CellEvidence& evidence, OutputKind kind) {
  NumericComparison comparison{evidence, kind};
  const std::size_t steps = comparable_steps(evidence);
  for (std::size_t step = 0; step < steps && !comparison.has_findings(); ++step)
    comparison.compare_step(step);
  return comparison.report();
}

}  // namespace

CheckReport check_lse(const CellEvidence& evidence) {
  return compare_all(evidence, OutputKind::lse);
}

CheckReport check_output(const CellEvidence& evidence) {
  return compare_all(evidence, OutputKind::attention);
}

}  // namespace cpverify::judge
