#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "cpverify/dtype.hpp"

namespace cpverify::numerics {

/// Little-endian elements of a floating dtype (f32, f16, bf16) as f32 values; exact.
/// `bytes` holds whole elements.
[[nodiscard]] std::vector<float> widen(DType dtype, std::span<const std::byte> bytes);

/// `values` rounded to a floating dtype (nearest, ties to even), as little-endian bytes.
[[nodiscard]] std::vector<std::byte> narrow(DType dtype, std::span<const float> values);

}  // namespace cpverify::numerics
