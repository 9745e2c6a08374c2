#include "sim/machine/dataflow.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "sim/isa/code.hpp"
#include "sim/isa/insn.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/operand_spec.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/isa/type.hpp"

namespace cpverify::sim {
namespace {

/// One instruction of a row, whose registers are 64, 128, ... bytes into the file.
Dataflow flow_of(Op op) {
  Code code;
  Form form{op, {}};
  form.modifiers.type = Type::u32;
  form.modifiers.atype = Type::u32;
  form.modifiers.columns = 8;
  Insn insn;
  insn.op = op;
  insn.target = 0;
  for (std::uint32_t i = 0; i < 64; ++i) code.wide.push_back(64 * (i + 1));
  std::copy_n(code.wide.begin(), insn.r.size(), insn.r.begin());
  code.insns.push_back(insn);
  code.forms.push_back(form);
  return dataflow(code, 0);
}

std::size_t count(const Dataflow& flow, Role role) {
  return static_cast<std::size_t>(
      std::count_if(flow.operands.begin(), flow.operands.end(),
                    [role](const FlowOperand& operand) { return operand.role == role; }));
}

TEST(Dataflow, EveryRowHasRolesForAllOfItsRegisters) {
  for (std::size_t i = 0; i < kOpCount; ++i) {
    const auto op = static_cast<Op>(i);
    const std::string name{info(op).name};
    const Dataflow flow = flow_of(op);
    std::size_t targets = 0;
    std::size_t addresses = 0;
    std::size_t registers = 0;
    for (const OperandSpec& spec : operand_specs(op)) {
      if (spec.role == OperandSpec::Role::label) continue;
      // Of 8 columns of D a thread has 4 registers of one element, or 2 of two.
      const std::size_t columns = spec.columns_per_register;
      const std::size_t here =
          columns != 0 ? 8 / columns
                       : (spec.count == 0 ? 1U : spec.count) + (spec.has_pair ? 1U : 0U);
      registers += here;
      if (spec.role == OperandSpec::Role::target) targets += here;
      if (spec.role == OperandSpec::Role::address || spec.role == OperandSpec::Role::pointer) {
        ++addresses;
      }
    }
    EXPECT_EQ(flow.operands.size(), registers) << name;
    EXPECT_EQ(count(flow, Role::target), targets) << name;
    EXPECT_EQ(count(flow, Role::address), addresses) << name;
    // In table order, one register after the other.
    for (std::size_t n = 0; n < flow.operands.size(); ++n) {
      EXPECT_EQ(flow.operands[n].row, 64 * (n + 1)) << name;
    }
  }
}

TEST(Dataflow, RowsThatTouchMemoryOrDecideAreNotTakenForArithmetic) {
  for (std::size_t i = 0; i < kOpCount; ++i) {
    const auto op = static_cast<Op>(i);
    const FlowKind kind = flow_kind(op);
    if (info(op).effect != Effect::pure) {
      EXPECT_NE(kind, FlowKind::compute) << info(op).name;
    }
    // A row that only computes has targets, or it would have no effect at all.
    if (kind == FlowKind::compute && !operand_specs(op).empty()) {
      EXPECT_GT(count(flow_of(op), Role::target), 0U) << info(op).name;
    }
  }
  EXPECT_EQ(flow_kind(Op::ld), FlowKind::load);
  EXPECT_EQ(flow_kind(Op::ldmatrix_x4), FlowKind::load);
  EXPECT_EQ(flow_kind(Op::st), FlowKind::store);
  EXPECT_EQ(flow_kind(Op::red), FlowKind::atomic);
  EXPECT_EQ(flow_kind(Op::atom_cas), FlowKind::atomic);
  EXPECT_EQ(flow_kind(Op::cp_async), FlowKind::copy);
  EXPECT_EQ(flow_kind(Op::mma_bf16), FlowKind::matrix);
  EXPECT_EQ(flow_kind(Op::bra), FlowKind::control);
  EXPECT_EQ(flow_kind(Op::redux), FlowKind::vote);
}

TEST(Dataflow, SourcesThatMustBeDefinedAreToldFromValues) {
  EXPECT_EQ(count(flow_of(Op::mma_bf16), Role::consumed), 10U);
  EXPECT_EQ(count(flow_of(Op::atom_cas), Role::consumed), 2U);
  EXPECT_EQ(count(flow_of(Op::shfl), Role::value), 1U);
  EXPECT_EQ(count(flow_of(Op::shfl), Role::control), 3U);
  EXPECT_EQ(count(flow_of(Op::bar_sync), Role::control), 2U);
  EXPECT_EQ(count(flow_of(Op::st), Role::value), 1U);
}

}  // namespace
}  // namespace cpverify::sim
