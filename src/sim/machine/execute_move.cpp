#include <cstddef>
#include <cstdint>

#include "sim/isa/insn.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/isa/type.hpp"
#include "sim/machine/address_map.hpp"
#include "sim/machine/lanes.hpp"
#include "sim/machine/warp.hpp"

/// mov in all its shapes, prmt and cvta.
namespace cpverify::sim {
namespace {

struct Identity {
  template <class T>
  static T apply(T a) {
    return a;
  }
};

const Insn* move_predicate(Warp& warp, const Insn* insn, std::uint32_t mask) {
  write_predicate(warp.predicate(insn->r[0]), warp.predicate(insn->r[1]), mask);
  return insn + 1;
}

/// The first element of a vector is the least significant part. Source: PTX ISA, mov.
template <class Whole, class Part>
struct Pack {
  static constexpr std::uint32_t kPartBits = 8 * sizeof(Part);
  static Whole apply(Part a, Part b) {
    return static_cast<Whole>(static_cast<Whole>(b) << kPartBits | a);
  }
  static Whole apply(Part a, Part b, Part c, Part d) {
    return static_cast<Whole>(static_cast<Whole>(d) << (3 * kPartBits)) |
           static_cast<Whole>(static_cast<Whole>(c) << (2 * kPartBits)) |
           static_cast<Whole>(static_cast<Whole>(b) << kPartBits) | a;
  }
};

template <class Whole, class Part, std::size_t count>
const Insn* unpack(Warp& warp, const Insn* insn, std::uint32_t mask) {
  // The source may be among the targets only when widths are equal, which they never are.
  const auto* const source = warp.row<const Whole>(insn->r[count]);
  for (std::size_t part = 0; part < count; ++part) {
    auto* const target = warp.row<Part>(insn->r[part]);
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const auto value = static_cast<Part>(source[lane] >> (8 * sizeof(Part) * part));
      target[lane] = ((mask >> lane) & 1U) != 0 ? value : target[lane];
    }
  }
  return insn + 1;
}

/// Each nibble of the selector picks a byte of [b:a], or its sign. Source: PTX ISA, prmt, default
/// mode.
struct Permute {
  static std::uint32_t apply(std::uint32_t a, std::uint32_t b, std::uint32_t selector) {
    const std::uint64_t bytes = (std::uint64_t{b} << 32) | a;
    std::uint32_t result = 0;
    for (std::uint32_t i = 0; i < 4; ++i) {
      const std::uint32_t nibble = (selector >> (4 * i)) & 0xfU;
      const auto byte = static_cast<std::uint32_t>(bytes >> (8 * (nibble & 7U))) & 0xffU;
      const std::uint32_t sign = (byte & 0x80U) != 0 ? 0xffU : 0U;
      result |= ((nibble & 8U) != 0 ? sign : byte) << (8 * i);
    }
    return result;
  }
};

template <std::uint64_t window, bool is_to_generic>
struct ConvertAddress {
  static std::uint64_t apply(std::uint64_t a) { return is_to_generic ? a + window : a - window; }
};

template <bool is_to_generic>
Handler select_address(const Form& form) {
  // A 32-bit generic address does not exist in a 64-bit module.
  if (form.modifiers.type != Type::u64) return nullptr;
  using U = std::uint64_t;
  switch (form.modifiers.space) {
    case Space::shared:
      return &lanewise<ConvertAddress<kSharedWindow, is_to_generic>, U, U>;
    case Space::local:
      return &lanewise<ConvertAddress<kLocalWindow, is_to_generic>, U, U>;
    case Space::param:
      return &lanewise<ConvertAddress<kParameterWindow, is_to_generic>, U, U>;
    case Space::global:
    case Space::constant:
      return &lanewise<Identity, U, U>;
    default:
      return nullptr;
  }
}

}  // namespace

template <>
Handler select<Op::mov>(const Form& form) {
  switch (size_bytes(form.modifiers.type)) {
    case 2:
      return &lanewise<Identity, std::uint16_t, std::uint16_t>;
    case 4:
      return &lanewise<Identity, std::uint32_t, std::uint32_t>;
    default:
      return &lanewise<Identity, std::uint64_t, std::uint64_t>;
  }
}
template <>
Handler select<Op::mov_pred>(const Form& /*form*/) {
  return &move_predicate;
}
template <>
Handler select<Op::pack_b32>(const Form& /*form*/) {
  return &lanewise<Pack<std::uint32_t, std::uint16_t>, std::uint32_t, std::uint16_t, std::uint16_t>;
}
/// The decoder makes two of 64 bits of it.
template <>
Handler select<Op::mov_b128>(const Form& /*form*/) {
  return nullptr;
}
template <>
Handler select<Op::pack_b64>(const Form& /*form*/) {
  return &lanewise<Pack<std::uint64_t, std::uint32_t>, std::uint64_t, std::uint32_t, std::uint32_t>;
}
template <>
Handler select<Op::pack4_b64>(const Form& /*form*/) {
  return &lanewise<Pack<std::uint64_t, std::uint16_t>, std::uint64_t, std::uint16_t, std::uint16_t,
                   std::uint16_t, std::uint16_t>;
}
template <>
Handler select<Op::unpack_b32>(const Form& /*form*/) {
  return &unpack<std::uint32_t, std::uint16_t, 2>;
}
template <>
Handler select<Op::unpack_b64>(const Form& /*form*/) {
  return &unpack<std::uint64_t, std::uint32_t, 2>;
}
template <>
Handler select<Op::unpack4_b64>(const Form& /*form*/) {
  return &unpack<std::uint64_t, std::uint16_t, 4>;
}
template <>
Handler select<Op::prmt>(const Form& /*form*/) {
  return &lanewise<Permute, std::uint32_t, std::uint32_t, std::uint32_t, std::uint32_t>;
}
template <>
Handler select<Op::cvta>(const Form& form) {
  return select_address<true>(form);
}
template <>
Handler select<Op::cvta_to>(const Form& form) {
  return select_address<false>(form);
}

}  // namespace cpverify::sim
