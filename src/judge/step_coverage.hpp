#pragma once

#include <cstddef>
#include <vector>

#include "cpverify/plan.hpp"
#include "judge/finding_log.hpp"
#include "judge/output_view.hpp"

namespace cpverify::judge {

/// Which (token, query head) of a step have been seen in some rank's output.
class StepCoverage {
 public:
  explicit StepCoverage(const StepContext& context);

  /// A cell with a token; see output_views for what is guaranteed of it.
  void add(const OutputView::Cell& cell);

  /// Notes an `output_missing` finding for what nobody computed.
  void note_missing(FindingLog& log, OutputKind kind) const;

 private:
  const StepContext* context_;
  std::size_t num_heads_;
  std::vector<bool> is_seen_;  ///< [tokens, query heads]
};

}  // namespace cpverify::judge
