#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "sim/isa/ast.hpp"
#include "sim/isa/code.hpp"
#include "sim/isa/insn.hpp"
#include "sim/isa/operand_spec.hpp"
#include "sim/isa/scope.hpp"
#include "sim/isa/special_register.hpp"
#include "sim/isa/syntax.hpp"

namespace cpverify::sim {

/// Turns one instruction after the other into Insns at the end of a Code. Branch targets are label
/// numbers until the caller knows the places.
class InstructionDecoder {
 public:
  InstructionDecoder(std::string file, Code& code) : file_{std::move(file)}, code_{&code} {}

  struct Line {
    std::uint32_t file = 0;
    std::uint32_t line = 0;
  };
  [[nodiscard]] Line line() const noexcept { return line_; }
  void set_line(std::uint32_t file, std::uint32_t line) noexcept { line_ = {file, line}; }
  /// Where variables that no scope declares are looked up.
  void set_outer(std::function<std::optional<Variable>(std::string_view)> outer) {
    outer_ = std::move(outer);
  }

  void decode(const InstructionAst& ast, ScopeStack& scopes);
  /// A branch to `label` under the guard of `ast`.
  void branch(const InstructionAst& ast, std::uint32_t label, ScopeStack& scopes);
  /// A brx.idx without a guard: `ast` has an index, and `labels`, of which there are some, are what
  /// it chooses from.
  void branch_by_index(const InstructionAst& ast, const std::vector<std::uint32_t>& labels,
                       ScopeStack& scopes);
  void emit(const Form& form, const Insn& insn, Position where);

 private:
  /// The instruction being decoded.
  struct Pending {
    const InstructionAst* ast = nullptr;
    ScopeStack* scopes = nullptr;
    Form form;
    Insn insn;
    std::vector<std::uint32_t> rows;  ///< Registers in table order.
    struct Widening {
      std::uint32_t narrow_row = 0;
      Register wide;
      Type type = Type::none;
    };
    std::vector<Widening> widenings;  ///< To be done after the instruction.
    bool has_address = false;
  };

  [[nodiscard]] Form find_form(const InstructionAst& ast);
  void decode_guard(Pending& pending);
  void decode_operands(Pending& pending);
  void decode_operand(Pending& pending, const OperandSpec& spec, const Operand& operand);
  void decode_target(Pending& pending, const Operand& operand, Type type);
  void decode_source(Pending& pending, const Operand& operand, Type type);
  void decode_address(Pending& pending, const Operand& operand);
  void decode_pointer(Pending& pending, const OperandSpec& spec, const Operand& operand);
  [[nodiscard]] Register address_base(const Pending& pending, const Operand& operand, Space& space);
  [[nodiscard]] Register named_address(const Pending& pending, const Operand& operand,
                                       Space& space);
  void decode_pair(Pending& pending, const OperandSpec& spec, const Operand& operand);
  void decode_constant(Pending& pending, const Operand& operand, OperandSpec::Role role);
  void decode_label(Pending& pending, const Operand& operand);
  void decode_parameter_load(Pending& pending);
  [[nodiscard]] bool is_parameter_load(const Pending& pending) const;
  [[nodiscard]] std::uint32_t immediate_row(const Operand& operand, Type type);
  [[nodiscard]] std::uint32_t variable_row(const Variable& variable, const Operand& operand,
                                           Type type);
  [[nodiscard]] std::uint32_t narrowed(Pending& pending, const Register& from, Type type);
  [[nodiscard]] Register clock(Pending& pending, const ClockRegister& which);
  [[nodiscard]] std::uint32_t negated(Pending& pending, const Register& from);
  [[nodiscard]] std::uint32_t temporary(RowWidth width);
  /// The carry flag of extended precision: one predicate of the whole kernel.
  [[nodiscard]] std::uint32_t carry();
  [[nodiscard]] std::optional<Variable> find_variable(const ScopeStack& scopes,
                                                      std::string_view name) const;
  /// Operands and instructions of 128 bits, of which the machine has two of 64 bits.
  void decode_wide(Pending& pending, const OperandSpec& spec, const Operand& operand);
  void finish_wide(Pending& pending);
  /// %is_explicit_cluster, as a predicate.
  [[nodiscard]] Register cluster_flag(Pending& pending);
  void place_rows(Pending& pending);
  void finish(Pending& pending);
  [[noreturn]] void fail(Position where, const std::string& message) const;

  std::string file_;
  Code* code_;
  Line line_;
  std::function<std::optional<Variable>(std::string_view)> outer_;
  std::map<std::string_view, Form> forms_;
  std::map<std::pair<RowWidth, std::uint32_t>, std::uint32_t> temporaries_;
  std::uint32_t temporaries_used_ = 0;
  std::optional<std::uint32_t> carry_;
};

}  // namespace cpverify::sim
