#include "judge/output_view.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cpverify/dtype.hpp"
#include "cpverify/finding.hpp"
#include "cpverify/ids.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "judge/finding_log.hpp"
#include "numerics/float16.hpp"
#include "numerics/float32.hpp"
#include "run/runner.hpp"
#include "support/check.hpp"

namespace cpverify::judge {
namespace {

std::uint64_t load_bits(DType dtype, const std::byte* data) noexcept {
  std::uint64_t bits = 0;
  std::memcpy(&bits, data, size_bytes(dtype));
  return bits;
}

/// Why a buffer cannot be indexed as its claim says, or "".
std::string claim_defect(const Scenario& scenario, const Step& step, const Buffer& buffer) {
  const OutputClaim& claim = *buffer.output;
  const bool is_attention = claim.kind == OutputKind::attention;
  const DType dtype = is_attention ? scenario.model.dtype : DType::f32;
  if (buffer.dtype != dtype)
    return fmt::format("dtype {}, expected {}", name(buffer.dtype), name(dtype));
  const std::int64_t per_head = is_attention ? std::int64_t{scenario.model.head_dim} : 1;
  const std::uint64_t heads_end = std::uint64_t{claim.heads.first} + claim.heads.count;
  if (claim.heads.count == 0 || heads_end > scenario.model.num_heads_q) {
    return fmt::format("claims heads [{}, {}) of {}", claim.heads.first, heads_end,
                       scenario.model.num_heads_q);
  }
  const auto rows = static_cast<std::int64_t>(claim.row_tokens.size());
  const std::int64_t claimed = rows * std::int64_t{claim.heads.count} * per_head;
  if (buffer.size_elems() != claimed) {
    return fmt::format("{} elements, expected {} for {} claimed rows", buffer.size_elems(), claimed,
                       rows);
  }
  for (std::int64_t row = 0; row < rows; ++row) {
    const std::int64_t token = claim.row_tokens[static_cast<std::size_t>(row)];
    if (token < -1 || token >= step.num_tokens())
      return fmt::format("row {} claims token {} of {}", row, token, step.num_tokens());
  }
  return {};
}

/// Why a captured buffer cannot be judged, or "".
std::string view_defect(const Scenario& scenario, const Step& step, const Buffer& buffer,
                        const std::vector<std::byte>* bytes) {
  if (!buffer.output) return "output without a claim";
  std::string defect = claim_defect(scenario, step, buffer);
  if (!defect.empty()) return defect;
  if (bytes == nullptr) return "not captured";
  const std::size_t size = static_cast<std::size_t>(buffer.size_elems()) * size_bytes(buffer.dtype);
  if (bytes->size() != size)
    return fmt::format("captured {} bytes, expected {}", bytes->size(), size);
  return {};
}

const std::vector<std::byte>* captured(const run::RankCapture& rank, const std::string& buffer) {
  const auto found = rank.outputs.find(buffer);
  return found == rank.outputs.end() ? nullptr : &found->second;
}

}  // namespace

std::vector<TokenPlace> token_places(const Step& step) {
  std::vector<TokenPlace> places;
  for (std::size_t row = 0; row < step.rows.size(); ++row) {
    const StepRow& entry = step.rows[row];
    for (std::int64_t i = 0; i < entry.scheduled; ++i)
      places.push_back({static_cast<std::uint32_t>(row), entry.computed + i});
  }
  return places;
}

OutputView::Cell OutputView::cell(std::size_t index) const noexcept {
  const OutputClaim& claim = *buffer_->output;
  const std::size_t row = index / claim.heads.count;
  Cell cell;
  cell.token = claim.row_tokens[row];
  cell.head = claim.heads.first + static_cast<std::uint32_t>(index % claim.heads.count);
  cell.element = static_cast<std::int64_t>(index * elems_per_head_);
  cell.data = bytes_->data() + index * cell_bytes();
  return cell;
}

double OutputView::value(const Cell& cell, std::uint32_t index) const noexcept {
  return element_value(buffer_->dtype, cell.data + index * size_bytes(buffer_->dtype));
}

double element_value(DType dtype, const std::byte* data) noexcept {
  const std::uint64_t bits = load_bits(dtype, data);
  switch (dtype) {
    case DType::f32:
      return static_cast<double>(numerics::from_bits(static_cast<std::uint32_t>(bits)));
    case DType::f16:
      return static_cast<double>(numerics::f16_to_f32(static_cast<std::uint16_t>(bits)));
    case DType::bf16:
      return static_cast<double>(numerics::bf16_to_f32(static_cast<std::uint16_t>(bits)));
    default:
      return std::numeric_limits<double>::quiet_NaN();
  }
}

std::string element_bits(DType dtype, const std::byte* data) {
  return fmt::format("0x{:0{}x}", load_bits(dtype, data), 2 * size_bytes(dtype));
}

std::vector<OutputView> output_views(const Problem& problem, const Plan& plan,
                                     const run::StepCapture& capture, FindingLog* log) {
  std::vector<OutputView> views;
  const Step& step = problem.steps[plan.step];
  for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
    const RankPlan& rank = plan.ranks[r];
    for (const Buffer& buffer : rank.buffers) {
      if (buffer.role != BufferRole::output) continue;
      const std::vector<std::byte>* bytes =
          r < capture.ranks.size() ? captured(capture.ranks[r], buffer.name) : nullptr;
      const std::string defect = view_defect(problem.scenario, step, buffer, bytes);
      if (defect.empty()) {
        CPVERIFY_CHECK(bytes != nullptr);
        const bool is_attention = buffer.output->kind == OutputKind::attention;
        views.emplace_back(rank.rank, buffer, *bytes,
                           is_attention ? problem.scenario.model.head_dim : 1U);
        continue;
      }
      Finding* finding = log == nullptr ? nullptr
                                        : log->note({.kind = "output_missing",
                                                     .step = plan.step,
                                                     .rank = rank.rank,
                                                     .buffer = buffer.name,
                                                     .request = std::string{}});
      if (finding != nullptr) finding->detail = defect;
    }
  }
  return views;
}

