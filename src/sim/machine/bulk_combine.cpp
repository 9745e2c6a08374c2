#include "sim/machine/bulk_combine.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "sim/isa/syntax.hpp"
#include "sim/isa/type.hpp"
#include "sim/machine/async_work.hpp"
#include "sim/machine/tensor_map.hpp"

namespace cpverify::sim {
namespace {

/// Source: PTX ISA, "cp.reduce.async.bulk"; inc and dec as of red.
template <class T, Reduce op>
T combined(T old, T value) {
  if constexpr (op == Reduce::add) {
    if constexpr (std::is_floating_point_v<T>) {
      return old + value;
    } else {
      using U = std::make_unsigned_t<T>;
      return static_cast<T>(static_cast<U>(old) + static_cast<U>(value));
    }
  } else if constexpr (op == Reduce::min) {
    return std::min(old, value);
  } else if constexpr (op == Reduce::max) {
    return std::max(old, value);
  } else if constexpr (op == Reduce::and_op) {
    return old & value;
  } else if constexpr (op == Reduce::or_op) {
    return old | value;
  } else if constexpr (op == Reduce::xor_op) {
    return old ^ value;
  } else if constexpr (op == Reduce::inc) {
    return old >= value ? 0 : old + 1;
  } else {
    static_assert(op == Reduce::dec);
    return old == 0 || old > value ? value : old - 1;
  }
}

/// A last part of an element, which a box that ends in one could have, stays as it is.
template <class T, Reduce op>
void combine(std::byte* target, const std::byte* source, std::uint64_t size_bytes) {
  for (std::uint64_t at = 0; at + sizeof(T) <= size_bytes; at += sizeof(T)) {
    T old{};
    T value{};
    std::memcpy(&old, target + at, sizeof old);
    std::memcpy(&value, source + at, sizeof value);
    const T result = combined<T, op>(old, value);
    std::memcpy(target + at, &result, sizeof result);
  }
}

template <class T>
BulkCopy::Combine find_order(Reduce op) noexcept {
  switch (op) {
    case Reduce::add:
      return &combine<T, Reduce::add>;
    case Reduce::min:
      return &combine<T, Reduce::min>;
    case Reduce::max:
      return &combine<T, Reduce::max>;
    default:
      return nullptr;
  }
}

template <class T>
BulkCopy::Combine find_bits(Reduce op) noexcept {
  switch (op) {
    case Reduce::and_op:
      return &combine<T, Reduce::and_op>;
    case Reduce::or_op:
      return &combine<T, Reduce::or_op>;
    case Reduce::xor_op:
      return &combine<T, Reduce::xor_op>;
    default:
      return nullptr;
  }
}

BulkCopy::Combine find_u32(Reduce op) noexcept {
  if (op == Reduce::inc) return &combine<std::uint32_t, Reduce::inc>;
  if (op == Reduce::dec) return &combine<std::uint32_t, Reduce::dec>;
  return find_order<std::uint32_t>(op);
}

}  // namespace

BulkCopy::Combine find_combine(Type type, Reduce op) noexcept {
  switch (type) {
    case Type::u32:
      return find_u32(op);
    case Type::s32:
      return find_order<std::int32_t>(op);
    case Type::u64:
      return find_order<std::uint64_t>(op);
    case Type::s64:
      return find_order<std::int64_t>(op);
    case Type::b32:
      return find_bits<std::uint32_t>(op);
    case Type::b64:
      return find_bits<std::uint64_t>(op);
    case Type::f32:
      return op == Reduce::add ? &combine<float, Reduce::add> : nullptr;
    case Type::f64:
      return op == Reduce::add ? &combine<double, Reduce::add> : nullptr;
    default:
      return nullptr;
  }
}

BulkCopy::Combine find_combine(TensorElement element, Reduce op) noexcept {
  const bool is_bitwise = op == Reduce::and_op || op == Reduce::or_op || op == Reduce::xor_op;
  switch (element) {
    case TensorElement::u32:
      return find_combine(is_bitwise ? Type::b32 : Type::u32, op);
    case TensorElement::s32:
      return find_combine(is_bitwise ? Type::b32 : Type::s32, op);
    case TensorElement::u64:
      return find_combine(is_bitwise ? Type::b64 : Type::u64, op);
    case TensorElement::s64:
      return find_combine(is_bitwise ? Type::b64 : Type::s64, op);
    case TensorElement::f32:
      return find_combine(Type::f32, op);
    case TensorElement::f64:
      return find_combine(Type::f64, op);
    default:
      return nullptr;
  }
}

}  // namespace cpverify::sim
