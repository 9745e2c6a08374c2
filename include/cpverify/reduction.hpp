#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace cpverify {

/// In which order, and with which roundings, collectives add up the ranks' values. NCCL promises
/// none: it depends on algorithm, topology, channels and message size. docs/simulated_machine.md
/// says what each does.
enum class ReductionOrder : std::uint8_t {
  ring,            ///< Round the ring, from the rank behind the chunk's own; rounded at every hop.
  tree,            ///< Up a binary tree, each half of the buffer up its own; rounded at every node.
  rank_ascending,  ///< In f32 from rank 0 on (f64: in f64), rounded once.
  adversarial,     ///< A random order for every element; rounded at every addition.
};

/// A policy is a function of these values: the same ones give the same bits.
struct ReductionSpec {
  ReductionOrder order = ReductionOrder::ring;
  std::vector<std::uint32_t> ring;  ///< Ranks in the order of the ring; empty for 0, 1, 2, ...
  std::uint32_t channels = 1;  ///< Contiguous parts of the buffer, each with its own ring loop.
  /// Elements of a chunk; 0 to divide each channel's part evenly over the ranks.
  std::uint64_t chunk_elems = 0;
  std::uint64_t seed = 0;  ///< Of adversarial.
};

inline constexpr std::array kReductionOrders{ReductionOrder::ring, ReductionOrder::tree,
                                             ReductionOrder::rank_ascending,
                                             ReductionOrder::adversarial};

[[nodiscard]] std::string_view name(ReductionOrder order) noexcept;

/// "ring(0 1 2 3; channels 1; chunk even)", "tree", "rank_ascending", "adversarial(7)".
[[nodiscard]] std::string text(const ReductionSpec& reduction);

}  // namespace cpverify
