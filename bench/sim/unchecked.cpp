#include "bench/sim/unchecked.hpp"

#include <cstddef>
#include <cstdint>

#include "sim/isa/insn.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/isa/type.hpp"
#include "sim/machine/checked_bytes.hpp"
#include "sim/machine/cta.hpp"
#include "sim/machine/global_memory.hpp"
#include "sim/machine/kernel.hpp"
#include "sim/machine/machine_code.hpp"
#include "sim/machine/plain_access.hpp"
#include "sim/machine/plain_moves.hpp"
#include "sim/machine/warp.hpp"

namespace cpverify::sim {
namespace {

/// Where all lanes are, side by side or at one place; no bytes when they are elsewhere, or nobody
/// has looked for the allocation yet.
template <std::uint32_t size_bytes>
PlainAccess find_place(Warp& warp, const Insn* insn, std::uint32_t row) {
  PlainAccess access;
  std::uint64_t address = 0;
  if (insn->address_bytes == 8) {
    const auto* const addresses = warp.row<const std::uint64_t>(row);
    if (!find_pattern(addresses, size_bytes, access)) return access;
    address = addresses[0] + static_cast<std::uint64_t>(insn->offset);
  } else {
    const auto* const addresses = warp.row<const std::uint32_t>(row);
    if (!find_pattern(addresses, size_bytes, access)) return access;
    address = addresses[0] + static_cast<std::uint32_t>(insn->offset);
  }
  Allocation* const cached =
      warp.cta->launch->last_allocation[static_cast<std::size_t>(insn - warp.code)];
  if (cached == nullptr) return access;
  access.bytes = &cached->bytes;
  access.offset = address - cached->base;
  return access;
}

const Insn* with_checks(Warp& warp, const Insn* insn, std::uint32_t mask) {
  const Form& form = warp.cta->launch->code->forms[static_cast<std::size_t>(insn - warp.code)];
  return machine_code(VectorWidth::bits_256).find_handler(form)(warp, insn, mask);
}

template <class T, std::size_t count>
const Insn* load(Warp& warp, const Insn* insn, std::uint32_t mask) {
  if (mask != kFullMask) return with_checks(warp, insn, mask);
  const PlainAccess place = find_place<sizeof(T) * count>(warp, insn, insn->r[count]);
  if (place.bytes == nullptr) return with_checks(warp, insn, mask);
  load_plain<T, count>(warp, insn, place);
  return insn + 1;
}

template <class T, std::size_t count>
const Insn* store(Warp& warp, const Insn* insn, std::uint32_t mask) {
  if (mask != kFullMask) return with_checks(warp, insn, mask);
  const PlainAccess place = find_place<sizeof(T) * count>(warp, insn, insn->r[0]);
  if (place.bytes == nullptr) return with_checks(warp, insn, mask);
  store_plain<T, count>(warp, insn, place);
  return insn + 1;
}

template <class T>
Handler choose(bool is_load, std::uint32_t count) {
  if (count == 1) return is_load ? &load<T, 1> : &store<T, 1>;
  if (count == 2) return is_load ? &load<T, 2> : &store<T, 2>;
  if constexpr (sizeof(T) < 8) return is_load ? &load<T, 4> : &store<T, 4>;
  return nullptr;
}

Handler choose(const Form& form) {
  const bool is_load = form.op == Op::ld;
  const std::uint32_t count = form.modifiers.vector;
  switch (size_bytes(form.modifiers.type)) {
    case 1:
      return choose<std::uint8_t>(is_load, count);
    case 2:
      return choose<std::uint16_t>(is_load, count);
    case 4:
      return choose<std::uint32_t>(is_load, count);
    default:
      return choose<std::uint64_t>(is_load, count);
  }
}

}  // namespace

Kernel without_checks(const Kernel& kernel) {
  Kernel copy = kernel;
  for (std::size_t i = 0; i < copy.code.insns.size(); ++i) {
    Insn& insn = copy.code.insns[i];
    const bool is_plain = insn.op == Op::ld || insn.op == Op::st;
    if (!is_plain || insn.space != Space::global) continue;
    const Handler handler = choose(copy.code.forms[i]);
    if (handler != nullptr) insn.handler = handler;
  }
  return copy;
}

}  // namespace cpverify::sim
