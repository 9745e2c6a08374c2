#include "cpverify/data.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "numerics/convert.hpp"
#include "unit/scenario/scenario_text.hpp"

namespace cpverify {
namespace {

using test::ScenarioText;

Problem problem_of(const ScenarioText& text) {
  return make_problem(parse_scenario(text.text(), "x.yaml"));
}

std::vector<RequestData> data_of(const ScenarioText& text, DataMode mode = DataMode::random) {
  return make_data(problem_of(text), mode);
}

std::vector<float> values_of(const HostRows& rows, DType dtype = DType::bf16) {
  return numerics::widen(dtype, rows.bytes);
}

/// Softmax weights of one query over the keys [0, count) of one KV head, in double.
struct Weights {
  std::vector<double> scores;
  std::vector<double> weights;
};

Weights attend(std::span<const float> q, std::span<const float> k, std::size_t count,
               std::size_t stride, double scale) {
  Weights result;
  for (std::size_t key = 0; key < count; ++key) {
    double score = 0.0;
    for (std::size_t i = 0; i < q.size(); ++i) {
      score += static_cast<double>(q[i]) * static_cast<double>(k[key * stride + i]);
    }
    result.scores.push_back(scale * score);
  }
  const double top = *std::max_element(result.scores.begin(), result.scores.end());
  double sum = 0.0;
  for (const double score : result.scores) {
    result.weights.push_back(std::exp(score - top));
    sum += result.weights.back();
  }
  for (double& weight : result.weights) weight /= sum;
  return result;
}

TEST(Data, HasTheShapesOfTheModel) {
  const std::vector<RequestData> data =
      data_of({.requests = "requests: [{id: a, cached_prefix: 3, prompt: 4, decode: 2}]"});
  ASSERT_EQ(data.size(), 1U);
  // 4 and 2 heads of 64 values of 2 bytes; 3 + 4 + 2 tokens.
  EXPECT_EQ(data[0].q.row_bytes, 512U);
  EXPECT_EQ(data[0].k.row_bytes, 256U);
  EXPECT_EQ(data[0].v.row_bytes, 256U);
  EXPECT_EQ(data[0].q.bytes.size(), 9U * 512U);
  EXPECT_EQ(data[0].v.bytes.size(), 9U * 256U);
}

TEST(Data, IsTheSameForTheSameSeedAndAnotherForAnother) {
  const std::vector<RequestData> one = data_of({.rest = "data: {seed: 1}"});
  EXPECT_EQ(one[0].k.bytes, data_of({.rest = "data: {seed: 1}"})[0].k.bytes);
  EXPECT_NE(one[0].q.bytes, data_of({.rest = "data: {seed: 2}"})[0].q.bytes);
  EXPECT_NE(one[0].k.bytes, data_of({.rest = "data: {seed: 2}"})[0].k.bytes);
  EXPECT_NE(one[0].v.bytes, data_of({.rest = "data: {seed: 2}"})[0].v.bytes);
  EXPECT_NE(one[0].k.bytes, one[0].v.bytes);
}

TEST(Data, DoesNotDependOnTheOtherRequestsTheBudgetOrTheBlocks) {
  const std::vector<RequestData> alone = data_of({.requests = "requests: [{id: x, prompt: 9}]"});
  const std::vector<RequestData> among =
      data_of({.cache = "cache: {block_size: 2, shuffle_seed: 4}",
               .requests = "requests: [{id: a, prompt: 8}, {id: x, prompt: 20}]",
               .rest = "scheduler: {max_batched_tokens: 3}"});
  const auto prefix = [](const HostRows& rows, std::size_t count) {
    return std::vector<std::byte>(
        rows.bytes.begin(),
        rows.bytes.begin() + static_cast<std::ptrdiff_t>(count * rows.row_bytes));
  };
  EXPECT_EQ(alone[0].q.bytes, prefix(among[1].q, 9));
  EXPECT_EQ(alone[0].k.bytes, prefix(among[1].k, 9));
  EXPECT_EQ(alone[0].v.bytes, prefix(among[1].v, 9));
}

TEST(Data, OfASharedPrefixIsThatOfItsSourceThroughAChain) {
  const std::vector<RequestData> data = data_of(
      {.requests = "requests: [{id: a, prompt: 4}, {id: b, prompt: 8, shared_prefix: {request: a, "
                   "tokens: 3}}, {id: c, prompt: 9, shared_prefix: {request: b, tokens: 6}}]"});
  const auto is_same = [&data](std::size_t one, std::size_t other, std::size_t token) {
    const std::size_t bytes = data[one].k.row_bytes;
    return std::memcmp(data[one].k.row(token), data[other].k.row(token), bytes) == 0 &&
           std::memcmp(data[one].v.row(token), data[other].v.row(token), bytes) == 0 &&
           std::memcmp(data[one].q.row(token), data[other].q.row(token), data[one].q.row_bytes) ==
               0;
  };
  for (std::size_t token = 0; token < 4; ++token) {
    EXPECT_EQ(is_same(0, 1, token), token < 3) << token;
    EXPECT_EQ(is_same(0, 2, token), token < 3) << token;
  }
  for (std::size_t token = 0; token < 8; ++token) {
    EXPECT_EQ(is_same(1, 2, token), token < 6) << token;
  }
}

TEST(Data, OfModeCountHasZeroQueriesAndRandomKeys) {
  const std::vector<RequestData> random = data_of({});
  const std::vector<RequestData> count = data_of({}, DataMode::count);
  EXPECT_THAT(count[0].q.bytes, testing::Each(std::byte{0}));
  EXPECT_EQ(count[0].k.bytes, random[0].k.bytes);
  EXPECT_EQ(count[0].v.bytes, random[0].v.bytes);
}

TEST(Data, OfModePoisonIsThatOfModeRandom) {
  const std::vector<RequestData> random = data_of({});
  const std::vector<RequestData> poison = data_of({}, DataMode::poison);
  EXPECT_EQ(poison[0].q.bytes, random[0].q.bytes);
  EXPECT_EQ(poison[0].k.bytes, random[0].k.bytes);
  EXPECT_EQ(poison[0].v.bytes, random[0].v.bytes);
}

TEST(Data, IsTheSameNumbersInEveryDTypeUpToRounding) {
  const auto text = [](const std::string& dtype) {
    return ScenarioText{
        .model = "model: {num_heads_q: 4, num_heads_kv: 2, head_dim: 64, dtype: " + dtype + "}"};
  };
  const std::vector<float> exact = values_of(data_of(text("f32"))[0].k, DType::f32);
  const std::vector<float> f16 = values_of(data_of(text("f16"))[0].k, DType::f16);
  const std::vector<float> bf16 = values_of(data_of(text("bf16"))[0].k, DType::bf16);
  ASSERT_EQ(exact.size(), f16.size());
  ASSERT_EQ(exact.size(), bf16.size());
  for (std::size_t i = 0; i < exact.size(); ++i) {
    // Round to nearest: half a unit in the last of 11 and 8 significant bits; the smallest f16
    // subnormal is 2^-24.
    const float magnitude = std::fabs(exact[i]);
    ASSERT_LE(std::fabs(f16[i] - exact[i]), std::max(magnitude * 0x1p-11F, 0x1p-25F));
    ASSERT_LE(std::fabs(bf16[i] - exact[i]), magnitude * 0x1p-8F);
  }
}

/// The distribution that data.cpp promises: scores of both signs, up to about 10, and a softmax in
/// which several keys count and which looks different to different queries.
class Distribution : public testing::TestWithParam<int> {};

TEST_P(Distribution, IsNeitherFlatNorOneHot) {
  const int head_dim = GetParam();
  const std::vector<RequestData> data = data_of(
      {.model = "model: {num_heads_q: 4, num_heads_kv: 2, head_dim: " + std::to_string(head_dim) +
                ", dtype: bf16}",
       .requests = "requests: [{id: a, prompt: 128}]"});
  const auto d = static_cast<std::size_t>(head_dim);
  const double scale = 1.0 / std::sqrt(static_cast<double>(head_dim));
  const std::vector<float> q = values_of(data[0].q);
  const std::vector<float> k = values_of(data[0].k);
  double largest = 0.0;
  double entropy_sum = 0.0;
  double needle_sum = 0.0;
  constexpr std::size_t kTokens = 128;
  for (std::size_t token = 0; token < kTokens; ++token) {
    for (std::size_t head = 0; head < 4; ++head) {
      const std::span<const float> query{&q[(token * 4 + head) * d], d};
      const Weights attention =
          attend(query, std::span<const float>{k}.subspan(head / 2 * d), kTokens, 2 * d, scale);
      double entropy = 0.0;
      for (std::size_t key = 0; key < kTokens; ++key) {
        largest = std::max(largest, std::fabs(attention.scores[key]));
        entropy -= attention.weights[key] * std::log(attention.weights[key] + 1e-300);
      }
      entropy_sum += entropy;
      needle_sum += *std::max_element(attention.weights.begin(), attention.weights.end());
    }
  }
  // exp(mean entropy) is the number of keys that count: of 128, neither 1 nor all.
  const double effective_keys = std::exp(entropy_sum / (kTokens * 4.0));
  RecordProperty("largest_score", std::to_string(largest));
  RecordProperty("effective_keys", std::to_string(effective_keys));
  EXPECT_GT(largest, 4.0);
  EXPECT_LT(largest, 12.0);
  EXPECT_GT(effective_keys, 4.0);
  EXPECT_LT(effective_keys, 64.0);
  EXPECT_GT(needle_sum / (kTokens * 4.0), 0.05);
  EXPECT_LT(needle_sum / (kTokens * 4.0), 0.6);
}

/// Pages weigh differently: the mean score over 8 keys differs between groups by units, whatever
/// the query.
TEST_P(Distribution, WeighsPagesUnequally) {
  const int head_dim = GetParam();
  const std::vector<RequestData> data = data_of(
      {.model = "model: {num_heads_q: 1, num_heads_kv: 1, head_dim: " + std::to_string(head_dim) +
                ", dtype: f32}",
       .requests = "requests: [{id: a, prompt: 128}]"});
  const auto d = static_cast<std::size_t>(head_dim);
  const std::vector<float> q = values_of(data[0].q, DType::f32);
  const std::vector<float> k = values_of(data[0].k, DType::f32);
  std::vector<double> page_means(16, 0.0);
  for (std::size_t token = 0; token < 128; ++token) {
    const Weights attention = attend(std::span<const float>{&q[token * d], d}, k, 128, d,
                                     1.0 / std::sqrt(static_cast<double>(head_dim)));
    for (std::size_t key = 0; key < 128; ++key) {
      page_means[key / 8] += attention.scores[key] / (8.0 * 128.0);
    }
  }
  const auto [low, high] = std::minmax_element(page_means.begin(), page_means.end());
  EXPECT_GT(*high - *low, 2.0);
  EXPECT_LT(*high - *low, 6.0);
}

INSTANTIATE_TEST_SUITE_P(HeadDims, Distribution, testing::Values(32, 64, 128));

TEST(Data, KeepsScoresWhenTheScenarioScalesThem) {
  // q is divided by what softmax_scale multiplies, so scores do not depend on it.
  const auto text = [](const std::string& scale) {
    return ScenarioText{.model =
                            "model: {num_heads_q: 1, num_heads_kv: 1, head_dim: 64, dtype: f32, "
                            "softmax_scale: " +
                            scale + "}"};
  };
  const std::vector<float> normal = values_of(data_of(text("0.125"))[0].q, DType::f32);
  const std::vector<float> half = values_of(data_of(text("0.0625"))[0].q, DType::f32);
  ASSERT_EQ(normal.size(), half.size());
  for (std::size_t i = 0; i < normal.size(); ++i) ASSERT_EQ(half[i], 2.0F * normal[i]);
}

std::vector<float> sinks_of(const std::string& sinks, DataMode mode, const std::string& rest = "") {
  const std::string text =
      "model: {num_heads_q: 4, num_heads_kv: 2, head_dim: 64, dtype: bf16" + sinks +
      "}\ntopology: {cp: 2}\ncache: {block_size: 16}\nrequests: [{id: a, prompt: 9}]\n" + rest;
  return sink_logits(parse_scenario(text, "x.yaml"), mode);
}

TEST(Sinks, AreDrawnFromTheSeedOrGivenAndZeroWhereTheyAreCounted) {
  const std::vector<float> drawn = sinks_of(", sinks: true", DataMode::random);
  EXPECT_EQ(drawn.size(), 4U);
  for (const float logit : drawn) {
    EXPECT_GE(logit, 0.0F);
    EXPECT_LT(logit, 6.0F);
  }
  EXPECT_NE(drawn[0], drawn[1]);
  EXPECT_EQ(drawn, sinks_of(", sinks: true", DataMode::poison));
  EXPECT_NE(drawn, sinks_of(", sinks: true", DataMode::random, "data: {seed: 1}\n"));
  const std::string given = ", sinks: [1, -2, 3, 4]";
  EXPECT_EQ(sinks_of(given, DataMode::random), (std::vector<float>{1.0F, -2.0F, 3.0F, 4.0F}));
  EXPECT_EQ(sinks_of(given, DataMode::count), std::vector<float>(4, 0.0F));
  EXPECT_TRUE(sinks_of("", DataMode::random).empty());
  EXPECT_TRUE(sinks_of(", sinks: false", DataMode::count).empty());
}

TEST(Data, StaysFiniteInF16AtTheSmallestScale) {
  const std::vector<RequestData> data =
      data_of({.model = "model: {num_heads_q: 1, num_heads_kv: 1, head_dim: 32, dtype: f16, "
                        "softmax_scale: 0.00091}"});
  for (const float value : values_of(data[0].q, DType::f16)) ASSERT_TRUE(std::isfinite(value));
}

}  // namespace
}  // namespace cpverify
