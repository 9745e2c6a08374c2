#include "judge/step_coverage.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "cpverify/finding.hpp"
#include "cpverify/ids.hpp"
#include "cpverify/plan.hpp"
#include "judge/finding_log.hpp"
#include "judge/output_view.hpp"

namespace cpverify::judge {

StepCoverage::StepCoverage(const StepContext& context)
    : context_{&context},
      num_heads_{context.problem->scenario.model.num_heads_q},
      is_seen_(context.places.size() * num_heads_, false) {}

void StepCoverage::add(const OutputView::Cell& cell) {
  is_seen_[static_cast<std::size_t>(cell.token) * num_heads_ + cell.head] = true;
}

void StepCoverage::note_missing(FindingLog& log, OutputKind kind) const {
  for (std::size_t i = 0; i < is_seen_.size(); ++i) {
    if (is_seen_[i]) continue;
    const TokenPlace& place = context_->places[i / num_heads_];
    const RequestId request = context_->step->rows[place.row].request;
    const std::string& id = context_->problem->scenario.requests[request.value()].id;
    Finding* finding = log.note({.kind = "output_missing",
                                 .step = context_->step->index,
                                 .rank = std::nullopt,
                                 .buffer = std::string{},
                                 .request = id});
    if (finding == nullptr) continue;
    finding->token = place.position;
    finding->head = static_cast<std::uint32_t>(i % num_heads_);
    finding->detail =
        fmt::format("no rank holds the {}", kind == OutputKind::lse ? "LSE" : "output");
  }
}

}  // namespace cpverify::judge
