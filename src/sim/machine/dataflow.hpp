#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/isa/code.hpp"
#include "sim/isa/insn.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/isa/type.hpp"

namespace cpverify::sim {

/// How what an instruction reads reaches what it writes.
enum class FlowKind : std::uint8_t {
  compute,    ///< Each lane for itself: a target depends on all sources.
  load,       ///< Memory to registers.
  store,      ///< Registers to memory.
  atomic,     ///< Both, and it combines.
  copy,       ///< Memory to memory: registers only say where and how much.
  matrix,     ///< Products over the warp: a target depends on all lanes' sources.
  shuffle,    ///< A lane's target is another lane's source.
  transpose,  ///< The same, by halves of registers.
  vote,       ///< A target depends on one source of all lanes.
  control,    ///< Decides what runs next, or who waits.
};

/// What a register is to an instruction. An instruction needs to know the last four to do anything.
enum class Role : std::uint8_t { target, value, address, control, guard, consumed };

struct FlowOperand {
  std::uint32_t row = 0;   ///< Byte offset in the register file.
  std::uint32_t slot = 0;  ///< The register's first part in a RegisterShadow.
  std::uint8_t width = 0;  ///< Bytes of a lane; 0 for a predicate.
  Role role = Role::value;
  Type type = Type::none;
};

/// Bytes of a register; a predicate counts as one.
[[nodiscard]] inline std::uint32_t part_count(const FlowOperand& operand) noexcept {
  return operand.width == 0 ? 1 : operand.width;
}

/// The registers of one instruction, in table order, the guard behind them.
struct Dataflow {
  FlowKind kind = FlowKind::compute;
  bool is_guarded = false;
  std::vector<FlowOperand> operands;
  Handler handler = nullptr;         ///< The instruction's own, when watch() is in its place.
  std::vector<FlowOperand> watched;  ///< Operands that may never have been written.
};

/// Follows from the row: its effect, and the first word of its name.
[[nodiscard]] FlowKind flow_kind(Op op) noexcept;

/// The registers that code.insns[index] reads and writes.
[[nodiscard]] Dataflow dataflow(const Code& code, std::size_t index);

/// Whether uses of a register that may never have been written are looked for as they come. Not of
/// a predicate: a guard that keeps all lanes from an instruction is one, and runs nothing.
[[nodiscard]] inline bool is_watched(const FlowOperand& operand) noexcept {
  return operand.width != 0;
}

/// What the checkers of data flow know of a kernel before it runs.
struct KernelFlow {
  std::vector<Dataflow> insns;  ///< One per instruction.
  /// Registers (byte offset, width) that some path reads before it writes them.
  std::vector<FlowOperand> undefined_at_entry;
  std::vector<std::uint32_t> row_of_slot;
};

/// After the code has its handlers.
[[nodiscard]] KernelFlow make_kernel_flow(const Code& code);

}  // namespace cpverify::sim
