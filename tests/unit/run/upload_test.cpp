#include "run/upload.hpp"

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>

#include "cpverify/data.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/step.hpp"

namespace cpverify::run {
namespace {

/// Two requests; row p of tensor t of request r holds floats 1000 r + 100 t + 10 p + head.
std::vector<RequestData> numbered_data() {
  constexpr std::size_t kTokens = 4;
  constexpr std::size_t kHeads = 3;
  std::vector<RequestData> data(2);
  for (std::size_t request = 0; request < 2; ++request) {
    HostRows* tensors[] = {&data[request].q, &data[request].k, &data[request].v};
    for (std::size_t tensor = 0; tensor < 3; ++tensor) {
      tensors[tensor]->row_bytes = kHeads * sizeof(float);
      tensors[tensor]->bytes.resize(kTokens * kHeads * sizeof(float));
      for (std::size_t i = 0; i < kTokens * kHeads; ++i) {
        const auto value =
            static_cast<float>(1000 * request + 100 * tensor + 10 * (i / kHeads) + i % kHeads);
        std::memcpy(tensors[tensor]->bytes.data() + i * sizeof value, &value, sizeof value);
      }
    }
  }
  return data;
}

std::vector<float> floats(const std::vector<std::byte>& bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

TEST(MetadataBytes, NarrowsToTheBufferType) {
  Buffer buffer{"kv_lens", BufferRole::metadata, DType::i32, {3}, {1, -1, 258}, {}, {}};
  const std::vector<std::byte> bytes = metadata_bytes(buffer);
  std::vector<std::int32_t> values(3);
  ASSERT_EQ(bytes.size(), 12U);
  std::memcpy(values.data(), bytes.data(), 12);
  EXPECT_EQ(values, (std::vector<std::int32_t>{1, -1, 258}));
}

TEST(MetadataBytes, ADefectivePlanWithFewerValuesThanElementsIsZeroFilled) {
  Buffer buffer{"kv_lens", BufferRole::metadata, DType::i64, {3}, {7}, {}, {}};
  const std::vector<std::byte> bytes = metadata_bytes(buffer);
  std::vector<std::int64_t> values(3);
  std::memcpy(values.data(), bytes.data(), 24);
  EXPECT_EQ(values, (std::vector<std::int64_t>{7, 0, 0}));
}

// Step: request 1 tokens 2..3, then request 0 token 0; heads 1..2 of k (tensor 1); one pad row.
TEST(InputBytes, FlattensRowsSlicesHeadsAndPads) {
  Step step;
  step.rows.resize(2);
  step.rows[0].request = RequestId{1};
  step.rows[0].computed = 2;
  step.rows[0].scheduled = 2;
  step.rows[1].request = RequestId{0};
  step.rows[1].scheduled = 1;
  Buffer buffer{
      "k", BufferRole::input, DType::f32, {4, 2, 1}, {}, InputSlice{TensorKind::k, {1, 2}}, {}};
  EXPECT_EQ(floats(input_bytes(buffer, step, numbered_data(), std::byte{0})),
            (std::vector<float>{1121, 1122, 1131, 1132, 101, 102, 0, 0}));
}

TEST(InputBytes, APoisonedPadRowIsNan) {
  Step step;
  Buffer buffer{
      "q", BufferRole::input, DType::f32, {1, 3, 1}, {}, InputSlice{TensorKind::q, {0, 3}}, {}};
  for (const float value :
       floats(input_bytes(buffer, step, numbered_data(), std::byte{kNanByte}))) {
    EXPECT_NE(value, value);
  }
}

TEST(SinkBytes, AreThoseOfTheBuffersHeads) {
  const Buffer buffer{
      "sinks", BufferRole::input, DType::f32, {2}, {}, InputSlice{TensorKind::sinks, {1, 2}}, {}};
  EXPECT_EQ(floats(sink_bytes(buffer, {0.5F, 1.5F, 2.5F, 3.5F})), (std::vector<float>{1.5F, 2.5F}));
}

// Pool of 2 blocks of 2 slots; request 0's token 3 is cached in slot 3.
TEST(InitialPoolBytes, HoldsCachedTokensAndCanariesElsewhere) {
  Problem problem;
  problem.cached.push_back({RequestId{0}, 3, 3});
  Buffer buffer{"v_pool", BufferRole::kv_pool, DType::f32, {2, 2, 3, 1}, {}, {}, {}};
  const std::vector<RequestData> data = numbered_data();
  const std::vector<float> pool =
      floats(initial_pool_bytes(buffer, {TensorKind::v, {0, 3}, false}, problem, data));
  ASSERT_EQ(pool.size(), 12U);
  EXPECT_EQ(std::vector<float>(pool.begin() + 9, pool.end()), (std::vector<float>{230, 231, 232}));
  for (std::size_t i = 0; i < 9; ++i) {
    EXPECT_GT(pool[i], 0.0F);  // Finite, positive, below 1: harmless when read by mistake,
    EXPECT_LT(pool[i], 1.0F);
    for (std::size_t j = 0; j < i; ++j) EXPECT_NE(pool[i], pool[j]);  // and told apart when moved.
  }
}

TEST(InitialPoolBytes, IsNanWhenPoisoned) {
  Buffer buffer{"k_pool", BufferRole::kv_pool, DType::bf16, {1, 2, 1, 1}, {}, {}, {}};
  const std::vector<std::byte> pool =
      initial_pool_bytes(buffer, {TensorKind::k, {0, 1}, true}, Problem{}, numbered_data());
  EXPECT_EQ(pool, std::vector<std::byte>(4, std::byte{0xff}));
}

}  // namespace
}  // namespace cpverify::run
