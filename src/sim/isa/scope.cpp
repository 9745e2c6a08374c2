#include "sim/isa/scope.hpp"

#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <system_error>

#include "sim/isa/ast.hpp"
#include "sim/isa/register_file.hpp"
#include "sim/isa/type.hpp"

namespace cpverify::sim {
namespace {

/// True when `name` is `range.name` followed by an index below `range.count`.
bool is_member(const RegisterDeclaration& range, std::string_view name) {
  if (!name.starts_with(range.name) || name.size() == range.name.size()) return false;
  const std::string_view digits = name.substr(range.name.size());
  if (digits.size() > 1 && digits.front() == '0') return false;
  std::uint32_t index = 0;
  const char* const begin = digits.data();
  const char* const end = begin + digits.size();
  const auto [stop, status] = std::from_chars(begin, end, index);
  return status == std::errc{} && stop == end && index < range.count;
}

}  // namespace

Register ScopeStack::make_register(Type type, std::string_view name) {
  constexpr RowWidth kHalfBytes = 8;
  Register place;
  place.width = size_bytes(type);
  place.row = file_->add_row(type == Type::b128 ? kHalfBytes : place.width);
  file_->set_name(place.row, name);
  if (type != Type::b128) return place;
  place.high_row = file_->add_row(kHalfBytes);
  file_->set_name(place.high_row, name);
  return place;
}

void ScopeStack::declare(const RegisterDeclaration& declaration) {
  Scope& scope = scopes_.back();
  if (declaration.count == 0) {
    scope.registers[declaration.name] = make_register(declaration.type, declaration.name);
  } else {
    scope.ranges.push_back(declaration);
  }
}

std::optional<Register> ScopeStack::find_register(std::string_view name) {
  for (std::size_t i = scopes_.size(); i-- > 0;) {
    Scope& scope = scopes_[i];
    if (const auto found = scope.registers.find(name); found != scope.registers.end()) {
      return found->second;
    }
    for (const RegisterDeclaration& range : scope.ranges) {
      if (!is_member(range, name)) continue;
      return scope.registers.emplace(name, make_register(range.type, name)).first->second;
    }
  }
  return std::nullopt;
}

std::optional<Variable> ScopeStack::find_variable(std::string_view name) const {
  for (std::size_t i = scopes_.size(); i-- > 0;) {
    const auto found = scopes_[i].variables.find(name);
    if (found != scopes_[i].variables.end()) return found->second;
  }
  return std::nullopt;
}

const BranchTargets* ScopeStack::find_branch_targets(std::string_view name) const {
  for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
    const auto found = scope->branch_targets.find(name);
    if (found != scope->branch_targets.end()) return found->second;
  }
  return nullptr;
}

std::optional<std::uint32_t> ScopeStack::find_label(std::string_view name) const {
  for (std::size_t i = scopes_.size(); i-- > 0;) {
    const auto found = scopes_[i].labels.find(name);
    if (found != scopes_[i].labels.end()) return found->second;
  }
  return std::nullopt;
}

}  // namespace cpverify::sim
