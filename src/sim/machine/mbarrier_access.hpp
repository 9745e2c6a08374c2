#pragma once

#include <cstddef>
#include <cstdint>

#include "sim/isa/insn.hpp"
#include "sim/machine/cta.hpp"
#include "sim/machine/mbarrier.hpp"
#include "sim/machine/warp.hpp"

namespace cpverify::sim {

/// A lane's object.
struct MbarrierUse {
  Warp* warp = nullptr;
  const Insn* insn = nullptr;
  std::uint32_t lane = 0;
  std::uint32_t offset = 0;  ///< Of the object in shared memory.

  template <class T>
  [[nodiscard]] T operand(std::size_t index) const {
    return warp->row<const T>(insn->r[index])[lane];
  }
  [[nodiscard]] Cta& cta() const { return *warp->cta; }
};

/// The live object; null when there is none, after reporting it.
[[nodiscard]] Mbarrier* find_mbarrier(const MbarrierUse& use);

/// An operation of a warp on an mbarrier object of its CTA.
struct MbarrierChange {
  Warp* warp = nullptr;
  const Insn* insn = nullptr;
  std::uint32_t offset = 0;  ///< Of the object in shared memory.
  std::uint64_t phase = 0;   ///< Before the operation.
};

/// The object has changed: writes it to shared memory and tells the observers, of an arrival
/// (unless it orders nothing) and of a phase that it has completed.
void settle(const MbarrierChange& change, bool is_release);

}  // namespace cpverify::sim
