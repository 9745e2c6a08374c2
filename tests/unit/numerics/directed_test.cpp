#include "numerics/directed.hpp"

#include <bit>
#include <cstdint>
#include <limits>
#include <vector>

#include <gtest/gtest.h>
#include <immintrin.h>

#include "numerics/float32.hpp"
#include "numerics/float64.hpp"

namespace cpverify::numerics {
namespace {

constexpr float kMax = std::numeric_limits<float>::max();
constexpr double kMax64 = std::numeric_limits<double>::max();
constexpr double kInfinity64 = std::numeric_limits<double>::infinity();

/// What the processor's own fma gives while its rounding mode is another.
class HostRounding {
 public:
  explicit HostRounding(Direction direction) : before_{_mm_getcsr()} {
    const std::uint32_t mode = direction == Direction::down ? 1
                               : direction == Direction::up ? 2
                                                            : 3;
    _mm_setcsr((before_ & ~0x6000U) | mode << 13);
  }
  ~HostRounding() { _mm_setcsr(before_); }
  HostRounding(const HostRounding&) = delete;
  HostRounding& operator=(const HostRounding&) = delete;
  HostRounding(HostRounding&&) = delete;
  HostRounding& operator=(HostRounding&&) = delete;

 private:
  std::uint32_t before_;
};

/// Volatile keeps the operation between the changes of the mode.
template <class T, class Operation>
T on_host(Direction direction, Operation operation) {
  volatile T result{};
  {
    const HostRounding rounding{direction};
    result = operation();
  }
  return canonical(static_cast<T>(result));
}

template <class T>
T host_fma(T a, T b, T c, Direction direction) {
  const volatile T x = a;
  const volatile T y = b;
  const volatile T z = c;
  return on_host<T>(direction, [&] {
    if constexpr (sizeof(T) == 4) return __builtin_fmaf(x, y, z);
    if constexpr (sizeof(T) == 8) return __builtin_fma(x, y, z);
  });
}

template <class T>
T host_add(T a, T b, Direction direction) {
  const volatile T x = a;
  const volatile T y = b;
  return on_host<T>(direction, [&] { return x + y; });
}

template <class T>
T host_multiply(T a, T b, Direction direction) {
  const volatile T x = a;
  const volatile T y = b;
  return on_host<T>(direction, [&] { return x * y; });
}

template <class T>
auto bits(T value) {
  if constexpr (sizeof(T) == 4) return to_bits(value);
  if constexpr (sizeof(T) == 8) return to_bits64(value);
}

constexpr Direction kDirections[] = {Direction::to_zero, Direction::down, Direction::up};

template <class T>
void expect_as_on_the_host(T a, T b, T c) {
  for (const Direction direction : kDirections) {
    ASSERT_EQ(bits(fma_directed(a, b, c, direction)), bits(host_fma(a, b, c, direction)))
        << a << " * " << b << " + " << c << ", direction " << static_cast<int>(direction);
    ASSERT_EQ(bits(add_directed(a, b, direction)), bits(host_add(a, b, direction)))
        << a << " + " << b << ", direction " << static_cast<int>(direction);
    ASSERT_EQ(bits(multiply_directed(a, b, direction)), bits(host_multiply(a, b, direction)))
        << a << " * " << b << ", direction " << static_cast<int>(direction);
  }
}

/// Both signs of zero, the ends of each range and their neighbours, 1 and its neighbours, values
/// whose products meet those ends.
template <class T>
std::vector<T> edges() {
  using Limits = std::numeric_limits<T>;
  const T one_up = T{1} + Limits::epsilon();
  const std::vector<T> magnitudes = {T{0},
                                     Limits::denorm_min(),
                                     Limits::denorm_min() * 3,
                                     Limits::min() - Limits::denorm_min(),
                                     Limits::min(),
                                     Limits::min() * one_up,
                                     Limits::epsilon() / 2,
                                     T{0.5},
                                     T{1} - Limits::epsilon() / 2,
                                     T{1},
                                     one_up,
                                     T{3},
                                     T{1} / T{3},
                                     T{1} / Limits::epsilon(),
                                     Limits::max() / 2,
                                     Limits::max(),
                                     Limits::infinity()};
  std::vector<T> values;
  for (const T magnitude : magnitudes) {
    values.push_back(magnitude);
    values.push_back(-magnitude);
  }
  values.push_back(Limits::quiet_NaN());
  return values;
}

template <class T>
void expect_edges_as_on_the_host() {
  const std::vector<T> values = edges<T>();
  for (const T a : values) {
    for (const T b : values) {
      for (const T c : values) {
        expect_as_on_the_host(a, b, c);
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

/// Random bits; a third of the addends is near minus the product, so that what is left is small.
template <class T, class Bits>
void expect_random_as_on_the_host() {
  std::uint64_t state = 1;
  const auto draw = [&] {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return std::bit_cast<T>(static_cast<Bits>(state));
  };
  for (int i = 0; i < 200000; ++i) {
    const T a = draw();
    const T b = draw();
    T c = draw();
    if (i % 3 == 0)
      c = std::bit_cast<T>(static_cast<Bits>(std::bit_cast<Bits>(-(a * b)) + (state & 3U)));
    expect_as_on_the_host(a, b, c);
    if (testing::Test::HasFatalFailure()) return;
  }
}

TEST(DirectedRounding, OfF32IsTheHostsAtEveryEdge) {
  expect_edges_as_on_the_host<float>();
}
TEST(DirectedRounding, OfF64IsTheHostsAtEveryEdge) {
  expect_edges_as_on_the_host<double>();
}
TEST(DirectedRounding, OfF32IsTheHostsForRandomBits) {
  expect_random_as_on_the_host<float, std::uint32_t>();
}
TEST(DirectedRounding, OfF64IsTheHostsForRandomBits) {
  expect_random_as_on_the_host<double, std::uint64_t>();
}

// 1 + 2^-60 lies between 1 and the next number, however far below the last bit.
TEST(DirectedRounding, SeesWhatIsFarBelowTheLastBit) {
  EXPECT_EQ(add_directed(1.0F, 0x1p-60F, Direction::to_zero), 1.0F);
  EXPECT_EQ(add_directed(1.0F, 0x1p-60F, Direction::up), 1.0F + 0x1p-23F);
  EXPECT_EQ(add_directed(1.0F, -0x1p-60F, Direction::to_zero), 1.0F - 0x1p-24F);
  EXPECT_EQ(add_directed(1.0, 0x1p-1074, Direction::up), 1.0 + 0x1p-52);
  EXPECT_EQ(add_directed(1.0, -0x1p-1074, Direction::down), 1.0 - 0x1p-53);
  // (2^-1074)^2 = 2^-2148 is no 0, nor is it there when rounded towards 0.
  EXPECT_EQ(multiply_directed(0x1p-1074, 0x1p-1074, Direction::up), 0x1p-1074);
  EXPECT_EQ(multiply_directed(0x1p-1074, 0x1p-1074, Direction::to_zero), 0.0);
  // 2^600 * 2^600 - 2^1023: the product alone overflows, and so does the sum.
  EXPECT_EQ(fma_directed(0x1p600, 0x1p600, -0x1p1023, Direction::down), kMax64);
  EXPECT_EQ(fma_directed(0x1p600, 0x1p600, -0x1p1023, Direction::up), kInfinity64);
}

TEST(DirectedRounding, StopsAtTheLargestNumberOnTheWayToZero) {
  EXPECT_EQ(add_directed(kMax, kMax, Direction::to_zero), kMax);
  EXPECT_EQ(add_directed(kMax, kMax, Direction::up), std::numeric_limits<float>::infinity());
  EXPECT_EQ(multiply_directed(-kMax, 2.0F, Direction::up), -kMax);
}

// The manual's only zero that depends on the rounding: x - x is -0 when rounded down.
TEST(DirectedRounding, DifferencesOfEqualsAreMinusZeroOnlyWhenRoundedDown) {
  EXPECT_EQ(to_bits(add_directed(3.0F, -3.0F, Direction::down)), kSignBit32);
  EXPECT_EQ(to_bits(add_directed(3.0F, -3.0F, Direction::up)), 0U);
  EXPECT_EQ(to_bits(add_directed(3.0F, -3.0F, Direction::to_zero)), 0U);
  EXPECT_EQ(to_bits64(add_directed(3.0, -3.0, Direction::down)), kSignBit64);
}

}  // namespace
}  // namespace cpverify::numerics
