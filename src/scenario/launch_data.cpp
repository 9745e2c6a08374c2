#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "cpverify/dtype.hpp"
#include "cpverify/launch.hpp"
#include "numerics/convert.hpp"
#include "support/hash.hpp"
#include "support/rng.hpp"

namespace cpverify {
namespace {

/// Uniform in [-1, 1), a multiple of 2^-23.
float uniform(std::uint64_t random) noexcept {
  const auto top = static_cast<std::int32_t>(random >> 40);
  return static_cast<float>(top - (1 << 23)) * 0x1p-23F;
}

bool is_float(DType dtype) noexcept {
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

/// Element i under a key that depends on seed and buffer only, never on the other buffers.
std::uint64_t random_word(const LaunchBuffer& buffer, std::uint64_t seed, std::int64_t i) noexcept {
  Fnv1a hash;
  hash.add(seed);
  hash.add(std::string_view{buffer.name});
  return mix64(hash.value() ^ mix64(static_cast<std::uint64_t>(i)));
}

}  // namespace

std::vector<std::byte> initial_bytes(const LaunchBuffer& buffer, std::uint64_t seed) {
  if (buffer.fill == BufferFill::unwritten) return {};
  if (buffer.fill == BufferFill::values) return buffer.values;
  const std::size_t element = size_bytes(buffer.dtype);
  std::vector<std::byte> bytes(static_cast<std::size_t>(buffer.elements) * element);
  if (buffer.fill == BufferFill::zero) return bytes;
  const bool is_random = buffer.fill == BufferFill::random;
  std::vector<float> floats;
  for (std::int64_t i = 0; i < buffer.elements; ++i) {
    const std::uint64_t word =
        is_random ? random_word(buffer, seed, i) : static_cast<std::uint64_t>(i);
    if (is_float(buffer.dtype)) {
      floats.push_back(is_random ? uniform(word) : static_cast<float>(i));
    } else {
      std::memcpy(bytes.data() + static_cast<std::size_t>(i) * element, &word, element);
    }
  }
  return is_float(buffer.dtype) ? numerics::narrow(buffer.dtype, floats) : bytes;
}

}  // namespace cpverify
