#include "sim/isa/instruction_decoder.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cpverify/error.hpp"
#include "sim/isa/ast.hpp"
#include "sim/isa/code.hpp"
#include "sim/isa/conversion.hpp"
#include "sim/isa/insn.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/operand_spec.hpp"
#include "sim/isa/register_file.hpp"
#include "sim/isa/scope.hpp"
#include "sim/isa/special_register.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/isa/type.hpp"

namespace cpverify::sim {
namespace {

/// mov with a vector operand packs or unpacks. Source: PTX ISA, mov, "pack" and "unpack".
std::optional<Op> packing_op(const InstructionAst& ast, Type type) {
  if (ast.operands.size() != 2) return std::nullopt;
  const bool is_unpack = ast.operands[0].kind == Operand::Kind::vector;
  if (!is_unpack && ast.operands[1].kind != Operand::Kind::vector) return std::nullopt;
  const std::size_t count = ast.operands[is_unpack ? 0 : 1].elements.size();
  if (type == Type::b32 && count == 2) return is_unpack ? Op::unpack_b32 : Op::pack_b32;
  if (type == Type::b64 && count == 2) return is_unpack ? Op::unpack_b64 : Op::pack_b64;
  if (type == Type::b64 && count == 4) return is_unpack ? Op::unpack4_b64 : Op::pack4_b64;
  return std::nullopt;
}

bool is_float(Type type) {
  return type == Type::f32 || type == Type::f64 || type == Type::f16 || type == Type::bf16;
}

/// The row of the same multiplication whose A is in registers, not in shared memory.
Op with_a_in_registers(Op op) {
  switch (op) {
    case Op::wgmma_half:
      return Op::wgmma_half_registers;
    case Op::wgmma_half_f16:
      return Op::wgmma_half_f16_registers;
    case Op::wgmma_tf32:
      return Op::wgmma_tf32_registers;
    case Op::wgmma_f8:
      return Op::wgmma_f8_registers;
    case Op::wgmma_f8_f16:
      return Op::wgmma_f8_f16_registers;
    case Op::wgmma_int8:
      return Op::wgmma_int8_registers;
    default:
      return op;
  }
}

/// Where registers wider than the type may be written. Source: PTX ISA, "Operand Size Exceeding
/// Instruction-Type Size".
bool may_widen(Op op) {
  return op == Op::ld || op == Op::ldu || info(op).name.starts_with("cvt_");
}

bool is_wide(Op op) noexcept {
  return op == Op::ld_b128 || op == Op::st_b128 || op == Op::mov_b128;
}

bool has_carry(Op op) noexcept {
  return op >= Op::add_cc && op <= Op::madc_hi_cc;
}

}  // namespace

void InstructionDecoder::fail(Position where, const std::string& message) const {
  throw InputError{{file_, static_cast<int>(where.line), static_cast<int>(where.column)}, message};
}

Form InstructionDecoder::find_form(const InstructionAst& ast) {
  auto found = forms_.find(ast.name);
  if (found == forms_.end()) {
    const SourceLocation where{file_, static_cast<int>(ast.where.line),
                               static_cast<int>(ast.where.column)};
    found = forms_.emplace(ast.name, match_syntax(ast.name, where)).first;
  }
  Form form = found->second;
  if (form.op == Op::mov) {
    const std::optional<Op> packing = packing_op(ast, form.modifiers.type);
    if (packing) form.op = *packing;
  }
  if (ast.operands.size() > 1 && ast.operands[1].kind == Operand::Kind::vector) {
    form.op = with_a_in_registers(form.op);
  }
  return form;
}

void InstructionDecoder::emit(const Form& form, const Insn& insn, Position where) {
  code_->insns.push_back(insn);
  code_->insns.back().op = form.op;
  code_->forms.push_back(form);
  code_->lines.push_back({where.line, where.column, line_.file, line_.line});
}

std::optional<Variable> InstructionDecoder::find_variable(const ScopeStack& scopes,
                                                          std::string_view name) const {
  const std::optional<Variable> found = scopes.find_variable(name);
  return found || !outer_ ? found : outer_(name);
}

std::uint32_t InstructionDecoder::temporary(RowWidth width) {
  const auto [found, is_new] = temporaries_.try_emplace({width, temporaries_used_++}, 0);
  if (is_new) found->second = code_->registers.add_row(width);
  return found->second;
}

std::uint32_t InstructionDecoder::carry() {
  if (!carry_) carry_ = code_->registers.add_row(0);
  return *carry_;
}

void InstructionDecoder::decode(const InstructionAst& ast, ScopeStack& scopes) {
  Pending pending{};
  pending.ast = &ast;
  pending.scopes = &scopes;
  pending.form = find_form(ast);
  temporaries_used_ = 0;
  decode_guard(pending);
  if (pending.form.op == Op::ld && is_parameter_load(pending)) {
    decode_parameter_load(pending);
  } else {
    decode_operands(pending);
  }
  if (is_wide(pending.form.op)) {
    finish_wide(pending);
    return;
  }
  if (has_carry(pending.form.op)) pending.rows.push_back(carry());
  place_rows(pending);
  finish(pending);
}

void InstructionDecoder::branch(const InstructionAst& ast, std::uint32_t label,
                                ScopeStack& scopes) {
  Pending pending{};
  pending.ast = &ast;
  pending.scopes = &scopes;
  pending.form.op = Op::bra;
  decode_guard(pending);
  pending.insn.target = label;
  finish(pending);
}

/// Becomes a check of the index and, for each label but the last, a comparison and a branch, so
/// that lanes part and meet as at any branch.
void InstructionDecoder::branch_by_index(const InstructionAst& ast,
                                         const std::vector<std::uint32_t>& labels,
                                         ScopeStack& scopes) {
  Pending check{};
  check.ast = &ast;
  check.scopes = &scopes;
  check.form = find_form(ast);
  temporaries_used_ = 0;
  decode_source(check, ast.operands.front(), Type::u32);
  check.rows.push_back(code_->registers.constant(labels.size(), 4));
  place_rows(check);
  finish(check);
  Insn compare;
  compare.r = {temporary(0), temporary(0), check.rows.front()};
  Form equal{Op::setp_int, {}};
  equal.modifiers.type = Type::u32;
  compare.immediate = static_cast<std::int32_t>(equal.modifiers.compare) << kComparePosition;
  Insn jump;
  for (std::size_t i = 0; i + 1 < labels.size(); ++i) {
    compare.r[3] = code_->registers.constant(i, 4);
    emit(equal, compare, ast.where);
    jump.guard = compare.r[0];
    jump.target = labels[i];
    emit({Op::bra, {}}, jump, ast.where);
  }
  jump.guard = 0;
  jump.target = labels.back();
  emit({Op::bra, {}}, jump, ast.where);
}

void InstructionDecoder::decode_guard(Pending& pending) {
  const InstructionAst& ast = *pending.ast;
  if (ast.guard.empty()) return;
  const std::optional<Register> guard = pending.scopes->find_register(ast.guard);
  if (!guard || guard->width != 0) {
    fail(ast.where, fmt::format("guard '{}' is not a predicate register", ast.guard));
  }
  pending.insn.guard = guard->row;
  pending.insn.guard_flip = ast.is_guard_negated ? ~0U : 0U;
}

void InstructionDecoder::decode_operands(Pending& pending) {
  const InstructionAst& ast = *pending.ast;
  const std::vector<OperandSpec>& specs = operand_specs(pending.form.op);
  std::size_t required = 0;
  for (const OperandSpec& spec : specs) required += spec.is_optional ? 0 : 1;
  // A pack takes its vector apart: the table lists the elements.
  std::vector<Operand> operands;
  for (const Operand& operand : ast.operands) {
    const bool is_pack = pending.form.op == Op::pack_b32 || pending.form.op == Op::pack_b64 ||
                         pending.form.op == Op::pack4_b64;
    if (is_pack && operand.kind == Operand::Kind::vector) {
      operands.insert(operands.end(), operand.elements.begin(), operand.elements.end());
    } else {
      operands.push_back(operand);
    }
  }
  if (operands.size() < required || operands.size() > specs.size()) {
    fail(ast.where, fmt::format("'{}' takes {} operands ({}), found {}", ast.name, specs.size(),
                                info(pending.form.op).operands, operands.size()));
  }
  std::size_t missing = specs.size() - operands.size();
  std::size_t next = 0;
  for (const OperandSpec& spec : specs) {
    if (spec.is_optional && missing > 0) {
      // Reads as "not given": all ones.
      pending.rows.push_back(code_->registers.constant(~0ULL, 4));
      --missing;
    } else {
      decode_operand(pending, spec, operands[next++]);
    }
  }
}

void InstructionDecoder::decode_operand(Pending& pending, const OperandSpec& spec,
                                        const Operand& operand) {
  if (spec.role == OperandSpec::Role::address) {
    decode_address(pending, operand);
    return;
  }
  if (spec.role == OperandSpec::Role::pointer) {
    decode_pointer(pending, spec, operand);
    return;
  }
  if (spec.role == OperandSpec::Role::label) {
    decode_label(pending, operand);
    return;
  }
  if (spec.role > OperandSpec::Role::label) {
    decode_constant(pending, operand, spec.role);
    return;
  }
  if (is_wide(pending.form.op)) {
    decode_wide(pending, spec, operand);
    return;
  }
  const Type type = spec.type(pending.form.modifiers);
  const bool is_target = spec.role == OperandSpec::Role::target;
  const auto decode_one = [&](const Operand& one) {
    if (is_target) {
      decode_target(pending, one, type);
    } else {
      decode_source(pending, one, type);
    }
  };
  const std::size_t count = spec.register_count(pending.form.modifiers);
  if (operand.kind == Operand::Kind::vector) {
    if (!spec.is_vector || operand.elements.size() != count) {
      fail(operand.where,
           fmt::format("expected {} registers, found {}", count, operand.elements.size()));
    }
    for (const Operand& element : operand.elements) decode_one(element);
    return;
  }
  if (count != 1) fail(operand.where, fmt::format("expected {} registers in braces", count));
  decode_one(operand);
  if (spec.has_pair || !operand.pair.empty()) decode_pair(pending, spec, operand);
}

void InstructionDecoder::decode_pair(Pending& pending, const OperandSpec& spec,
                                     const Operand& operand) {
  if (!spec.has_pair) fail(operand.where, "this operand does not write a second predicate");
  if (operand.pair.empty() || operand.pair == "_") {
    pending.rows.push_back(temporary(0));
    return;
  }
  const std::optional<Register> pair = pending.scopes->find_register(operand.pair);
  if (!pair || pair->width != 0) {
    fail(operand.where, fmt::format("'{}' is not a predicate register", operand.pair));
  }
  pending.rows.push_back(pair->row);
}

/// What must be written as a number.
void InstructionDecoder::decode_constant(Pending& pending, const Operand& operand,
                                         OperandSpec::Role role) {
  const std::uint64_t bits = operand.bits;
  bool is_allowed = bits == 1;
  std::string_view allowed = "the constant 0 or 1";
  if (role == OperandSpec::Role::sign) {
    allowed = "the constant 1 or -1";
    is_allowed = is_allowed || bits == ~0ULL;
  } else if (role == OperandSpec::Role::register_limit) {
    allowed = "a multiple of 8 from 24 to 256";
    is_allowed = bits >= 24 && bits <= 256 && bits % 8 == 0;
  } else {
    is_allowed = is_allowed || bits == 0;
  }
  if (operand.kind != Operand::Kind::integer || !is_allowed) {
    fail(operand.where, fmt::format("expected {}", allowed));
  }
  pending.rows.push_back(code_->registers.constant(bits, 4));
}

void InstructionDecoder::decode_label(Pending& pending, const Operand& operand) {
  const std::optional<std::uint32_t> label =
      operand.kind == Operand::Kind::name ? pending.scopes->find_label(operand.name) : std::nullopt;
  if (!label) fail(operand.where, fmt::format("label '{}' is not in reach", operand.name));
  pending.insn.target = *label;
}

void InstructionDecoder::decode_target(Pending& pending, const Operand& operand, Type type) {
  const RowWidth width = size_bytes(type);
  if (operand.kind == Operand::Kind::sink) {
    pending.rows.push_back(temporary(width));
    return;
  }
  const std::optional<Register> place = operand.kind == Operand::Kind::name && !operand.is_negated
                                            ? pending.scopes->find_register(operand.name)
                                            : std::nullopt;
  if (!place) {
    fail(operand.where, fmt::format("expected a register to write, found '{}'", operand.name));
  }
  if (place->width == width) {
    pending.rows.push_back(place->row);
    return;
  }
  if (place->width < width || width == 0 || place->high_row != 0 || !may_widen(pending.form.op)) {
    fail(operand.where,
         fmt::format("register '{}' does not have the width of the operand: {} bytes "
                     "expected, {} found",
                     operand.name, width, place->width));
  }
  pending.rows.push_back(temporary(width));
  pending.widenings.push_back({pending.rows.back(), *place, type});
}

std::uint32_t InstructionDecoder::narrowed(Pending& pending, const Register& from, Type type) {
  const RowWidth width = size_bytes(type);
  const std::uint32_t row = temporary(width);
  Insn narrow;
  narrow.r[0] = row;
  narrow.r[1] = from.row;
  emit(conversion(unsigned_of(width), unsigned_of(from.width)), narrow, pending.ast->where);
  return row;
}

/// Clocks are read by an instruction of their own, into a register.
Register InstructionDecoder::clock(Pending& pending, const ClockRegister& which) {
  Form form{Op::read_clock, {}};
  form.modifiers.type = unsigned_of(which.width_bytes);
  Insn read;
  read.r[0] = temporary(which.width_bytes);
  read.immediate = which.is_high ? 32 : 0;
  emit(form, read, pending.ast->where);
  return {read.r[0], which.width_bytes};
}

std::uint32_t InstructionDecoder::negated(Pending& pending, const Register& from) {
  Insn negate;
  negate.r[0] = temporary(0);
  negate.r[1] = from.row;
  emit({Op::not_pred, {}}, negate, pending.ast->where);
  return negate.r[0];
}

/// A source register may be wider than its type: registers have no type, and compilers rely on it.
/// Source: PTX ISA, "Operand Size Exceeding Instruction-Type Size".
void InstructionDecoder::decode_source(Pending& pending, const Operand& operand, Type type) {
  if (operand.kind != Operand::Kind::name) {
    pending.rows.push_back(immediate_row(operand, type));
    return;
  }
  const RowWidth width = size_bytes(type);
  std::optional<Register> place = pending.scopes->find_register(operand.name);
  if (!place) {
    const std::optional<SpecialRegister> special = find_special_register(operand.name);
    if (special == SpecialRegister::is_explicit_cluster) {
      place = cluster_flag(pending);
    } else if (special) {
      place = Register{code_->registers.special(*special), 4};
    }
    const std::optional<ClockRegister> which = find_clock(operand.name);
    if (which) place = clock(pending, *which);
  }
  if (!place) {
    const std::optional<Variable> variable = find_variable(*pending.scopes, operand.name);
    if (!variable) {
      fail(operand.where, fmt::format("'{}' is not declared here, or not supported", operand.name));
    }
    pending.rows.push_back(variable_row(*variable, operand, type));
    return;
  }
  if (place->high_row != 0) fail(operand.where, "a register of 128 bits cannot stand here");
  if ((place->width == 0) != (width == 0) || place->width < width) {
    fail(operand.where,
         fmt::format("register '{}' is narrower than the operand: {} bytes expected, "
                     "{} found",
                     operand.name, width, place->width));
  }
  if (operand.is_negated) {
    if (width != 0) fail(operand.where, "only a predicate can be negated");
    place = Register{negated(pending, *place), 0};
  }
  pending.rows.push_back(place->width == width ? place->row : narrowed(pending, *place, type));
}

std::uint32_t InstructionDecoder::immediate_row(const Operand& operand, Type type) {
  const RowWidth width = size_bytes(type);
  std::uint64_t bits = operand.bits;
  switch (operand.kind) {
    case Operand::Kind::integer:
      if (is_float(type)) fail(operand.where, "expected a floating-point constant");
      break;
    case Operand::Kind::real_single:
      if (width != 4) fail(operand.where, "a single-precision constant does not fit this operand");
      break;
    case Operand::Kind::real_double:
      if (type == Type::f32) {
        bits = std::bit_cast<std::uint32_t>(static_cast<float>(std::bit_cast<double>(bits)));
      } else if (width != 8) {
        fail(operand.where, "a double-precision constant does not fit this operand");
      }
      break;
    default:
      fail(operand.where, "expected a register or a constant");
  }
  return code_->registers.constant(bits, width);
}

std::uint32_t InstructionDecoder::variable_row(const Variable& variable, const Operand& operand,
                                               Type type) {
  const RowWidth width = size_bytes(type);
  if (width < 4) fail(operand.where, "the address of a variable needs 32 or 64 bits");
  switch (variable.place) {
    case Variable::Place::dynamic_shared:
      return code_->registers.dynamic_shared(width);
    case Variable::Place::global:
      if (width < 8) fail(operand.where, "a global address needs 64 bits");
      break;
    case Variable::Place::kernel_parameter:
    case Variable::Place::shared:
    case Variable::Place::local:
      break;
  }
  return code_->registers.constant(variable.offset, width);
}

void InstructionDecoder::place_rows(Pending& pending) {
  const std::vector<std::uint32_t>& rows = pending.rows;
  if (rows.size() <= pending.insn.r.size()) {
    for (std::size_t i = 0; i < rows.size(); ++i) pending.insn.r[i] = rows[i];
    return;
  }
  code_->wide.push_back(static_cast<std::uint32_t>(rows.size()));
  pending.insn.target = static_cast<std::uint32_t>(code_->wide.size());
  code_->wide.insert(code_->wide.end(), rows.begin(), rows.end());
}

void InstructionDecoder::finish(Pending& pending) {
  const Position where = pending.ast->where;
  if (info(pending.form.op).name.starts_with("setp_")) {
    const Modifiers& modifiers = pending.form.modifiers;
    pending.insn.immediate = static_cast<std::int32_t>(modifiers.bool_op) |
                             (static_cast<std::int32_t>(modifiers.compare) << kComparePosition) |
                             (modifiers.is_ftz ? kCompareFlushes : 0);
  }
  emit(pending.form, pending.insn, where);
  for (const Pending::Widening& widening : pending.widenings) {
    Insn widen;
    widen.guard = pending.insn.guard;
    widen.guard_flip = pending.insn.guard_flip;
    widen.r[0] = widening.wide.row;
    widen.r[1] = widening.narrow_row;
    const RowWidth from = size_bytes(widening.type);
    const Form form = is_signed(widening.type)
                          ? conversion(signed_of(widening.wide.width), signed_of(from))
                          : conversion(unsigned_of(widening.wide.width), unsigned_of(from));
    emit(form, widen, where);
  }
}

}  // namespace cpverify::sim
