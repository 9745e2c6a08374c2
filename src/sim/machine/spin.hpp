#pragma once

#include <cstdint>

#include "sim/machine/warp.hpp"

namespace cpverify::sim {

/// How a warp waits for memory that others write.
enum class Spin : std::uint8_t {
  none,
  polling,  ///< Loops over strong loads or atomics without a store; something else changes.
  endless,  ///< Its whole state repeats and it writes nothing: only another warp can free it.
};

/// Instructions of a loop that is recognised as spinning, at most.
inline constexpr std::uint64_t kProbeInstructions = 1U << 10;

/// Runs a ready warp for kProbeInstructions, and less when its state repeats or it stops.
[[nodiscard]] Spin run_probe(Warp& warp, std::uint32_t register_bytes);

}  // namespace cpverify::sim
