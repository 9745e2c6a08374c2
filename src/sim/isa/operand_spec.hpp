#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/isa/opcode.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/isa/type.hpp"

namespace cpverify::sim {

/// One operand of a row, from the table's `operands` column.
struct OperandSpec {
  enum class Role : std::uint8_t {
    target,
    source,
    address,  ///< Decoded into the instruction's space, offset and width.
    pointer,  ///< Its value, in 64 bits: in `space`, which generic stands for all.
    label,
    sign,
    flag,
    register_limit,
  };
  enum class TypeFrom : std::uint8_t { row, atype, wide, fixed };
  Role role = Role::source;
  TypeFrom type_from = TypeFrom::row;
  Type fixed = Type::none;
  Space space = Space::generic;  ///< Of a pointer.
  std::uint8_t count = 1;        ///< Registers; 0 means as many as .v2/.v4 says.
  /// Columns of an m64nNk16 to a register, which then give the count; 0 otherwise.
  std::uint8_t columns_per_register = 0;
  bool is_vector = false;  ///< Written in braces (a single register also without, for count 0).
  bool has_pair = false;   ///< `d|p`: may write a predicate too.
  bool is_optional = false;
  bool has_coordinates = false;  ///< A pointer to a tensor map, with one per dimension.

  [[nodiscard]] Type type(const Modifiers& modifiers) const noexcept;
  [[nodiscard]] std::size_t register_count(const Modifiers& modifiers) const noexcept;
};

[[nodiscard]] const std::vector<OperandSpec>& operand_specs(Op op);

}  // namespace cpverify::sim
