#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include <fmt/format.h>

#include "sim/isa/ast.hpp"
#include "sim/isa/insn.hpp"
#include "sim/isa/instruction_decoder.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/operand_spec.hpp"
#include "sim/isa/scope.hpp"
#include "sim/isa/special_register.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/isa/type.hpp"

/// What programs have and the machine has not: registers of 128 bits, which are two of 64 bits, and
/// a special register that is a predicate.
namespace cpverify::sim {

void InstructionDecoder::decode_wide(Pending& pending, const OperandSpec& spec,
                                     const Operand& operand) {
  if (operand.kind == Operand::Kind::name) {
    const std::optional<Register> place = pending.scopes->find_register(operand.name);
    if (!place || place->high_row == 0) {
      fail(operand.where, fmt::format("'{}' is not a register of 128 bits", operand.name));
    }
    pending.rows.insert(pending.rows.end(), {place->row, place->high_row});
    return;
  }
  const bool is_pair = operand.kind == Operand::Kind::vector && operand.elements.size() == 2;
  if (!is_pair || pending.form.op != Op::mov_b128) {
    fail(operand.where, "expected a register of 128 bits");
  }
  for (const Operand& element : operand.elements) {
    if (spec.role == OperandSpec::Role::target) {
      decode_target(pending, element, Type::b64);
    } else {
      decode_source(pending, element, Type::b64);
    }
  }
}

/// Loads and stores are those of .v2.b64, of the same 16 bytes.
void InstructionDecoder::finish_wide(Pending& pending) {
  if (pending.form.modifiers.space == Space::param) {
    fail(pending.ast->where, "parameters of 128 bits are not supported");
  }
  pending.form.modifiers.type = Type::b64;
  if (pending.form.op != Op::mov_b128) {
    pending.form.op = pending.form.op == Op::ld_b128 ? Op::ld : Op::st;
    pending.form.modifiers.vector = 2;
    place_rows(pending);
    finish(pending);
    return;
  }
  const std::vector<Operand>& operands = pending.ast->operands;
  if (operands[0].kind == operands[1].kind && operands[0].kind == Operand::Kind::vector) {
    fail(operands[1].where, "expected a register of 128 bits");
  }
  pending.form.op = Op::mov;
  const std::vector<std::uint32_t> rows = pending.rows;
  for (std::size_t half = 0; half < 2; ++half) {
    pending.rows = {rows[half], rows[2 + half]};
    place_rows(pending);
    finish(pending);
  }
}

Register InstructionDecoder::cluster_flag(Pending& pending) {
  Form differs{Op::setp_int, {}};
  differs.modifiers.type = Type::u32;
  differs.modifiers.compare = Compare::ne;
  Insn compare;
  compare.r = {temporary(0), temporary(0),
               code_->registers.special(SpecialRegister::is_explicit_cluster),
               code_->registers.constant(0, 4)};
  compare.immediate = static_cast<std::int32_t>(Compare::ne) << kComparePosition;
  emit(differs, compare, pending.ast->where);
  return {compare.r[0], 0};
}

}  // namespace cpverify::sim
