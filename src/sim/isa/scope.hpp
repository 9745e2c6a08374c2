#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string_view>
#include <vector>

#include "sim/isa/ast.hpp"
#include "sim/isa/register_file.hpp"
#include "sim/isa/type.hpp"

namespace cpverify::sim {

/// A register that has a place.
struct Register {
  std::uint32_t row = 0;
  RowWidth width = 4;          ///< 0 for a predicate.
  std::uint32_t high_row = 0;  ///< Of a register of 16 bytes: its upper 8 are there.
};

/// Where a variable lies.
struct Variable {
  enum class Place : std::uint8_t { global, shared, dynamic_shared, local, kernel_parameter };
  Place place = Place::global;
  std::uint64_t offset = 0;  ///< Address, or offset in its space or in the parameters.
};

/// The names that one pair of braces declares.
struct Scope {
  std::vector<RegisterDeclaration> ranges;
  std::map<std::string_view, Register> registers;
  std::map<std::string_view, Variable> variables;
  std::map<std::string_view, std::uint32_t> labels;  ///< To label numbers.
  std::map<std::string_view, const BranchTargets*> branch_targets;
};

/// The scopes around a point of one function, innermost last.
class ScopeStack {
 public:
  explicit ScopeStack(RegisterFile& file) : file_{&file}, scopes_(1) {}

  void open() { scopes_.emplace_back(); }
  void close() { scopes_.pop_back(); }
  [[nodiscard]] Scope& innermost() noexcept { return scopes_.back(); }

  /// Gives a register of a range its row on first use.
  [[nodiscard]] std::optional<Register> find_register(std::string_view name);
  [[nodiscard]] std::optional<Variable> find_variable(std::string_view name) const;
  [[nodiscard]] std::optional<std::uint32_t> find_label(std::string_view name) const;
  /// Null when no scope has a list of that name.
  [[nodiscard]] const BranchTargets* find_branch_targets(std::string_view name) const;

  void declare(const RegisterDeclaration& declaration);

 private:
  [[nodiscard]] Register make_register(Type type, std::string_view name);

  RegisterFile* file_;
  std::vector<Scope> scopes_;
};

}  // namespace cpverify::sim
