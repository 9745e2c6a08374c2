#pragma once

#include <cstddef>

#include "cpverify/dtype.hpp"

namespace cpverify::reference {

/// The exact values of `count` little-endian f32, f16 or bf16 numbers. Throws std::invalid_argument
/// for an integer dtype. Source: IEEE 754-2019, 3.4; bf16 is the upper half of a binary32.
void widen(DType dtype, const std::byte* source, std::size_t count, double* target);

}  // namespace cpverify::reference
