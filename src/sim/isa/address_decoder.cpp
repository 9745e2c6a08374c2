#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sim/isa/ast.hpp"
#include "sim/isa/code.hpp"
#include "sim/isa/conversion.hpp"
#include "sim/isa/insn.hpp"
#include "sim/isa/instruction_decoder.hpp"
#include "sim/isa/kernel_info.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/operand_spec.hpp"
#include "sim/isa/scope.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/isa/type.hpp"
#include "support/check.hpp"

/// The addresses of memory instructions, and loads of kernel parameters.
namespace cpverify::sim {
namespace {

bool is_in(Variable::Place place, Space space) {
  switch (place) {
    case Variable::Place::shared:
    case Variable::Place::dynamic_shared:
      return space == Space::shared;
    case Variable::Place::local:
      return space == Space::local;
    case Variable::Place::global:
      return space == Space::global || space == Space::generic;
    case Variable::Place::kernel_parameter:
      return false;
  }
  return false;
}

}  // namespace

/// [variable + offset]. A .param variable of a function lies in local memory: `space` follows.
Register InstructionDecoder::named_address(const Pending& pending, const Operand& operand,
                                           Space& space) {
  const std::optional<Variable> variable = find_variable(*pending.scopes, operand.name);
  if (!variable) fail(operand.where, fmt::format("'{}' is not declared here", operand.name));
  if (space == Space::param) space = Space::local;
  if (!is_in(variable->place, space)) {
    fail(operand.where,
         fmt::format("'{}' is not in the state space of '{}'", operand.name, pending.ast->name));
  }
  return {variable_row(*variable, operand, Type::u64), 8};
}

Register InstructionDecoder::address_base(const Pending& pending, const Operand& operand,
                                          Space& space) {
  Register base{0, 8};
  const std::optional<Register> place = pending.scopes->find_register(operand.name);
  if (place) {
    base = *place;
    if (base.width < 4 || base.high_row != 0) {
      fail(operand.where, fmt::format("register '{}' is too {} for an address", operand.name,
                                      base.width < 4 ? "narrow" : "wide"));
    }
    if (space == Space::param) fail(operand.where, "parameters are addressed by name only");
  } else if (operand.name.empty()) {
    base.row = code_->registers.constant(0, 8);
  } else {
    base = named_address(pending, operand, space);
  }
  if ((space == Space::global || space == Space::generic) && base.width != 8) {
    fail(operand.where, "a global or generic address needs a 64-bit register");
  }
  return base;
}

/// Instructions with several addresses read them from registers, offsets added: a shared address
/// of 32 bits wraps, then is widened.
void InstructionDecoder::decode_pointer(Pending& pending, const OperandSpec& spec,
                                        const Operand& operand) {
  if (operand.kind != Operand::Kind::address) {
    fail(operand.where, "expected an address in brackets");
  }
  const std::size_t coordinates = spec.has_coordinates ? pending.form.modifiers.dimensions : 0;
  if (operand.elements.size() != coordinates) {
    fail(operand.where,
         fmt::format("expected {} coordinates, found {}", coordinates, operand.elements.size()));
  }
  Space space = spec.space;
  Register base = address_base(pending, operand, space);
  if (operand.offset != 0) {
    Form form{Op::add_int, {}};
    form.modifiers.type = unsigned_of(base.width);
    Insn add;
    add.r = {temporary(base.width), base.row,
             code_->registers.constant(static_cast<std::uint64_t>(operand.offset), base.width)};
    base.row = add.r[0];
    emit(form, add, pending.ast->where);
  }
  if (base.width == 4) {
    Insn widen;
    widen.r = {temporary(8), base.row};
    base.row = widen.r[0];
    emit(conversion(Type::u64, Type::u32), widen, pending.ast->where);
  }
  pending.rows.push_back(base.row);
  for (const Operand& coordinate : operand.elements) {
    decode_source(pending, coordinate, Type::s32);
  }
}

void InstructionDecoder::decode_address(Pending& pending, const Operand& operand) {
  if (operand.kind != Operand::Kind::address)
    fail(operand.where, "expected an address in brackets");
  if (!operand.elements.empty()) fail(operand.where, "this address has no coordinates");
  const bool is_second = std::exchange(pending.has_address, true);
  Space space = pending.form.modifiers.space;
  // cp.async reads global memory through its second address; the first is in shared memory.
  if (is_second) space = Space::global;
  if (space == Space::constant) space = Space::global;

  const Register base = address_base(pending, operand, space);
  pending.rows.push_back(base.row);
  if (!is_second) {
    pending.insn.space = space;
    pending.insn.address_bytes = static_cast<std::uint8_t>(base.width);
    pending.insn.offset = operand.offset;
    return;
  }
  if (operand.offset < std::numeric_limits<std::int32_t>::min() ||
      operand.offset > std::numeric_limits<std::int32_t>::max()) {
    fail(operand.where, "offset does not fit 32 bits");
  }
  pending.insn.immediate = static_cast<std::int32_t>(operand.offset);
}

bool InstructionDecoder::is_parameter_load(const Pending& pending) const {
  if (pending.form.modifiers.space != Space::param || pending.ast->operands.size() != 2) {
    return false;
  }
  const std::optional<Variable> variable =
      find_variable(*pending.scopes, pending.ast->operands[1].name);
  return variable && variable->place == Variable::Place::kernel_parameter;
}

/// ld.param of a kernel parameter: its value is a row of the register file, so the load is a mov.
void InstructionDecoder::decode_parameter_load(Pending& pending) {
  const Operand& target = pending.ast->operands[0];
  const Operand& address = pending.ast->operands[1];
  const Variable variable = *find_variable(*pending.scopes, address.name);
  const Type type = pending.form.modifiers.type;
  const std::uint32_t width = size_bytes(type);
  CPVERIFY_CHECK(width > 0);
  const std::size_t count = pending.form.modifiers.vector;
  std::vector<Operand> elements{target};
  if (target.kind == Operand::Kind::vector) elements = target.elements;
  if (elements.size() != count) fail(target.where, fmt::format("expected {} registers", count));

  std::uint64_t end = 0;
  for (const ParameterInfo& parameter : code_->info.parameters) {
    if (parameter.offset_bytes == variable.offset) {
      end = parameter.offset_bytes + parameter.size_bytes;
    }
  }
  const std::uint64_t first = variable.offset + static_cast<std::uint64_t>(address.offset);
  if (address.offset < 0 || first + count * width > end || first > end || first % width != 0) {
    fail(address.where, fmt::format("load outside of parameter '{}'", address.name));
  }
  for (std::size_t i = 0; i < count; ++i) {
    Pending move{};
    move.ast = pending.ast;
    move.scopes = pending.scopes;
    move.insn = pending.insn;
    move.form = conversion(unsigned_of(width), unsigned_of(width));
    decode_target(move, elements[i], type);
    move.rows.push_back(
        code_->registers.parameter(static_cast<std::uint32_t>(first + i * width), width));
    if (i + 1 == count) {
      pending = std::move(move);
      return;
    }
    place_rows(move);
    finish(move);
  }
}

}  // namespace cpverify::sim
