#pragma once

#include <span>

#include "cpverify/mma_accumulation.hpp"

namespace cpverify::numerics {

/// Bits below the last one of an f32 significand that the truncating policy keeps while it adds.
/// Source: Khattak, Mikaitis 2025, "Accurate models of NVIDIA tensor cores": two on Hopper.
inline constexpr int kTruncationExtraBits = 2;

/// c + sum of a[k] * b[k] as one matrix instruction of that policy takes it. `a` and `b` have the
/// same size, at most 64, and hold values of at most 11 significant bits: their products are exact
/// in f32, but for its range. A NaN is canonical.
///
/// truncating, source: Fasi, Higham, Mikaitis, Pranesh 2021, "Numerical behavior of NVIDIA tensor
/// cores": products are exact and not normalised, so that the exponent of one is the sum of its
/// factors'; every addend is cut, towards zero, to a grid 23 + kTruncationExtraBits binary places
/// below the largest exponent of all, c's included; the sum is exact and cut to f32.
[[nodiscard]] float accumulate(MmaAccumulation policy, std::span<const float> a,
                               std::span<const float> b, float c) noexcept;

}  // namespace cpverify::numerics
