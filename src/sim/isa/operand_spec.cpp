#include "sim/isa/operand_spec.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "sim/isa/opcode.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/isa/type.hpp"
#include "support/check.hpp"

namespace cpverify::sim {
namespace {

OperandSpec parse_spec(std::string_view text) {
  OperandSpec spec;
  if (text.ends_with('?')) {
    spec.is_optional = true;
    text.remove_suffix(1);
  }
  const std::size_t colon = text.find(':');
  if (colon != std::string_view::npos) {
    const std::string_view type = text.substr(colon + 1);
    spec.type_from = type == "atype"  ? OperandSpec::TypeFrom::atype
                     : type == "wide" ? OperandSpec::TypeFrom::wide
                                      : OperandSpec::TypeFrom::fixed;
    spec.fixed = find_type(type);
    text = text.substr(0, colon);
  }
  if (text.find('|') != std::string_view::npos) spec.has_pair = true;
  const std::size_t star = text.find('*');
  if (star != std::string_view::npos) {
    spec.is_vector = true;
    const char count = text[star + 1];
    if (count == 'n' || count == 'h') {
      spec.columns_per_register = count == 'n' ? 2 : 4;
    } else {
      spec.count = count == 'v' ? 0 : static_cast<std::uint8_t>(count - '0');
    }
  }
  switch (text.front()) {
    case 'd':
      spec.role = OperandSpec::Role::target;
      break;
    case 'p':
      spec.role = OperandSpec::Role::target;
      spec.type_from = OperandSpec::TypeFrom::fixed;
      spec.fixed = Type::pred;
      break;
    case '[':
      spec.role = OperandSpec::Role::address;
      if (text == "[s]" || text == "[g]" || text == "[t]") {
        spec.role = OperandSpec::Role::pointer;
        spec.space = text == "[s]" ? Space::shared : text == "[g]" ? Space::global : Space::generic;
        spec.has_coordinates = text == "[t]";
      }
      break;
    case 'l':
      spec.role = OperandSpec::Role::label;
      break;
    case 's':
      spec.role = OperandSpec::Role::sign;
      break;
    case 'r':
      spec.role = OperandSpec::Role::register_limit;
      break;
    case 'f':
      spec.role = OperandSpec::Role::flag;
      break;
    default:
      spec.role = OperandSpec::Role::source;
  }
  return spec;
}

std::vector<OperandSpec> parse_specs(std::string_view text) {
  std::vector<OperandSpec> specs;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(','), text.size());
    CPVERIFY_CHECK(end > 0);
    specs.push_back(parse_spec(text.substr(0, end)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return specs;
}

Type widened(Type type) {
  switch (type) {
    case Type::u16:
      return Type::u32;
    case Type::s16:
      return Type::s32;
    case Type::u32:
      return Type::u64;
    case Type::s32:
      return Type::s64;
    default:
      return Type::none;
  }
}

}  // namespace

Type OperandSpec::type(const Modifiers& modifiers) const noexcept {
  switch (type_from) {
    case TypeFrom::row:
      return modifiers.type;
    case TypeFrom::atype:
      return modifiers.atype;
    case TypeFrom::wide:
      return widened(modifiers.type);
    case TypeFrom::fixed:
      return fixed;
  }
  return Type::none;
}

std::size_t OperandSpec::register_count(const Modifiers& modifiers) const noexcept {
  if (columns_per_register != 0) return modifiers.columns / columns_per_register;
  return count == 0 ? modifiers.vector : count;
}

const std::vector<OperandSpec>& operand_specs(Op op) {
  static const std::vector<std::vector<OperandSpec>> rows = [] {
    std::vector<std::vector<OperandSpec>> result;
    result.reserve(kOps.size());
    for (const OpInfo& row : kOps) result.push_back(parse_specs(row.operands));
    return result;
  }();
  return rows[static_cast<std::size_t>(op)];
}

}  // namespace cpverify::sim
