#include <cmath>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "cpverify/finding.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "judge/checks.hpp"
#include "judge/error_bound.hpp"
#include "support/ideal_cell.hpp"

namespace cpverify::judge {
namespace {

using test::IdealCell;

constexpr std::size_t kSlotElems = 2 * 32;  // KV heads * head_dim of the small scenario.

IdealCell& zigzag_cell() {
  static const Problem problem = test::small_problem();
  static IdealCell cell{problem, StrategyKind::zigzag, DataMode::random};
  return cell;
}

// One flipped bit anywhere in any pool is found, and the finding points at it.
RC_GTEST_PROP(KvPool, FindsAndNamesEveryFlippedBit, ()) {
  IdealCell& cell = zigzag_cell();
  const auto step = *rc::gen::inRange<std::size_t>(0, cell.run.steps.size());
  const auto rank = *rc::gen::inRange<std::size_t>(0, 2);
  const bool is_k = *rc::gen::arbitrary<bool>();
  run::RankCapture& capture = cell.run.steps[step].ranks[rank];
  std::vector<std::byte>& pool = is_k ? capture.k_pool : capture.v_pool;
  const auto index = *rc::gen::inRange<std::size_t>(0, pool.size());
  const auto bit = *rc::gen::inRange(0, 8);
  const std::byte flip{static_cast<unsigned char>(1 << bit)};
  pool[index] ^= flip;
  const CheckReport report = check_kv_pool(cell.evidence());
  pool[index] ^= flip;
  RC_ASSERT(report.findings.size() == 1U);
  const Finding& finding = report.findings.front();
  const auto element = static_cast<std::int64_t>(index / 4);
  const auto slot = element / static_cast<std::int64_t>(kSlotElems);
  RC_ASSERT(finding.step == step);
  RC_ASSERT(finding.rank->value() == rank);
  RC_ASSERT(finding.buffer == (is_k ? "k_pool" : "v_pool"));
  RC_ASSERT(finding.element == element);
  RC_ASSERT(finding.slot == slot);
  RC_ASSERT(finding.page == slot / 4);
  RC_ASSERT(finding.head == static_cast<std::uint32_t>(element % 64 / 32));
  RC_ASSERT((finding.kind == "null_block_written") == (slot < 4));
  RC_ASSERT(finding.request.empty() == (finding.kind != "kv_bytes_mismatch"));
}

// A NaN anywhere in any output of any rank is found under its element.
RC_GTEST_PROP(Output, FindsAndNamesEveryNan, ()) {
  IdealCell& cell = zigzag_cell();
  const auto step = *rc::gen::inRange<std::size_t>(0, cell.run.steps.size());
  const auto rank = *rc::gen::inRange<std::size_t>(0, 2);
  auto& outputs = cell.run.steps[step].ranks[rank].outputs;
  const auto which =
      *rc::gen::inRange<std::ptrdiff_t>(0, static_cast<std::ptrdiff_t>(outputs.size()));
  auto& [name, bytes] = *std::next(outputs.begin(), which);
  const auto element = *rc::gen::inRange<std::size_t>(0, bytes.size() / 4);
  const float before = test::load_f32(bytes, element);
  test::store_f32(bytes, element, std::numeric_limits<float>::quiet_NaN());
  const bool is_lse = name.rfind("lse", 0) == 0;
  const CheckReport report = is_lse ? check_lse(cell.evidence()) : check_output(cell.evidence());
  test::store_f32(bytes, element, before);
  RC_ASSERT(report.findings.size() == 1U);
  const Finding& finding = report.findings.front();
  RC_ASSERT(finding.step == step);
  RC_ASSERT(finding.rank->value() == rank);
  RC_ASSERT(finding.buffer == name);
  RC_ASSERT(finding.element == static_cast<std::int64_t>(element));
  RC_ASSERT(finding.kind == "nan_in_output" || finding.kind == "pad_row_written");
}

// within() and error_ratio() never disagree, whatever the bits.
RC_GTEST_PROP(Within, AgreesWithTheRatio, (double found, double expected, double bound)) {
  RC_ASSERT(within(found, expected, bound) == (error_ratio(found, expected, bound) <= 1.0));
}

// A kernel may be better than its bound in any way; it may not make the bound smaller: more keys,
// larger scores and coarser casts never tighten it.
RC_GTEST_PROP(RowBound, NeverTightensWithMoreWork, ()) {
  const auto keys = *rc::gen::inRange<std::int64_t>(1, 100000);
  const auto more = *rc::gen::inRange<std::int64_t>(0, 100000);
  const double score = *rc::gen::inRange(1, 3000) / 100.0;
  const double extra = *rc::gen::inRange(0, 3000) / 100.0;
  const Arithmetic arithmetic{128, DType::bf16, {DType::bf16, true, 32}};
  const RowBound small{arithmetic, {keys, 5.0, score, 2.0}};
  const RowBound large{arithmetic, {keys + more, 5.0, score + extra, 2.0}};
  RC_ASSERT(small.lse() <= large.lse());
  RC_ASSERT(small.output(1.0, 0.5) <= large.output(1.0, 0.5));
}

}  // namespace
}  // namespace cpverify::judge
