#include "judge/checks.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cpverify/finding.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "judge/error_bound.hpp"
#include "run/runner.hpp"
#include "support/ideal_cell.hpp"
#include "unit/judge/expect_findings.hpp"

namespace cpverify::judge {
namespace {

using test::expect_only;
using test::IdealCell;
using test::load_f32;
using test::small_problem;
using test::store_f32;

constexpr float kNan = std::numeric_limits<float>::quiet_NaN();
constexpr float kInf = std::numeric_limits<float>::infinity();

/// Bound of one LSE of the small problem: f32 FMA kernel, d = 32.
RowBound bound_of(const IdealCell& cell, std::size_t step, std::size_t token, std::size_t head) {
  const reference::StepReference& expected = cell.reference[step];
  const std::size_t row = token * 4 + head;
  return {{32, DType::f32, cell.plans[step].numerics},
          {expected.num_keys[token], expected.lse[row], expected.max_abs_score[row],
           expected.max_abs_value[row]}};
}

// Flattened token 13 is the first of "short": row 13 of single's lse [20, 4], head 2.
constexpr std::size_t kToken = 13;
constexpr std::size_t kElement = kToken * 4 + 2;

TEST(CheckLse, PassesTheLastFloatWithinTheBoundAndFailsTheNext) {
  const Problem problem = small_problem();
  IdealCell cell{problem, StrategyKind::single, DataMode::random};
  const double expected = cell.reference[0].lse[kElement];
  const double bound = bound_of(cell, 0, kToken, 2).lse();
  float value = static_cast<float>(expected);
  while (within(static_cast<double>(std::nextafter(value, kInf)), expected, bound))
    value = std::nextafter(value, kInf);
  store_f32(cell.output(0, 0, "lse"), kElement, value);
  const CheckReport at_bound = check_lse(cell.evidence());
  EXPECT_TRUE(at_bound.findings.empty()) << test::dump(at_bound.findings);
  EXPECT_GT(at_bound.worst_ratio, 0.9);
  store_f32(cell.output(0, 0, "lse"), kElement, std::nextafter(value, kInf));
  const CheckReport beyond = check_lse(cell.evidence());
  expect_only(beyond.findings, {{"kind", "lse_error"},
                                {"rank", "0"},
                                {"request", "short"},
                                {"token", "0"},
                                {"head", "2"},
                                {"buffer", "lse"},
                                {"element", std::to_string(kElement)},
                                {"detail", "1 visible keys"}});
  EXPECT_GT(beyond.worst_ratio, 1.0);
}

TEST(CheckOutput, FailsOneUlpBeyondTheBoundOfTheElement) {
  const Problem problem = small_problem();
  IdealCell cell{problem, StrategyKind::single, DataMode::random};
  const std::size_t element = kElement * 32 + 7;
  const double expected = cell.reference[0].out[element];
  const double bound =
      bound_of(cell, 0, kToken, 2).output(cell.reference[0].abs_mass[element], expected);
  float value = static_cast<float>(expected);
  while (within(static_cast<double>(std::nextafter(value, -kInf)), expected, bound))
    value = std::nextafter(value, -kInf);
  store_f32(cell.output(0, 0, "out"), element, value);
  EXPECT_TRUE(check_output(cell.evidence()).findings.empty());
  store_f32(cell.output(0, 0, "out"), element, std::nextafter(value, -kInf));
  expect_only(check_output(cell.evidence()).findings, {{"kind", "output_error"},
                                                       {"request", "short"},
                                                       {"token", "0"},
                                                       {"head", "2"},
                                                       {"element", std::to_string(element)},
                                                       {"detail", "dim 7"}});
}

TEST(CheckOutput, NamesEachRankAndBufferInTurn) {
  const Problem problem = small_problem();
  for (std::size_t rank = 0; rank < 2; ++rank) {
    for (const char* buffer : {"out_local", "out"}) {
      IdealCell cell{problem, StrategyKind::zigzag, DataMode::random};
      store_f32(cell.output(0, rank, buffer), 0, kNan);
      expect_only(check_output(cell.evidence()).findings, {{"kind", "nan_in_output"},
                                                           {"rank", std::to_string(rank)},
                                                           {"buffer", buffer},
                                                           {"element", "0"}});
    }
  }
}

TEST(CheckOutput, FailsNanEvenWhereTheReferenceIsNan) {
  const Problem problem = small_problem();
  IdealCell cell{problem, StrategyKind::single, DataMode::random};
  cell.reference[0].out[5] = std::numeric_limits<double>::quiet_NaN();
  store_f32(cell.output(0, 0, "out"), 5, kNan);
  EXPECT_EQ(check_output(cell.evidence()).findings.size(), 1U);
}

TEST(CheckOutput, FindsTwoTokensSwapped) {
  const Problem problem = small_problem();
  IdealCell cell{problem, StrategyKind::zigzag, DataMode::random};
  std::vector<std::byte>& out = cell.output(0, 1, "out");
  const std::ptrdiff_t row = 4 * 32 * 4;  // Heads * head_dim * bytes.
  std::swap_ranges(out.begin() + 5 * row, out.begin() + 6 * row, out.begin() + 6 * row);
  const CheckReport report = check_output(cell.evidence());
  // Token 5 of the new ones is position 3 + 5 of "long".
  expect_only(report.findings, {{"kind", "output_error"},
                                {"rank", "1"},
                                {"request", "long"},
                                {"token", "8"},
                                {"buffer", "out"}});
  EXPECT_GT(report.findings.front().count, 200U);  // Nearly all of 2 * 4 * 32 elements.
}

TEST(CheckOutput, LooksAtTheFirstBadStepOnly) {
  const Problem problem = small_problem();
  IdealCell cell{problem, StrategyKind::single, DataMode::random};
  store_f32(cell.output(0, 0, "out"), 0, kNan);
  store_f32(cell.output(1, 0, "out"), 0, kNan);
  expect_only(check_output(cell.evidence()).findings, {{"step", "0"}});
}

TEST(CheckOutput, NamesAPadRowThatIsNotZero) {
  const Problem problem = small_problem();
  IdealCell cell{problem, StrategyKind::single, DataMode::random};
  // 17 tokens in 20 rows; even -0 is a byte that somebody wrote.
  store_f32(cell.output(0, 0, "out"), 17 * 4 * 32 + 3, -0.0F);
  expect_only(check_output(cell.evidence()).findings, {{"kind", "pad_row_written"},
                                                       {"buffer", "out"},
                                                       {"element", std::to_string(17 * 128 + 3)},
                                                       {"detail", "pad row 17"}});
  IdealCell lse{problem, StrategyKind::single, DataMode::random};
  store_f32(lse.output(0, 0, "lse"), 19 * 4, 0.0F);
  expect_only(check_lse(lse.evidence()).findings,
              {{"kind", "pad_row_written"}, {"buffer", "lse"}, {"detail", "expected -inf"}});
}

TEST(CheckLse, WantsTheEmptyRowExactly) {
  const Problem problem = small_problem();
  IdealCell cell{problem, StrategyKind::single, DataMode::random};
  reference::StepReference& expected = cell.reference[0];
  expected.num_keys[0] = 0;
  for (std::size_t head = 0; head < 4; ++head) {
    expected.lse[head] = -std::numeric_limits<double>::infinity();
    store_f32(cell.output(0, 0, "lse"), head, -kInf);
  }
  EXPECT_TRUE(check_lse(cell.evidence()).findings.empty());
  store_f32(cell.output(0, 0, "lse"), 1, -1e30F);
  expect_only(check_lse(cell.evidence()).findings, {{"kind", "empty_row_error"}, {"head", "1"}});
}

TEST(CheckLse, RecognisesBase2) {
  const Problem problem = small_problem();
  IdealCell cell{problem, StrategyKind::zigzag, DataMode::random};
  std::vector<std::byte>& lse = cell.output(0, 1, "lse_local");
  for (std::size_t i = 0; i < lse.size() / 4; ++i)
    store_f32(lse, i, load_f32(lse, i) * 1.44269504F);
  const std::vector<Finding> findings = check_lse(cell.evidence()).findings;
  ASSERT_FALSE(findings.empty());
  for (const Finding& finding : findings) {
    EXPECT_EQ(finding.rank->value(), 1U);
    EXPECT_NE(finding.detail.find("LSE is in base 2"), std::string::npos) << finding.detail;
  }
}

TEST(CheckCount, FindsOneKeyMoreAndOneLess) {
  const Problem problem = small_problem();
  for (const int difference : {-1, 1}) {
    IdealCell cell{problem, StrategyKind::zigzag, DataMode::count};
    // Step 1: "long" decodes its 17th token and sees 17 keys.
    store_f32(cell.output(1, 1, "lse"), 3, std::log(static_cast<float>(17 + difference)));
    expect_only(check_count(cell.evidence()).findings,
                {{"kind", "count_mismatch"},
                 {"rank", "1"},
                 {"step", "1"},
                 {"request", "long"},
                 {"token", "16"},
                 {"head", "3"},
                 {"detail", "found " + std::to_string(17 + difference) + " keys, expected 17"}});
  }
}

TEST(CheckCount, RecognisesBase2AndNan) {
  const Problem problem = small_problem();
  IdealCell cell{problem, StrategyKind::single, DataMode::count};
  store_f32(cell.output(1, 0, "lse"), 0, std::log2(17.0F));
  expect_only(check_count(cell.evidence()).findings,
              {{"kind", "count_mismatch"}, {"detail", "LSE is in base 2"}});
  store_f32(cell.output(1, 0, "lse"), 0, kNan);
  expect_only(check_count(cell.evidence()).findings, {{"kind", "nan_in_output"}});
}

// 2^23 keys: exp turns the rounding of LSE into more than half a key.
TEST(CheckCount, IsWeakWhereF32CannotCount) {
  const Problem problem = small_problem();
  IdealCell cell{problem, StrategyKind::single, DataMode::count};
  cell.reference[0].num_keys[0] = 1 << 23;
  for (std::size_t head = 0; head < 4; ++head) {
    cell.reference[0].lse[head] = std::log(8388608.0);
    store_f32(cell.output(0, 0, "lse"), head, std::log(8388608.0F));
  }
  const CheckReport report = check_count(cell.evidence());
  EXPECT_TRUE(report.findings.empty());
  EXPECT_TRUE(report.is_weak);
}

TEST(CheckPoison, ComparesBitsWithModeRandomAndNamesNan) {
  const Problem problem = small_problem();
  IdealCell random{problem, StrategyKind::zigzag, DataMode::random};
  IdealCell poison{problem, StrategyKind::zigzag, DataMode::poison};
  CellEvidence evidence = poison.evidence();
  EXPECT_EQ(check_poison(evidence).reason, "mode random was not run");
  evidence.random = &random.run;
  // In the verifier both modes are judged with the same plans.
  random.plans = poison.plans;
  EXPECT_TRUE(check_poison(evidence).findings.empty());
  EXPECT_GT(check_poison(evidence).compared, 0U);

  const float value = load_f32(poison.output(0, 1, "out"), 9);
  store_f32(poison.output(0, 1, "out"), 9, std::nextafter(value, kInf));
  expect_only(check_poison(evidence).findings,
              {{"kind", "poison_difference"}, {"rank", "1"}, {"element", "9"}});
  store_f32(poison.output(0, 1, "out"), 9, kNan);
  expect_only(check_poison(evidence).findings, {{"kind", "poison_nan"}, {"rank", "1"}});
  // A NaN that mode random has too is no less one.
  store_f32(random.output(0, 1, "out"), 9, kNan);
  expect_only(check_poison(evidence).findings, {{"kind", "poison_nan"}});
}

TEST(CheckKvPool, TellsWrongBytesForeignWritesAndTheNullBlockApart) {
  const Problem problem = small_problem();
  const std::size_t slot_bytes = 2 * 32 * 4;  // KV heads * head_dim * bytes.
  // Position 3 of "long", the first new token: the second row of KV head 1.
  const auto slot = static_cast<std::size_t>(problem.steps[0].rows[0].slots[0]);
  IdealCell wrong{problem, StrategyKind::zigzag, DataMode::random};
  wrong.run.steps[0].ranks[1].v_pool[slot * slot_bytes + 32 * 4 + 5] ^= std::byte{0x10};
  expect_only(check_kv_pool(wrong.evidence()).findings,
              {{"kind", "kv_bytes_mismatch"},
               {"rank", "1"},
               {"request", "long"},
               {"key", "3"},
               {"head", "1"},
               {"page", std::to_string(slot / 4)},
               {"slot", std::to_string(slot)},
               {"buffer", "v_pool"},
               {"element", std::to_string(slot * 64 + 32 + 1)},
               {"detail", "holds no token's row"}});

  IdealCell null_block{problem, StrategyKind::zigzag, DataMode::random};
  null_block.run.steps[0].ranks[0].k_pool[3 * slot_bytes] ^= std::byte{1};
  expect_only(check_kv_pool(null_block.evidence()).findings,
              {{"kind", "null_block_written"}, {"page", "0"}, {"slot", "3"}, {"head", "0"}});
}

TEST(CheckKvPool, SaysWhatAWrongSlotHolds) {
  const Problem problem = small_problem();
  const std::ptrdiff_t slot_bytes = 2 * 32 * 4;
  const StepRow& row = problem.steps[0].rows[1];  // "short": 4 tokens from position 0.
  IdealCell cell{problem, StrategyKind::single, DataMode::random};
  std::vector<std::byte>& pool = cell.run.steps[0].ranks[0].k_pool;
  // Token 2 lands in the slot of token 1.
  std::copy_n(pool.begin() + row.slots[2] * slot_bytes, slot_bytes,
              pool.begin() + row.slots[1] * slot_bytes);
  expect_only(check_kv_pool(cell.evidence()).findings,
              {{"kind", "kv_bytes_mismatch"},
               {"key", "1"},
               {"detail", "the slot holds k of request short token 2"}});

  IdealCell unwritten{problem, StrategyKind::single, DataMode::random};
  run::RunCapture& run = unwritten.run;
  for (run::StepCapture& step : run.steps)
    std::copy_n(run.initial[0].k_pool.begin() + row.slots[1] * slot_bytes, slot_bytes,
                step.ranks[0].k_pool.begin() + row.slots[1] * slot_bytes);
  expect_only(check_kv_pool(unwritten.evidence()).findings,
              {{"kind", "kv_bytes_mismatch"}, {"step", "0"}, {"detail", "was never written"}});
}

TEST(CheckKvPool, NamesPoolsThatWereNotCaptured) {
  const Problem problem = small_problem();
  IdealCell cell{problem, StrategyKind::zigzag, DataMode::random};
  cell.run.steps[0].ranks[1].k_pool.pop_back();
  expect_only(check_kv_pool(cell.evidence()).findings,
              {{"kind", "kv_pool_missing"}, {"rank", "1"}, {"buffer", "k_pool"}});
  cell.run.initial.clear();
  EXPECT_EQ(check_kv_pool(cell.evidence()).findings.size(), 4U);
}

TEST(CheckBitwise, FindsOneBit) {
  const Problem problem = small_problem();
  IdealCell single{problem, StrategyKind::single, DataMode::random};
  IdealCell cell{problem, StrategyKind::zigzag, DataMode::random};
  CellEvidence evidence = cell.evidence();
  EXPECT_EQ(check_bitwise(evidence).reason, "strategy single was not run");
  evidence.single = &single.run;
  evidence.single_plans = &single.plans;
  EXPECT_TRUE(check_bitwise(evidence).findings.empty());
  EXPECT_GT(check_bitwise(evidence).compared, 0U);

  const float lse = load_f32(cell.output(1, 1, "lse"), 6);
  store_f32(cell.output(1, 1, "lse"), 6, std::nextafter(lse, kInf));
  // Row 1 of step 1 is the decode token of "short", at position 4; head 2.
  expect_only(check_bitwise(evidence).findings, {{"kind", "bitwise_difference"},
                                                 {"rank", "1"},
                                                 {"step", "1"},
                                                 {"request", "short"},
                                                 {"token", "4"},
                                                 {"head", "2"},
                                                 {"buffer", "lse"}});
  for (Plan& plan : cell.plans) plan.is_bitwise = false;
  EXPECT_FALSE(check_bitwise(evidence).is_applicable);
}

TEST(CheckDeterminism, FindsWhereASecondRunFirstDiffers) {
  const Problem problem = small_problem();
  IdealCell cell{problem, StrategyKind::zigzag, DataMode::random};
  run::RunCapture rerun = cell.run;
  CellEvidence evidence = cell.evidence();
  evidence.rerun = &rerun;
  EXPECT_TRUE(check_determinism(evidence).findings.empty());
  rerun.digest = 0x5678;
  expect_only(check_determinism(evidence).findings,
              {{"kind", "nondeterminism"}, {"detail", "the captured bytes agree"}});
  rerun.steps[1].ranks[0].outputs.at("out")[4 * 11 + 1] ^= std::byte{1};
  expect_only(check_determinism(evidence).findings,
              {{"kind", "nondeterminism"},
               {"step", "1"},
               {"rank", "0"},
               {"buffer", "out"},
               {"element", "11"},
               {"detail", "digest 0000000000001234, second run 0000000000005678"}});
}

}  // namespace
}  // namespace cpverify::judge
