#include "sim/machine/dataflow.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <string_view>
#include <vector>

#include "sim/isa/code.hpp"
#include "sim/isa/insn.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/operand_spec.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/isa/type.hpp"
#include "sim/machine/first_uses.hpp"
#include "support/check.hpp"

namespace cpverify::sim {
namespace {

struct Family {
  std::string_view prefix;
  FlowKind kind;
};

/// By the beginning of a row's name; the first match counts. Rows that match none are `compute`, or
/// `copy` when they touch memory.
constexpr Family kFamilies[] = {
    {"ldmatrix", FlowKind::load},
    {"stmatrix", FlowKind::store},
    {"ldu", FlowKind::load},
    {"ld_b128", FlowKind::load},
    {"st_b128", FlowKind::store},
    {"atom", FlowKind::atomic},
    {"red_", FlowKind::atomic},
    {"redux", FlowKind::vote},
    {"mma_", FlowKind::matrix},
    {"wgmma", FlowKind::matrix},
    {"shfl", FlowKind::shuffle},
    {"vote", FlowKind::vote},
    {"movmatrix", FlowKind::transpose},
    {"match_", FlowKind::vote},
    {"elect", FlowKind::vote},
    {"bar_", FlowKind::control},
    {"barrier_", FlowKind::control},
    {"brx", FlowKind::control},
    {"mbarrier", FlowKind::copy},
    {"bulk_", FlowKind::copy},
    {"prefetch", FlowKind::copy},
    {"nanosleep", FlowKind::control},
};

/// Of a register that is neither written nor an address. Shuffles and votes move or combine their
/// first source; the others say between which lanes.
Role source_role(FlowKind kind, std::size_t nth_source) {
  switch (kind) {
    case FlowKind::compute:
    case FlowKind::load:
    case FlowKind::store:
    case FlowKind::transpose:
      return Role::value;
    case FlowKind::atomic:
    case FlowKind::matrix:
      return Role::consumed;
    case FlowKind::shuffle:
    case FlowKind::vote:
      return nth_source == 0 ? Role::value : Role::control;
    case FlowKind::copy:
    case FlowKind::control:
      return Role::control;
  }
  return Role::value;
}

/// The registers of an instruction in table order.
std::vector<std::uint32_t> rows_of(const Code& code, const Insn& insn, std::size_t count) {
  if (count > insn.r.size()) {
    CPVERIFY_CHECK(insn.target + count <= code.wide.size());
    const auto begin = code.wide.begin() + static_cast<std::ptrdiff_t>(insn.target);
    return {begin, begin + static_cast<std::ptrdiff_t>(count)};
  }
  return {insn.r.begin(), insn.r.begin() + static_cast<std::ptrdiff_t>(count)};
}

/// Adds the registers of one operand, without their rows.
void add_operand(const OperandSpec& spec, const Form& form, FlowKind kind, std::size_t& sources,
                 Dataflow& flow) {
  if (spec.role == OperandSpec::Role::label) return;
  FlowOperand operand;
  operand.type = spec.type(form.modifiers);
  operand.width = static_cast<std::uint8_t>(size_bytes(operand.type));
  const std::size_t count = spec.register_count(form.modifiers);
  if (spec.role == OperandSpec::Role::address || spec.role == OperandSpec::Role::pointer) {
    operand.role = Role::address;
    operand.type = Type::u64;
    operand.width = 8;
    flow.operands.push_back(operand);
    return;
  }
  operand.role =
      spec.role == OperandSpec::Role::target ? Role::target : source_role(kind, sources++);
  for (std::size_t i = 0; i < count; ++i) flow.operands.push_back(operand);
  if (!spec.has_pair) return;
  operand.type = Type::pred;
  operand.width = 0;
  flow.operands.push_back(operand);
}

/// Numbers the bytes of all registers. An instruction may use the low part of a register as an
/// address; its widest use says how long it is.
void assign_slots(KernelFlow& flow) {
  std::map<std::uint32_t, FlowOperand> registers;
  for (const Dataflow& insn : flow.insns) {
    for (const FlowOperand& operand : insn.operands) {
      FlowOperand& known = registers.try_emplace(operand.row, operand).first->second;
      known.width = std::max(known.width, operand.width);
    }
  }
  for (auto& [row, known] : registers) {
    known.slot = static_cast<std::uint32_t>(flow.row_of_slot.size());
    flow.row_of_slot.insert(flow.row_of_slot.end(), part_count(known), row);
  }
  for (Dataflow& insn : flow.insns) {
    for (FlowOperand& operand : insn.operands) operand.slot = registers[operand.row].slot;
  }
}

}  // namespace

FlowKind flow_kind(Op op) noexcept {
  const OpInfo& row = info(op);
  switch (op) {
    case Op::ld:
      return FlowKind::load;
    case Op::st:
      return FlowKind::store;
    case Op::red:
      return FlowKind::atomic;
    default:
      break;
  }
  for (const Family& family : kFamilies) {
    if (row.name.starts_with(family.prefix)) return family.kind;
  }
  switch (row.effect) {
    case Effect::pure:
      return FlowKind::compute;
    case Effect::memory:
      return FlowKind::copy;
    case Effect::barrier:
    case Effect::branch:
    case Effect::exit:
    case Effect::join:
      return FlowKind::control;
  }
  return FlowKind::compute;
}

Dataflow dataflow(const Code& code, std::size_t index) {
  const Insn& insn = code.insns[index];
  const Form& form = code.forms[index];
  Dataflow flow;
  flow.kind = flow_kind(form.op);
  std::size_t sources = 0;
  for (const OperandSpec& spec : operand_specs(form.op)) {
    add_operand(spec, form, flow.kind, sources, flow);
  }
  const std::vector<std::uint32_t> rows = rows_of(code, insn, flow.operands.size());
  const auto specs = operand_specs(form.op);
  bool is_first_address = std::any_of(specs.begin(), specs.end(), [](const OperandSpec& spec) {
    return spec.role == OperandSpec::Role::address;
  });
  for (std::size_t i = 0; i < rows.size(); ++i) {
    FlowOperand& operand = flow.operands[i];
    operand.row = rows[i];
    if (operand.role != Role::address) continue;
    if (is_first_address) operand.width = insn.address_bytes;
    is_first_address = false;
  }
  flow.is_guarded = insn.guard != 0 || insn.guard_flip != 0;
  if (flow.is_guarded) flow.operands.push_back({insn.guard, 0, 0, Role::guard, Type::pred});
  return flow;
}

KernelFlow make_kernel_flow(const Code& code) {
  KernelFlow flow;
  flow.insns.reserve(code.insns.size());
  for (std::size_t i = 0; i < code.insns.size(); ++i) flow.insns.push_back(dataflow(code, i));
  assign_slots(flow);
  flow.undefined_at_entry = find_first_uses(code, flow.insns);
  std::set<std::uint32_t> rows;
  for (const FlowOperand& operand : flow.undefined_at_entry) {
    if (is_watched(operand)) rows.insert(operand.row);
  }
  for (std::size_t i = 0; i < code.insns.size(); ++i) {
    Dataflow& insn = flow.insns[i];
    insn.handler = code.insns[i].handler;
    for (const FlowOperand& operand : insn.operands) {
      if (rows.contains(operand.row)) insn.watched.push_back(operand);
    }
  }
  return flow;
}

}  // namespace cpverify::sim
