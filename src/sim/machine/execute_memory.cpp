#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "cpverify/observer.hpp"
#include "sim/isa/insn.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/isa/type.hpp"
#include "sim/machine/access.hpp"
#include "sim/machine/lanes.hpp"
#include "sim/machine/plain_access.hpp"
#include "sim/machine/plain_moves.hpp"
#include "sim/machine/warp.hpp"

/// ld and st. A row holds values of exactly the type's size: the decoder puts a conversion beside a
/// load or store whose register is wider.
namespace cpverify::sim {
namespace {

/// Columns of registers become one record per lane, or the other way round.
template <class T, std::size_t count>
using Columns = std::array<std::array<T, kLanes>, count>;

/// Reads the lanes of an access. A lane that is not active reads what the first active one does.
template <class T, std::size_t count>
void gather(const Access& access, Columns<T, count>& values) {
  const std::byte* const data = access.bytes->data();
  if (count == 1 && access.is_dense) {
    std::memcpy(values[0].data(), data + access.offsets[0], sizeof values[0]);
    return;
  }
  if (access.is_uniform) {
    std::array<T, count> element{};
    std::memcpy(element.data(), data + access.offsets[0], sizeof element);
    for (std::size_t i = 0; i < count; ++i) values[i].fill(element[i]);
    return;
  }
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    std::array<T, count> element{};
    std::memcpy(element.data(), data + access.offsets[lane], sizeof element);
    for (std::size_t i = 0; i < count; ++i) values[i][lane] = element[i];
  }
}

template <class T>
void write_row(T* __restrict target, const T* __restrict values, std::uint32_t mask) {
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    target[lane] = ((mask >> lane) & 1U) != 0 ? values[lane] : target[lane];
  }
}

template <class T, std::size_t count>
const Insn* load(Warp& warp, const Insn* insn, std::uint32_t mask) {
  if (mask == kFullMask) [[likely]] {
    const PlainAccess plain =
        plain_access<AccessKind::read, sizeof(T) * count>(warp, insn, insn->r[count]);
    if (plain.bytes != nullptr) {
      load_plain<T, count>(warp, insn, plain);
      return insn + 1;
    }
  }
  const AddressOperand address = address_operand(insn, count);
  alignas(64) Columns<T, count> values;
  Access access;
  if (!begin_access(warp, insn, mask, {address, {AccessKind::read, sizeof(T) * count}}, access)) {
    return nullptr;
  }
  gather<T, count>(access, values);
  if (access.lanes == kFullMask) [[likely]] {
    for (std::size_t i = 0; i < count; ++i) {
      std::memcpy(warp.row<T>(insn->r[i]), values[i].data(), sizeof values[i]);
    }
    return insn + 1;
  }
  // Lanes in other memory objects follow. The address row may be a target: nothing is written
  // before all values are there.
  for (std::uint32_t left = mask & ~access.lanes; left != 0; left &= ~access.lanes) {
    if (!begin_access(warp, insn, left, {address, {AccessKind::read, sizeof(T) * count}}, access)) {
      return nullptr;
    }
    alignas(64) Columns<T, count> part;
    gather<T, count>(access, part);
    for (std::size_t i = 0; i < count; ++i) {
      write_row(values[i].data(), part[i].data(), access.lanes);
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    write_row(warp.row<T>(insn->r[i]), values[i].data(), mask);
  }
  return insn + 1;
}

/// In lane order: of lanes that store to one place, the highest wins.
template <class T, std::size_t count>
void scatter(const Warp& warp, const Insn* insn, const Access& access) {
  std::byte* const data = access.bytes->data();
  if (count == 1 && access.is_dense && access.lanes == kFullMask) {
    std::memcpy(data + access.offsets[0], warp.row<const T>(insn->r[1]), kLanes * sizeof(T));
    return;
  }
  for (std::uint32_t left = access.lanes; left != 0; left &= left - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(left));
    std::array<T, count> element{};
    for (std::size_t i = 0; i < count; ++i) element[i] = warp.row<const T>(insn->r[1 + i])[lane];
    std::memcpy(data + access.offsets[lane], element.data(), sizeof element);
  }
}

template <class T, std::size_t count>
const Insn* store(Warp& warp, const Insn* insn, std::uint32_t mask) {
  if (mask == kFullMask) [[likely]] {
    const PlainAccess plain =
        plain_access<AccessKind::write, sizeof(T) * count>(warp, insn, insn->r[0]);
    if (plain.bytes != nullptr) {
      store_plain<T, count>(warp, insn, plain);
      return insn + 1;
    }
  }
  const AddressOperand address = address_operand(insn, 0);
  Access access;
  for (std::uint32_t left = mask; left != 0; left &= ~access.lanes) {
    if (!begin_access(warp, insn, left, {address, {AccessKind::write, sizeof(T) * count}},
                      access)) {
      return nullptr;
    }
    scatter<T, count>(warp, insn, access);
  }
  return insn + 1;
}

/// Handlers of one element size for 1, 2 and 4 elements.
struct ByCount {
  Handler one;
  Handler two;
  Handler four;
};

Handler choose(const ByCount& handlers, std::uint32_t count) {
  return count == 1 ? handlers.one : count == 2 ? handlers.two : handlers.four;
}

Handler select_load(const Form& form) {
  const std::uint32_t count = form.modifiers.vector;
  switch (size_bytes(form.modifiers.type)) {
    case 1:
      return choose({&load<std::uint8_t, 1>, &load<std::uint8_t, 2>, &load<std::uint8_t, 4>},
                    count);
    case 2:
      return choose({&load<std::uint16_t, 1>, &load<std::uint16_t, 2>, &load<std::uint16_t, 4>},
                    count);
    case 4:
      return choose({&load<std::uint32_t, 1>, &load<std::uint32_t, 2>, &load<std::uint32_t, 4>},
                    count);
    default:  // No access is wider than 16 bytes.
      return choose({&load<std::uint64_t, 1>, &load<std::uint64_t, 2>, nullptr}, count);
  }
}

}  // namespace

template <>
Handler select<Op::ld>(const Form& form) {
  return select_load(form);
}
/// The decoder makes them of .v2.b64.
template <>
Handler select<Op::ld_b128>(const Form& /*form*/) {
  return &load<std::uint64_t, 2>;
}
template <>
Handler select<Op::st_b128>(const Form& form) {
  return form.modifiers.space == Space::constant ? nullptr : &store<std::uint64_t, 2>;
}
template <>
Handler select<Op::ldu>(const Form& form) {
  const Space space = form.modifiers.space;
  return space == Space::global || space == Space::generic ? select_load(form) : nullptr;
}
template <>
Handler select<Op::st>(const Form& form) {
  if (form.modifiers.space == Space::constant) return nullptr;
  const std::uint32_t count = form.modifiers.vector;
  switch (size_bytes(form.modifiers.type)) {
    case 1:
      return choose({&store<std::uint8_t, 1>, &store<std::uint8_t, 2>, &store<std::uint8_t, 4>},
                    count);
    case 2:
      return choose({&store<std::uint16_t, 1>, &store<std::uint16_t, 2>, &store<std::uint16_t, 4>},
                    count);
    case 4:
      return choose({&store<std::uint32_t, 1>, &store<std::uint32_t, 2>, &store<std::uint32_t, 4>},
                    count);
    default:
      return choose({&store<std::uint64_t, 1>, &store<std::uint64_t, 2>, nullptr}, count);
  }
}

}  // namespace cpverify::sim
