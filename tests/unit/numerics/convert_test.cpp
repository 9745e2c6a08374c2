#include "numerics/convert.hpp"

#include <cstddef>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cpverify/dtype.hpp"

namespace cpverify::numerics {
namespace {

using testing::ElementsAre;

TEST(Narrow, WritesLittleEndianElements) {
  // 1.5 = 0x3fc00000 in f32, 0x3e00 in f16, 0x3fc0 in bf16; -2 = 0xc0000000, 0xc000, 0xc000.
  const std::vector<float> values{1.5F, -2.0F};
  EXPECT_THAT(narrow(DType::f32, values),
              ElementsAre(std::byte{0}, std::byte{0}, std::byte{0xc0}, std::byte{0x3f},
                          std::byte{0}, std::byte{0}, std::byte{0}, std::byte{0xc0}));
  EXPECT_THAT(narrow(DType::f16, values),
              ElementsAre(std::byte{0}, std::byte{0x3e}, std::byte{0}, std::byte{0xc0}));
  EXPECT_THAT(narrow(DType::bf16, values),
              ElementsAre(std::byte{0xc0}, std::byte{0x3f}, std::byte{0}, std::byte{0xc0}));
}

TEST(Widen, InvertsNarrowOnRepresentableValues) {
  const std::vector<float> values{0.0F, -0.0F, 1.0F, -0.25F, 96.0F};
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    EXPECT_EQ(widen(dtype, narrow(dtype, values)), values) << name(dtype);
  }
}

TEST(Widen, OfNothingIsEmpty) {
  for (const DType dtype : {DType::f32, DType::f16, DType::bf16}) {
    EXPECT_TRUE(widen(dtype, {}).empty());
    EXPECT_TRUE(narrow(dtype, {}).empty());
  }
}

TEST(WidenDeathTest, RefusesHalfAnElementAndIntegers) {
  const std::vector<std::byte> three(3);
  EXPECT_DEATH(static_cast<void>(widen(DType::f16, three)), "size_bytes");
  EXPECT_DEATH(static_cast<void>(narrow(DType::i32, {})), "dtype");
}

}  // namespace
}  // namespace cpverify::numerics
