#include "numerics/mma_accumulation.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>

#include "cpverify/mma_accumulation.hpp"
#include "numerics/float32.hpp"
#include "support/check.hpp"

namespace cpverify::numerics {
namespace {

constexpr std::size_t kMaxDepth = 64;
constexpr int kFractionBits = 23;
constexpr int kBias64 = 1023;
constexpr int kFractionBits64 = 52;

float add_in_chain(std::span<const float> a, std::span<const float> b, float c) {
  for (std::size_t k = 0; k < a.size(); ++k) c = __builtin_fmaf(a[k], b[k], c);
  return canonical(c);
}

float add_pairwise(std::span<const float> a, std::span<const float> b, float c) {
  std::array<float, kMaxDepth> sums{};
  for (std::size_t k = 0; k < a.size(); ++k) sums[k] = a[k] * b[k];
  std::size_t count = a.size();
  while (count > 1) {
    for (std::size_t i = 0; i < count / 2; ++i) sums[i] = sums[2 * i] + sums[2 * i + 1];
    if (count % 2 != 0) sums[count / 2] = sums[count - 1];
    count = (count + 1) / 2;
  }
  return canonical(sums[0] + c);
}

/// Exponent of a finite value that is not 0, as if its significand were in [1, 2).
int exponent_of(double value) {
  const auto bits = std::bit_cast<std::uint64_t>(value);
  return static_cast<int>((bits >> kFractionBits64) & 0x7ff) - kBias64;
}

/// 2^exponent for -1022 <= exponent <= 1023.
double power_of_two(int exponent) {
  return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + kBias64) << kFractionBits64);
}

bool is_finite(float value) {
  return (to_bits(value) & kInfinityBits32) != kInfinityBits32;
}

/// The f32 next to `value` towards zero, or infinity beyond the range.
float cut_to_f32(double value) {
  auto nearest = static_cast<float>(value);
  const auto magnitude = [](double number) { return number < 0 ? -number : number; };
  if (is_finite(nearest) && magnitude(static_cast<double>(nearest)) > magnitude(value)) {
    return from_bits(to_bits(nearest) - 1);
  }
  // Rounding may reach infinity where the cut value is the largest number.
  if (!is_finite(nearest) && magnitude(value) < power_of_two(128)) {
    return from_bits((to_bits(nearest) & kSignBit32) | (kInfinityBits32 - 1));
  }
  return nearest;
}

/// An addend as the hardware aligns it: factors are exact in double, and so is their product.
struct Addend {
  double value = 0;
  int exponent = 0;  ///< Of a product the sum of its factors'; of no meaning for 0.
};

Addend product_of(float a, float b) {
  Addend addend{static_cast<double>(a) * static_cast<double>(b), 0};
  if (addend.value != 0) {
    addend.exponent = exponent_of(static_cast<double>(a)) + exponent_of(static_cast<double>(b));
  }
  return addend;
}

float add_on_grid(std::span<const Addend> addends) {
  int largest = -kBias64;
  bool is_all_negative_zero = true;
  for (const Addend& addend : addends) {
    if (addend.value != 0) largest = std::max(largest, addend.exponent);
    is_all_negative_zero =
        is_all_negative_zero && addend.value == 0 && std::bit_cast<std::int64_t>(addend.value) < 0;
  }
  if (largest == -kBias64) return is_all_negative_zero ? from_bits(kSignBit32) : 0.0F;
  const int grid = largest - kFractionBits - kTruncationExtraBits;
  std::int64_t sum = 0;
  for (const Addend& addend : addends) {
    // Below 2^28 in magnitude; the conversion cuts towards zero.
    sum += static_cast<std::int64_t>(addend.value * power_of_two(-grid));
  }
  return cut_to_f32(static_cast<double>(sum) * power_of_two(grid));
}

float add_truncating(std::span<const float> a, std::span<const float> b, float c) {
  std::array<Addend, kMaxDepth + 1> addends{};
  bool is_finite_all = is_finite(c);
  for (std::size_t k = 0; k < a.size(); ++k) {
    is_finite_all = is_finite_all && is_finite(a[k]) && is_finite(b[k]);
  }
  // Infinities and NaNs come out as in any other order.
  if (!is_finite_all) return add_in_chain(a, b, c);
  for (std::size_t k = 0; k < a.size(); ++k) addends[k] = product_of(a[k], b[k]);
  const auto wide = static_cast<double>(c);
  addends[a.size()] = {wide, wide != 0 ? exponent_of(wide) : 0};
  return add_on_grid(std::span<const Addend>{addends}.first(a.size() + 1));
}

}  // namespace

float accumulate(MmaAccumulation policy, std::span<const float> a, std::span<const float> b,
                 float c) noexcept {
  CPVERIFY_CHECK(a.size() == b.size() && !a.empty() && a.size() <= kMaxDepth);
  switch (policy) {
    case MmaAccumulation::pairwise:
      return add_pairwise(a, b, c);
    case MmaAccumulation::truncating:
      return add_truncating(a, b, c);
    case MmaAccumulation::fma_chain:
      break;
  }
  return add_in_chain(a, b, c);
}

}  // namespace cpverify::numerics
