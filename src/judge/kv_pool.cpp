#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cpverify/data.hpp"
#include "cpverify/dtype.hpp"
#include "cpverify/finding.hpp"
#include "cpverify/ids.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "judge/checks.hpp"
#include "judge/finding_log.hpp"
#include "judge/judge.hpp"
#include "judge/output_view.hpp"
#include "reference/integer_oracle.hpp"
#include "run/runner.hpp"
#include "support/check.hpp"

namespace cpverify::judge {
namespace {

using reference::SlotOwner;

/// One pool of one rank after one step.
struct Pool {
  RankId rank;
  std::uint32_t step = 0;
  TensorKind tensor = TensorKind::k;
  const std::vector<std::byte>* found = nullptr;
  const std::vector<std::byte>* initial = nullptr;
};

/// Compares pools with "initial bytes, then every owner's row at its slot".
class PoolComparison {
 public:
  explicit PoolComparison(const CellEvidence& evidence)
      : evidence_{evidence},
        scenario_{evidence.problem->scenario},
        log_{Check::kv_pool, evidence.strategy, evidence.mode},
        elem_bytes_{size_bytes(scenario_.model.dtype)},
        head_bytes_{scenario_.model.head_dim * elem_bytes_} {}

  void compare_step(std::size_t step) {
    const Plan& plan = (*evidence_.plans)[step];
    const run::StepCapture& capture = evidence_.run->steps[step];
    for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
      owners_ = reference::expected_rank_slots(*evidence_.problem, plan.step, evidence_.strategy,
                                               plan.ranks[r].rank);
      for (const TensorKind tensor : {TensorKind::k, TensorKind::v}) {
        Pool pool{.rank = plan.ranks[r].rank,
                  .step = plan.step,
                  .tensor = tensor,
                  .found = nullptr,
                  .initial = nullptr};
        if (r < capture.ranks.size()) pool.found = &bytes(capture.ranks[r], tensor);
        if (r < evidence_.run->initial.size())
          pool.initial = &bytes(evidence_.run->initial[r], tensor);
        if (is_comparable(pool)) compare_pool(pool);
      }
    }
  }

  [[nodiscard]] const FindingLog& log() const noexcept { return log_; }
  [[nodiscard]] std::uint64_t compared() const noexcept { return compared_; }

 private:
  static const std::vector<std::byte>& bytes(const run::RankCapture& rank, TensorKind tensor) {
    return tensor == TensorKind::k ? rank.k_pool : rank.v_pool;
  }
  static std::string name(TensorKind tensor) {
    return tensor == TensorKind::k ? "k_pool" : "v_pool";
  }

  [[nodiscard]] std::size_t slot_bytes(RankId rank) const noexcept {
    return pool_heads(scenario_, evidence_.strategy, rank).count * head_bytes_;
  }

  bool is_comparable(const Pool& pool) {
    const std::size_t expected = owners_.size() * slot_bytes(pool.rank);
    const auto size = [](const std::vector<std::byte>* held) {
      return held == nullptr ? 0 : held->size();
    };
    if (size(pool.found) == expected && size(pool.initial) == expected) return true;
    Finding* finding = log_.note({.kind = "kv_pool_missing",
                                  .step = pool.step,
                                  .rank = pool.rank,
                                  .buffer = name(pool.tensor),
                                  .request = std::string{}});
    if (finding != nullptr) {
      finding->detail = fmt::format("captured {} bytes before and {} after, expected {}",
                                    size(pool.initial), size(pool.found), expected);
    }
    return false;
  }

  void compare_pool(const Pool& pool) {
    CPVERIFY_CHECK(pool.found != nullptr);
    CPVERIFY_CHECK(pool.initial != nullptr);
    const std::size_t stride = slot_bytes(pool.rank);
    compared_ += pool.found->size();
    for (std::size_t slot = 0; slot < owners_.size(); ++slot) {
      const std::byte* expected = expected_row(pool, slot);
      const std::byte* found = pool.found->data() + slot * stride;
      if (std::memcmp(found, expected, stride) != 0) note_slot(pool, slot, found, expected);
    }
  }

  /// The bytes of a rank's KV heads that a slot must hold.
  [[nodiscard]] const std::byte* expected_row(const Pool& pool, std::size_t slot) const {
    const SlotOwner& owner = owners_[slot];
    if (!owner.is_written) return pool.initial->data() + slot * slot_bytes(pool.rank);
    return data_row(pool.rank, pool.tensor, owner.request, owner.position);
  }

