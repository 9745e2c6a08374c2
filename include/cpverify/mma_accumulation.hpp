#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace cpverify {

/// How a matrix instruction adds up the products of one element of D. The PTX manual leaves order
/// and rounding open; docs/simulated_machine.md says what each policy does.
enum class MmaAccumulation : std::uint8_t {
  fma_chain,   ///< c, then one f32 fma after the other over ascending k.
  pairwise,    ///< Products by twos, their sums by twos, and so on; c last; f32, to nearest.
  truncating,  ///< All addends cut to the grid of the largest one, added exactly, cut to f32.
};

inline constexpr std::array kMmaAccumulations{MmaAccumulation::fma_chain, MmaAccumulation::pairwise,
                                              MmaAccumulation::truncating};

[[nodiscard]] constexpr std::string_view name(MmaAccumulation accumulation) noexcept {
  switch (accumulation) {
    case MmaAccumulation::fma_chain:
      return "fma_chain";
    case MmaAccumulation::pairwise:
      return "pairwise";
    case MmaAccumulation::truncating:
      return "truncating";
  }
  return "?";
}

}  // namespace cpverify
