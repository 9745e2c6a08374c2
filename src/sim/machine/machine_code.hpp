#pragma once

#include <cstdint>

#include "sim/isa/insn.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/machine/warp.hpp"

namespace cpverify::sim {

/// Which vectors of the host execute the lanes. Results are the same.
enum class VectorWidth : std::uint8_t {
  bits_256,  ///< AVX2: every host we run on.
  bits_512,  ///< AVX-512 F, BW, CD, DQ and VL.
};

/// The hot part of the machine. Its sources are compiled once per width; the code of 512 bits is
/// linked on its own, and of it only the table can be seen from outside: no function that the rest
/// of the program calls needs AVX-512.
struct MachineCode {
  /// The handler of a form; null when its row exists but not this combination of suffixes.
  Handler (*find_handler)(const Form&) = nullptr;
  /// Runs a warp until it stops, its time slice ends or the launch is aborted.
  void (*run_warp)(Warp&, std::uint64_t slice) = nullptr;
  /// The same, and ends before the next memory or synchronisation instruction after `points` of
  /// them.
  void (*run_warp_to_point)(Warp&, std::uint64_t slice, std::uint32_t points) = nullptr;
};

[[nodiscard]] const MachineCode& machine_code_256() noexcept;
[[nodiscard]] const MachineCode& machine_code_512() noexcept;

/// The widest that this host has.
[[nodiscard]] VectorWidth widest_vectors() noexcept;

/// `width` must not be wider than widest_vectors().
[[nodiscard]] const MachineCode& machine_code(VectorWidth width) noexcept;

}  // namespace cpverify::sim
