#include <array>
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
#include "sim/machine/warp.hpp"

/// ld and st. A row holds values of exactly the type's size: the decoder puts a conversion beside a
/// load or store whose register is wider.
namespace cpverify::sim {
namespace {

template <class T, std::size_t count>
const Insn* load(Warp& warp, const Insn* insn, std::uint32_t mask) {
  const AddressOperand address = address_operand(insn, count);
  // The address row may be a target: values are collected before any is written.
  alignas(64) std::array<std::array<T, kLanes>, count> values;
  Access access;
  for (std::uint32_t left = mask; left != 0; left &= ~access.lanes) {
    if (!begin_access(warp, insn, left, address, {AccessKind::read, sizeof(T) * count}, access)) {
      return nullptr;
    }
    const std::byte* const data = access.bytes->data();
    if (access.lanes == kFullMask) [[likely]] {
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        std::array<T, count> element;
        std::memcpy(element.data(), data + access.offsets[lane], sizeof element);
        for (std::size_t i = 0; i < count; ++i) values[i][lane] = element[i];
      }
      for (std::size_t i = 0; i < count; ++i) {
        std::memcpy(warp.row<T>(insn->r[i]), values[i].data(), sizeof values[i]);
      }
      return insn + 1;
    }
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      if (((access.lanes >> lane) & 1U) == 0) continue;
      for (std::size_t i = 0; i < count; ++i) {
        std::memcpy(&values[i][lane], data + access.offsets[lane] + i * sizeof(T), sizeof(T));
      }
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    T* const target = warp.row<T>(insn->r[i]);
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      if (((mask >> lane) & 1U) != 0) target[lane] = values[i][lane];
    }
  }
  return insn + 1;
}

template <class T, std::size_t count>
const Insn* store(Warp& warp, const Insn* insn, std::uint32_t mask) {
  const AddressOperand address = address_operand(insn, 0);
  Access access;
  for (std::uint32_t left = mask; left != 0; left &= ~access.lanes) {
    if (!begin_access(warp, insn, left, address, {AccessKind::write, sizeof(T) * count}, access)) {
      return nullptr;
    }
    // In lane order: of lanes that store to one place, the highest wins.
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      if (((access.lanes >> lane) & 1U) == 0) continue;
      std::array<T, count> element;
      for (std::size_t i = 0; i < count; ++i) element[i] = warp.row<T>(insn->r[1 + i])[lane];
      std::memcpy(access.bytes->data() + access.offsets[lane], element.data(), sizeof element);
    }
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
