#include "sim/machine/matrix_descriptor.hpp"

#include <array>
#include <cstdint>

namespace cpverify::sim {

MatrixDescriptor MatrixDescriptor::decode(std::uint64_t bits, bool is_transposed) noexcept {
  constexpr std::array<std::uint32_t, 4> kPatternBytes{16, 128, 64, 32};
  const auto bytes = [bits](std::uint32_t position) {
    return static_cast<std::uint32_t>(bits >> position & 0x3fffU) << 4;
  };
  MatrixDescriptor descriptor;
  descriptor.start = bytes(0);
  descriptor.leading_bytes = bytes(16);
  descriptor.stride_bytes = bytes(32);
  descriptor.base_offset = static_cast<std::uint32_t>(bits >> 49 & 7U);
  descriptor.pattern_bytes = kPatternBytes[bits >> 62];
  descriptor.is_transposed = is_transposed;
  return descriptor;
}

}  // namespace cpverify::sim
