#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "cpverify/fault.hpp"
#include "sim/isa/type.hpp"

namespace cpverify::sim {

enum class FloatClass : std::uint8_t { finite, nan, positive_infinity, negative_infinity };

/// Floats in a register of a type: none of an integer, two of f16x2.
struct FloatShape {
  Type element = Type::none;
  std::uint32_t count = 0;
};

[[nodiscard]] FloatShape float_shape(Type type) noexcept;
/// The low bits of `bits`, as an f16, bf16, f32 or f64.
[[nodiscard]] FloatClass classify(Type element, std::uint64_t bits) noexcept;
/// "-inf (0xff800000)".
[[nodiscard]] std::string float_text(Type element, std::uint64_t bits);

/// Where a NaN or an infinity was made. `fault` is complete but for the place where it is stored.
struct SpecialOrigin {
  Fault fault;
  bool is_reported = true;  ///< Where it reaches an output.
  Type element = Type::f32;
};

/// The origins of NaNs and infinities in global memory, kept from launch to launch. Places are
/// halves of words: the low bit of an address does not count.
class SpecialValueMemory {
 public:
  using Pointer = std::shared_ptr<const SpecialOrigin>;

  [[nodiscard]] bool is_empty() const noexcept { return places_.empty(); }
  /// Null when nothing is known.
  [[nodiscard]] Pointer find(std::uint64_t address) const;
  void set(std::uint64_t address, const Pointer& origin);
  /// Somebody else has written here.
  void forget(std::uint64_t address, std::uint64_t size_bytes);
  void copy(std::uint64_t target, std::uint64_t source, std::uint64_t size_bytes);

 private:
  std::map<std::uint64_t, Pointer> places_;
};

}  // namespace cpverify::sim
