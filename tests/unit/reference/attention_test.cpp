#include "reference/attention.hpp"

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <vector>

#include <gtest/gtest.h>

#include "cpverify/data.hpp"
#include "cpverify/dtype.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "reference/blocked_attention.hpp"
#include "unit/reference/attention_case.hpp"
#include "unit/reference/step_builder.hpp"

namespace cpverify::reference {
namespace {

Problem one_head(std::int64_t scheduled, std::int64_t computed) {
  Problem problem = problem_of({{.scheduled = scheduled, .computed = computed}}, 1);
  problem.scenario.model = {.attention = AttentionKind::mha,
                            .num_heads_q = 1,
                            .num_heads_kv = 1,
                            .head_dim = 4,
                            .dtype = DType::f32,
                            .softmax_scale = 0.5F};
  return problem;
}

// One key: its weight is 1, so out = v and lse = its score, 0.5 * 4 * (2 * 3) = 12.
TEST(StepReference, OneKeyIsItsOwnAnswer) {
  const Problem problem = one_head(1, 0);
  const auto data = data_of(problem, [](const ElementIndex& index) {
    if (index.tensor == TensorKind::q) return 2.0F;
    if (index.tensor == TensorKind::k) return 3.0F;
    return index.dim == 1 ? -7.0F : static_cast<float>(index.dim);
  });
  const StepReference result = step_reference(problem, 0, data, 1);
  EXPECT_EQ(result.num_tokens, 1);
  EXPECT_EQ(result.out, (std::vector<double>{0.0, -7.0, 2.0, 3.0}));
  EXPECT_EQ(result.abs_mass, (std::vector<double>{0.0, 7.0, 2.0, 3.0}));
  EXPECT_EQ(result.lse, (std::vector<double>{12.0}));
  EXPECT_EQ(result.max_abs_score, (std::vector<double>{12.0}));
  EXPECT_EQ(result.max_abs_value, (std::vector<double>{7.0}));
  EXPECT_EQ(result.num_keys, (std::vector<std::int64_t>{1}));
}

// A window of 2 over v_j = j after 3 computed tokens: token 3 sees 2 and 3, token 4 sees 3 and 4.
TEST(StepReference, AWindowShowsTheLastKeys) {
  Problem problem = one_head(2, 3);
  problem.scenario.model.sliding_window = 2;
  const auto data = data_of(problem, [](const ElementIndex& index) {
    return index.tensor == TensorKind::v ? static_cast<float>(index.position) : 1.0F;
  });
  const StepReference result = step_reference(problem, 0, data);
  EXPECT_EQ(result.num_keys, (std::vector<std::int64_t>{2, 2}));
  EXPECT_NEAR(result.out[0], 2.5, 1e-12);
  EXPECT_NEAR(result.out[4], 3.5, 1e-12);
  EXPECT_NEAR(result.lse[0], 2.0 + std::log(2.0), 1e-12);
  EXPECT_EQ(result.max_abs_value, (std::vector<double>{3.0, 4.0}));
}

// One key of score 12 and value v, and a sink of 12: each weighs a half. A sink of 11 leaves the
// key 1 / (1 + e^-1) = 0.731058...
TEST(StepReference, ASinkTakesItsShareWithoutAValue) {
  const Problem problem = one_head(1, 0);
  const auto data = data_of(problem, [](const ElementIndex& index) {
    if (index.tensor == TensorKind::q) return 2.0F;
    return index.tensor == TensorKind::k ? 3.0F : 8.0F;
  });
  const StepReference half = step_reference(problem, 0, data, 1, {12.0F});
  EXPECT_TRUE(half.has_sinks);
  EXPECT_NEAR(half.out[0], 4.0, 1e-12);
  EXPECT_NEAR(half.lse[0], 12.0 + std::log(2.0), 1e-12);
  EXPECT_EQ(half.num_keys, (std::vector<std::int64_t>{1}));
  const StepReference less = step_reference(problem, 0, data, 1, {11.0F});
  EXPECT_NEAR(less.out[0], 8.0 * 0.7310585786300049, 1e-12);
  EXPECT_EQ(less.max_abs_score, (std::vector<double>{12.0}));
  EXPECT_EQ(step_reference(problem, 0, data, 1, {-13.0F}).max_abs_score,
            (std::vector<double>{13.0}));
}

// 3 tanh(12 / 3) = 3 * 0.999329299739067; the magnitude of scores is that before the cap.
TEST(StepReference, CapsScores) {
  Problem problem = one_head(1, 0);
  problem.scenario.model.soft_cap = 3.0F;
  const auto data = data_of(problem, [](const ElementIndex& index) {
    return index.tensor == TensorKind::q ? -2.0F : 3.0F;
  });
  const StepReference result = step_reference(problem, 0, data);
  EXPECT_NEAR(result.lse[0], -3.0 * 0.999329299739067, 1e-12);
  EXPECT_EQ(result.max_abs_score, (std::vector<double>{12.0}));
}

TEST(StepReference, RefusesSinksThatAreNotOneForEachHead) {
  const Problem problem = one_head(1, 0);
  const auto data = data_of(problem, [](const ElementIndex& /*index*/) { return 1.0F; });
  EXPECT_THROW(static_cast<void>(step_reference(problem, 0, data, 1, {1.0F, 2.0F})),
               std::invalid_argument);
}

// Two new tokens after 3 computed: 4 and 5 equal keys of score 0.5 * 4 * 1 = 2, v_j = j.
TEST(StepReference, EqualKeysGiveTheMeanAndLogNPlusScore) {
  const Problem problem = one_head(2, 3);
  const auto data = data_of(problem, [](const ElementIndex& index) {
    return index.tensor == TensorKind::v ? static_cast<float>(index.position) : 1.0F;
  });
  const StepReference result = step_reference(problem, 0, data);
  EXPECT_EQ(result.num_keys, (std::vector<std::int64_t>{4, 5}));
  EXPECT_EQ(result.out, (std::vector<double>{1.5, 1.5, 1.5, 1.5, 2.0, 2.0, 2.0, 2.0}));
  EXPECT_DOUBLE_EQ(result.lse[0], 2.0 + std::log(4.0));
  EXPECT_DOUBLE_EQ(result.lse[1], 2.0 + std::log(5.0));
  EXPECT_EQ(result.max_abs_value, (std::vector<double>{3.0, 4.0}));
}

// Scores 0.5 * 4 * 100 * {50, -50} = {1e4, -1e4}: exp(1e4) would overflow; the weight of the
// smaller one, e^-20000, is 0 in fp64.
TEST(StepReference, LargeLogitsDoNotOverflow) {
  const Problem problem = one_head(1, 1);
  const auto data = data_of(problem, [](const ElementIndex& index) {
    if (index.tensor == TensorKind::q) return 100.0F;
    const float sign = index.position == 0 ? 1.0F : -1.0F;
    return index.tensor == TensorKind::k ? 50.0F * sign : sign;
  });
  const StepReference result = step_reference(problem, 0, data);
  EXPECT_EQ(result.lse[0], 1e4);
  EXPECT_EQ(result.out[0], 1.0);
  EXPECT_EQ(result.abs_mass[0], 1.0);
  EXPECT_EQ(result.max_abs_score[0], 1e4);
}

// |q||k| does not cancel where q.k does: q = 1, k = (1,-1,1,-1): score 0, magnitude 0.5 * 4 = 2.
TEST(StepReference, MagnitudesDoNotCancel) {
  const Problem problem = one_head(1, 0);
  const auto data = data_of(problem, [](const ElementIndex& index) {
    const float sign = index.dim % 2 == 0 ? 1.0F : -1.0F;
    return index.tensor == TensorKind::q ? 1.0F : sign;
  });
  const StepReference result = step_reference(problem, 0, data);
  EXPECT_EQ(result.lse[0], 0.0);
  EXPECT_EQ(result.max_abs_score[0], 2.0);
}

// The largest magnitude belongs to a key that the first query must not see.
TEST(StepReference, MagnitudesOfMaskedKeysDoNotCount) {
  const Problem problem = one_head(2, 0);
  const auto data = data_of(problem, [](const ElementIndex& index) {
    return index.tensor != TensorKind::q && index.position == 1 ? 8.0F : 1.0F;
  });
  const StepReference result = step_reference(problem, 0, data);
  EXPECT_EQ(result.max_abs_score, (std::vector<double>{2.0, 16.0}));
  EXPECT_EQ(result.max_abs_value, (std::vector<double>{1.0, 8.0}));
}

// 0x0001 is 2^-24 in f16; v = 3 * 2^-24 must come through exactly.
TEST(StepReference, KeepsF16Subnormals) {
  Problem problem = one_head(1, 0);
  problem.scenario.model.dtype = DType::f16;
  RequestData request;
  const auto rows = [](std::uint16_t bits) {
    HostRows result{.row_bytes = 8, .bytes = std::vector<std::byte>(8)};
    for (std::size_t i = 0; i < 4; ++i) std::memcpy(result.bytes.data() + 2 * i, &bits, 2);
    return result;
  };
  request.q = rows(0x3C00);
  request.k = rows(0x0001);
  request.v = rows(0x0003);
  const StepReference result = step_reference(problem, 0, {request});
  EXPECT_EQ(result.out[0], std::ldexp(3.0, -24));
  EXPECT_EQ(result.lse[0], std::ldexp(2.0, -24));  // 0.5 * 4 * 2^-24.
}

// 0.1F is not 0.1: score = 4 * 0.1F exactly.
TEST(StepReference, TakesTheScaleAsTheFloatItIs) {
  Problem problem = one_head(1, 0);
  problem.scenario.model.softmax_scale = 0.1F;
  const auto data = data_of(problem, [](const ElementIndex&) { return 1.0F; });
  EXPECT_EQ(step_reference(problem, 0, data).lse[0], 4.0 * static_cast<double>(0.1F));
}

/// A batch with several tiles, prefixes, groups and a decode row, in bf16 with full mantissas.
struct MixedCase {
  MixedCase()
      : problem{problem_of({{.scheduled = 333, .computed = 17},
                            {.scheduled = 1, .computed = 290, .state = RowState::decode},
                            {.scheduled = 64}},
                           1)} {
    problem.scenario.model.num_heads_q = 6;
    problem.scenario.model.head_dim = 32;
    data = data_of(problem, [](const ElementIndex& index) {
      const std::size_t seed = index.position * 7919 + index.head * 104729 + index.dim * 1299709 +
                               std::size_t{index.request} * 15485863 +
                               static_cast<std::size_t>(index.tensor) * 32452843;
      return static_cast<float>(static_cast<int>(seed * 2654435761U % 509U) - 254) / 64.0F;
    });
  }
  Problem problem;
  std::vector<RequestData> data;
};

void expect_same_bits(const StepReference& a, const StepReference& b) {
  EXPECT_EQ(a.out, b.out);
  EXPECT_EQ(a.lse, b.lse);
  EXPECT_EQ(a.abs_mass, b.abs_mass);
  EXPECT_EQ(a.max_abs_score, b.max_abs_score);
  EXPECT_EQ(a.max_abs_value, b.max_abs_value);
  EXPECT_EQ(a.num_keys, b.num_keys);
}

TEST(StepReference, IsTheSameBitsOnAnyNumberOfThreads) {
  const MixedCase mixed;
  const StepReference one = step_reference(mixed.problem, 0, mixed.data, 1);
  for (const unsigned threads : {2U, 3U, 64U, 0U}) {
    SCOPED_TRACE(threads);
    expect_same_bits(one, step_reference(mixed.problem, 0, mixed.data, threads));
  }
}

/// FNV-1a over the bits of the numbers.
std::uint64_t hash_of(const std::vector<double>& values, std::uint64_t hash) {
  for (const double value : values) {
    const auto bits = std::bit_cast<std::uint64_t>(value);
    for (unsigned shift = 0; shift < 64; shift += 8) {
      hash = (hash ^ (bits >> shift & 0xFFU)) * 0x100000001B3U;
    }
  }
  return hash;
}

// Recorded from this code, so it says nothing about being right (the other tests do), but it
// changes when a compiler, a cache size or a libm function reaches the bits.
TEST(StepReference, IsTheSameBitsOnAnyHost) {
  const MixedCase mixed;
  const StepReference result = step_reference(mixed.problem, 0, mixed.data);
  std::uint64_t hash = 0xCBF29CE484222325U;
  for (const auto* values :
       {&result.out, &result.lse, &result.abs_mass, &result.max_abs_score, &result.max_abs_value}) {
    hash = hash_of(*values, hash);
  }
  EXPECT_EQ(hash, 0xFBCB7F7434C0F249U);
}

TEST(StepReference, BoundsDoNotChangeTheAnswerBeyondRounding) {
  const MixedCase mixed;
  const StepReference full = step_reference(mixed.problem, 0, mixed.data);
  const StepReference bare = blocked_attention(mixed.problem, mixed.problem.steps[0], mixed.data,
                                               {.threads = 1, .with_bounds = false});
  EXPECT_EQ(full.lse, bare.lse);
  ASSERT_EQ(full.out.size(), bare.out.size());
  for (std::size_t i = 0; i < full.out.size(); ++i) {
    EXPECT_NEAR(full.out[i], bare.out[i], full.abs_mass[i] * 1e-13);
  }
  EXPECT_TRUE(bare.abs_mass.empty());
  EXPECT_TRUE(bare.max_abs_score.empty());
  EXPECT_TRUE(bare.max_abs_value.empty());
}

TEST(StepReference, EmptyStepIsEmpty) {
  const Problem problem = problem_of({}, 1);
  const StepReference result = step_reference(problem, 0, {});
  EXPECT_EQ(result.num_tokens, 0);
  EXPECT_TRUE(result.out.empty());
}

TEST(StepReference, RefusesDataOfAnotherShape) {
  const Problem problem = one_head(2, 0);
  auto data = data_of(problem, [](const ElementIndex&) { return 1.0F; });
  data[0].k.bytes.pop_back();
  EXPECT_THROW(static_cast<void>(step_reference(problem, 0, data)), std::invalid_argument);
  EXPECT_THROW(static_cast<void>(step_reference(problem, 0, {})), std::out_of_range);
}

}  // namespace
}  // namespace cpverify::reference
