#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <tuple>

#include "cpverify/observer.hpp"
#include "numerics/float16.hpp"
#include "numerics/float32.hpp"
#include "numerics/half_arithmetic.hpp"
#include "sim/isa/insn.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/isa/type.hpp"
#include "sim/machine/access.hpp"
#include "sim/machine/lanes.hpp"
#include "sim/machine/warp.hpp"

/// atom and red of vectors, in global memory: each element is combined with its own. The manual
/// promises that each element is atomic; ours are all of one lane's at once, lane after lane.
namespace cpverify::sim {
namespace {

using numerics::BFloat16Format;
using numerics::Float16Format;

struct AddFloat {
  using Element = float;
  static float apply(float a, float b) { return numerics::canonical(a + b); }
};

/// .noftz: subnormals stay.
template <class Format, Reduce op>
struct CombineHalf {
  using Element = std::uint16_t;
  static std::uint16_t apply(std::uint16_t a, std::uint16_t b) {
    if constexpr (op == Reduce::add) return numerics::half_add<Format>(a, b);
    const float left = Format::widen(a);
    const float right = Format::widen(b);
    const float result =
        op == Reduce::min ? numerics::minimum(left, right) : numerics::maximum(left, right);
    return Format::round(static_cast<double>(result));
  }
};

template <class Half>
struct CombinePair {
  using Element = std::uint32_t;
  static std::uint32_t apply(std::uint32_t a, std::uint32_t b) {
    const auto half = [&](std::uint32_t shift) {
      return Half::apply(static_cast<std::uint16_t>(a >> shift),
                         static_cast<std::uint16_t>(b >> shift));
    };
    return numerics::pack_halves(half(16), half(0));
  }
};

/// What is written, the address, what is read.
template <std::size_t count, bool has_target>
struct Rows {
  static constexpr std::size_t kAddress = has_target ? count : 0;
  static constexpr std::size_t kTotal = kAddress + 1 + count;

  Rows(const Warp& warp, const Insn* insn)
      : first{kTotal > std::tuple_size_v<decltype(insn->r)> ? warp.wide + insn->target
                                                            : insn->r.data()} {}
  [[nodiscard]] std::uint32_t target(std::size_t element) const { return first[element]; }
  [[nodiscard]] std::uint32_t address() const { return first[kAddress]; }
  [[nodiscard]] std::uint32_t value(std::size_t element) const {
    return first[kAddress + 1 + element];
  }

  const std::uint32_t* first;
};

template <class Operation, std::size_t count, bool has_target>
void update_lane(Warp& warp, const Rows<count, has_target>& rows, std::size_t lane,
                 std::byte* place) {
  using T = typename Operation::Element;
  std::array<T, count> old{};
  std::memcpy(old.data(), place, sizeof old);
  std::array<T, count> now{};
  for (std::size_t i = 0; i < count; ++i) {
    now[i] = Operation::apply(old[i], warp.row<const T>(rows.value(i))[lane]);
  }
  if constexpr (has_target) {
    for (std::size_t i = 0; i < count; ++i) warp.row<T>(rows.target(i))[lane] = old[i];
  }
  std::memcpy(place, now.data(), sizeof now);
}

template <class Operation, std::size_t count, bool has_target>
const Insn* atomic_vector(Warp& warp, const Insn* insn, std::uint32_t mask) {
  const Rows<count, has_target> rows{warp, insn};
  const AddressOperand address{rows.address(), insn->address_bytes, insn->space, insn->offset};
  constexpr std::size_t kBytes = sizeof(typename Operation::Element) * count;
  Access access;
  for (std::uint32_t left = mask; left != 0; left &= ~access.lanes) {
    if (!begin_access(warp, insn, left, {address, {AccessKind::atomic, kBytes}}, access)) {
      return nullptr;
    }
    for (std::uint32_t lanes = access.lanes; lanes != 0; lanes &= lanes - 1) {
      const auto lane = static_cast<std::size_t>(std::countr_zero(lanes));
      update_lane<Operation>(warp, rows, lane, access.bytes->data() + access.offsets[lane]);
    }
  }
  return insn + 1;
}

template <class Operation, bool has_target>
Handler select_count(const Modifiers& modifiers) {
  if (modifiers.space != Space::global && modifiers.space != Space::generic) return nullptr;
  switch (modifiers.vector) {
    case 2:
      return &atomic_vector<Operation, 2, has_target>;
    case 4:
      return &atomic_vector<Operation, 4, has_target>;
    default:
      // A vector has 16 bytes at most, as the table's classes have it.
      if constexpr (sizeof(typename Operation::Element) == 2) {
        return &atomic_vector<Operation, 8, has_target>;
      }
      return nullptr;
  }
}

template <class Format, bool has_target>
Handler select_half(const Modifiers& modifiers) {
  switch (modifiers.reduce) {
    case Reduce::add:
      return select_count<CombineHalf<Format, Reduce::add>, has_target>(modifiers);
    case Reduce::min:
      return select_count<CombineHalf<Format, Reduce::min>, has_target>(modifiers);
    default:
      return select_count<CombineHalf<Format, Reduce::max>, has_target>(modifiers);
  }
}

template <class Format, bool has_target>
Handler select_pair(const Modifiers& modifiers) {
  switch (modifiers.reduce) {
    case Reduce::add:
      return select_count<CombinePair<CombineHalf<Format, Reduce::add>>, has_target>(modifiers);
    case Reduce::min:
      return select_count<CombinePair<CombineHalf<Format, Reduce::min>>, has_target>(modifiers);
    default:
      return select_count<CombinePair<CombineHalf<Format, Reduce::max>>, has_target>(modifiers);
  }
}

template <bool has_target>
Handler select_half(const Form& form) {
  return form.modifiers.type == Type::f16 ? select_half<Float16Format, has_target>(form.modifiers)
                                          : select_half<BFloat16Format, has_target>(form.modifiers);
}

template <bool has_target>
Handler select_pair(const Form& form) {
  return form.modifiers.type == Type::f16x2
             ? select_pair<Float16Format, has_target>(form.modifiers)
             : select_pair<BFloat16Format, has_target>(form.modifiers);
}

}  // namespace

template <>
Handler select<Op::atom_vector>(const Form& form) {
  return select_count<AddFloat, true>(form.modifiers);
}
template <>
Handler select<Op::red_vector>(const Form& form) {
  return select_count<AddFloat, false>(form.modifiers);
}
template <>
Handler select<Op::atom_vector_half>(const Form& form) {
  return select_half<true>(form);
}
template <>
Handler select<Op::red_vector_half>(const Form& form) {
  return select_half<false>(form);
}
template <>
Handler select<Op::atom_vector_half2>(const Form& form) {
  return select_pair<true>(form);
}
template <>
Handler select<Op::red_vector_half2>(const Form& form) {
  return select_pair<false>(form);
}

}  // namespace cpverify::sim
