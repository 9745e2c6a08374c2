#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpverify/observer.hpp"
#include "sim/isa/insn.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/machine/checked_bytes.hpp"
#include "sim/machine/warp.hpp"

namespace cpverify::sim {

/// The addresses of one memory instruction.
struct AddressOperand {
  std::uint32_t row = 0;
  std::uint8_t width_bytes = 8;
  Space space = Space::generic;
  std::int64_t offset = 0;
};

/// What the lanes do there; size_bytes is a power of two, and the alignment that is needed.
struct AccessShape {
  AccessKind kind = AccessKind::read;
  std::uint32_t size_bytes = 4;
};

struct AccessRequest {
  AddressOperand address;
  AccessShape shape;
};

/// Lanes whose addresses lie in one memory object, checked: in bounds, aligned, not freed.
struct Access {
  std::uint32_t lanes = 0;  ///< Not empty.
  CheckedBytes* bytes = nullptr;
  bool is_dense = false;    ///< Lane i is at offsets[0] + i * size_bytes, for all 32 lanes.
  bool is_uniform = false;  ///< All 32 lanes are at offsets[0].
  /// In `bytes`, of all 32 lanes: those that are not active repeat the first active one.
  alignas(64) std::array<std::uint64_t, kLanes> offsets{};
};

/// The first part of `lanes` that lie in one memory object; call again for the rest (generic
/// addresses may mix spaces, global ones allocations). A load of unwritten bytes goes on when the
/// warp is followed (then it is traced), any other read of them is reported and goes on; a write
/// marks its bytes written. Async reads and writes only check bounds. False when the access is bad,
/// which has been reported and aborts the launch, or when the instruction must be done again
/// (Warp::wants_undefined): nothing may have been written before.
[[nodiscard]] bool begin_access(Warp& warp, const Insn* insn, std::uint32_t lanes,
                                const AccessRequest& request, Access& access);

/// The first half of begin_access(): finds and checks the place; nobody is told, nothing is marked.
[[nodiscard]] bool locate(Warp& warp, const Insn* insn, std::uint32_t lanes,
                          const AccessRequest& request, Access& access);

[[nodiscard]] inline AddressOperand address_operand(const Insn* insn, std::size_t operand) {
  return {insn->r[operand], insn->address_bytes, insn->space, insn->offset};
}

}  // namespace cpverify::sim