  [[nodiscard]] const std::byte* data_row(RankId rank, TensorKind tensor, RequestId request,
                                          std::int64_t position) const {
    const RequestData& data = (*evidence_.data)[request.value()];
    const HostRows& rows = tensor == TensorKind::k ? data.k : data.v;
    return rows.row(static_cast<std::size_t>(position)) +
           pool_heads(scenario_, evidence_.strategy, rank).first * head_bytes_;
  }

  void note_slot(const Pool& pool, std::size_t slot, const std::byte* found,
                 const std::byte* expected) {
    const std::size_t stride = slot_bytes(pool.rank);
    const std::size_t first =
        static_cast<std::size_t>(std::mismatch(found, found + stride, expected).first - found);
    std::uint64_t bad = 0;
    for (std::size_t i = 0; i < stride; i += elem_bytes_)
      bad += std::memcmp(found + i, expected + i, elem_bytes_) != 0 ? 1U : 0U;

    const SlotOwner& owner = owners_[slot];
    const std::size_t num_blocks = std::max(evidence_.problem->num_blocks, 1U);
    const std::size_t page = slot / std::max<std::size_t>(owners_.size() / num_blocks, 1);
    const char* kind = owner.is_written ? "kv_bytes_mismatch"
                       : page == 0      ? "null_block_written"
                                        : "kv_unexpected_write";
    const std::string request =
        owner.is_written ? scenario_.requests[owner.request.value()].id : std::string{};
    Finding* finding = log_.note({.kind = kind,
                                  .step = pool.step,
                                  .rank = pool.rank,
                                  .buffer = name(pool.tensor),
                                  .request = request},
                                 bad);
    if (finding == nullptr) return;
    if (owner.is_written) finding->key = owner.position;
    finding->page = static_cast<std::int64_t>(page);
    finding->slot = static_cast<std::int64_t>(slot);
    finding->head = pool_heads(scenario_, evidence_.strategy, pool.rank).first +
                    static_cast<std::uint32_t>(first / head_bytes_);
    finding->element = static_cast<std::int64_t>((slot * stride + first) / elem_bytes_);
    const std::size_t elem = first / elem_bytes_ * elem_bytes_;
    finding->detail = fmt::format(
        "found {}, expected {}; the slot {}", element_bits(scenario_.model.dtype, found + elem),
        element_bits(scenario_.model.dtype, expected + elem), diagnosis(pool, slot, found));
  }

  /// "holds k of request a token 3" when `found` is the row of a token; else nothing.
  std::string token_of_row(RankId rank, TensorKind tensor, const std::byte* found) const {
    const std::size_t stride = slot_bytes(rank);
    for (std::uint32_t r = 0; r < scenario_.requests.size(); ++r) {
      const std::int64_t tokens = scenario_.requests[r].total_tokens();
      for (std::int64_t position = 0; position < tokens; ++position) {
        const std::byte* row = data_row(rank, tensor, RequestId{r}, position);
        if (std::memcmp(found, row, stride) != 0) continue;
        return fmt::format("holds {} of request {} token {}", tensor == TensorKind::k ? "k" : "v",
                           scenario_.requests[r].id, position);
      }
    }
    return {};
  }

  /// What a wrong slot holds, when that can be told.
  std::string diagnosis(const Pool& pool, std::size_t slot, const std::byte* found) const {
    const std::size_t stride = slot_bytes(pool.rank);
    for (const TensorKind tensor : {pool.tensor, other(pool.tensor)}) {
      const std::string token = token_of_row(pool.rank, tensor, found);
      if (!token.empty()) return token;
    }
    const auto holds = [&](const std::byte* row) { return std::memcmp(found, row, stride) == 0; };
    if (holds(pool.initial->data() + slot * stride)) return "was never written";
    const bool is_zero =
        std::all_of(found, found + stride, [](std::byte byte) { return byte == std::byte{0}; });
    return is_zero ? "is all zero" : "holds no token's row";
  }

  static TensorKind other(TensorKind tensor) {
    return tensor == TensorKind::k ? TensorKind::v : TensorKind::k;
  }

  const CellEvidence& evidence_;
  const Scenario& scenario_;
  FindingLog log_;
  std::size_t elem_bytes_;
  std::size_t head_bytes_;
  std::vector<SlotOwner> owners_;
  std::uint64_t compared_ = 0;
};

}  // namespace

CheckReport check_kv_pool(const CellEvidence& evidence) {
  PoolComparison comparison{evidence};
  const std::size_t steps = comparable_steps(evidence);
  for (std::size_t step = 0; step < steps && comparison.log().empty(); ++step)
    comparison.compare_step(step);
  CheckReport report;
  report.compared = comparison.compared();
  report.findings = comparison.log().findings();
  report.reason = "bytes of all slots, the null block and the free pages included";
  return report;
}

}  // namespace cpverify::judge