StepContext step_context(const Problem& problem, std::uint32_t step) {
  const Step& entry = problem.steps[step];
  return {.problem = &problem, .step = &entry, .places = token_places(entry)};
}

Finding* note_cell(FindingLog& log, const std::string& kind, const StepContext& context,
                   const OutputView& view, const OutputView::Cell& cell) {
  const TokenPlace& place = context.places[static_cast<std::size_t>(cell.token)];
  const RequestId request = context.step->rows[place.row].request;
  Finding* finding = log.note({.kind = kind,
                               .step = context.step->index,
                               .rank = view.rank(),
                               .buffer = view.buffer().name,
                               .request = context.problem->scenario.requests[request.value()].id});
  if (finding == nullptr) return nullptr;
  finding->token = place.position;
  finding->head = cell.head;
  finding->element = cell.element + cell.dim;
  return finding;
}

void check_pad_cell(FindingLog& log, std::uint32_t step, const OutputView& view,
                    const OutputView::Cell& cell) {
  const Buffer& buffer = view.buffer();
  const std::size_t size = size_bytes(buffer.dtype);
  const bool is_lse = view.kind() == OutputKind::lse;
  for (std::uint32_t i = 0; i < view.elems_per_head(); ++i) {
    const std::byte* data = cell.data + i * size;
    const std::uint64_t expected = is_lse ? numerics::kSignBit32 | numerics::kInfinityBits32 : 0;
    if (load_bits(buffer.dtype, data) == expected) continue;
    Finding* finding = log.note({.kind = "pad_row_written",
                                 .step = step,
                                 .rank = view.rank(),
                                 .buffer = buffer.name,
                                 .request = {}});
    if (finding == nullptr) continue;
    finding->element = cell.element + i;
    finding->head = cell.head;
    const std::size_t row_elems = std::size_t{buffer.output->heads.count} * view.elems_per_head();
    const std::size_t row = static_cast<std::size_t>(cell.element) / row_elems;
    finding->detail = fmt::format("pad row {}: found {} ({}), expected {}", row,
                                  element_value(buffer.dtype, data),
                                  element_bits(buffer.dtype, data), is_lse ? "-inf" : "0");
  }
}

}  // namespace cpverify::judge
