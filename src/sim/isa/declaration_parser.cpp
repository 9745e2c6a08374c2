#include "sim/isa/declaration_parser.hpp"

#include <cstdint>
#include <functional>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sim/isa/ast.hpp"
#include "sim/isa/lexer.hpp"
#include "sim/isa/type.hpp"

namespace cpverify::sim {
namespace {

/// No variable may be larger: the sum of a hostile module must not overflow 64 bits.
constexpr std::uint64_t kVariableBytesMax = 1ULL << 32;
constexpr std::uint64_t kRegisterCountMax = 1U << 20;

/// What stands before the name: alignment, element type, vector length.
struct TypePrefix {
  Type type = Type::none;
  std::uint32_t vector = 1;
  std::uint32_t align_bytes = 0;
};

std::uint32_t parse_alignment(Lexer& lexer) {
  const Token token = lexer.peek();
  const std::uint64_t align = lexer.expect_integer("an alignment");
  if (align == 0 || align > 4096 || (align & (align - 1)) != 0) {
    lexer.fail(token, "an alignment is a power of two up to 4096");
  }
  return static_cast<std::uint32_t>(align);
}

TypePrefix parse_type_prefix(Lexer& lexer) {
  TypePrefix prefix;
  while (lexer.peek().kind == TokenKind::word && lexer.peek().text.starts_with('.')) {
    const Token token = lexer.take();
    if (token.text == ".align") {
      prefix.align_bytes = parse_alignment(lexer);
    } else if (token.text == ".ptr") {
      // `.ptr .space .align n` describes what a pointer parameter points to: not its own layout.
      if (lexer.peek().text.starts_with('.') && lexer.peek().text != ".align") (void)lexer.take();
      if (lexer.take_if(".align")) (void)parse_alignment(lexer);
    } else if (token.text == ".v2" || token.text == ".v4") {
      prefix.vector = token.text == ".v2" ? 2 : 4;
    } else if (find_type(token.text.substr(1)) != Type::none && prefix.type == Type::none) {
      prefix.type = find_type(token.text.substr(1));
    } else {
      lexer.fail(token, fmt::format("'{}' is not supported in a declaration", token.text));
    }
  }
  if (prefix.type == Type::none) lexer.fail(lexer.peek(), "expected a type");
  return prefix;
}

VariableSpace find_space(const Lexer& lexer, const Token& token) {
  if (token.text == ".global") return VariableSpace::global;
  if (token.text == ".const") return VariableSpace::constant;
  if (token.text == ".shared") return VariableSpace::shared;
  if (token.text == ".local") return VariableSpace::local;
  if (token.text == ".param") return VariableSpace::param;
  lexer.fail(token, fmt::format("expected a state space, found '{}'", token.text));
}

/// Extents `[n][m]`; the first may be left out.
void parse_extents(Lexer& lexer, VariableDeclaration& variable) {
  while (lexer.take_if("[")) {
    if (lexer.take_if("]")) {
      variable.size_bytes = 0;
      continue;
    }
    const Token token = lexer.peek();
    const std::uint64_t extent = lexer.expect_integer("an extent");
    if (extent > kVariableBytesMax || extent * variable.size_bytes > kVariableBytesMax) {
      lexer.fail(token, "variable is larger than 4 GiB");
    }
    variable.size_bytes *= extent;
    lexer.expect("]");
  }
}

void parse_initialiser(Lexer& lexer, VariableDeclaration& variable) {
  // Braces may nest, one pair per dimension; the values come in memory order either way.
  std::uint32_t depth = 0;
  do {
    while (lexer.take_if("{")) ++depth;
    const bool is_negative = lexer.take_if("-");
    const Token token = lexer.take();
    Initialiser value;
    if (token.kind == TokenKind::word && !is_negative) {
      value.symbol = token.text;
    } else if (token.kind == TokenKind::integer || token.kind == TokenKind::real_single ||
               token.kind == TokenKind::real_double) {
      value.bits = token.bits;
      if (is_negative && token.kind == TokenKind::integer) value.bits = 0 - token.bits;
      if (is_negative && token.kind == TokenKind::real_single) value.bits ^= 1ULL << 31;
      if (is_negative && token.kind == TokenKind::real_double) value.bits ^= 1ULL << 63;
    } else {
      lexer.fail(token, "expected a value");
    }
    variable.values.push_back(value);
    while (depth > 0 && lexer.take_if("}")) --depth;
  } while (lexer.take_if(","));
  if (depth > 0) lexer.expect("}");
}

VariableDeclaration parse_declarator(Lexer& lexer, const TypePrefix& prefix) {
  const Token name = lexer.expect_word("a name");
  VariableDeclaration variable;
  variable.name = name.text;
  variable.where = {name.line, name.column};
  variable.type = prefix.type;
  variable.size_bytes = static_cast<std::uint64_t>(size_bytes(prefix.type)) * prefix.vector;
  if (variable.size_bytes == 0) lexer.fail(name, "a variable cannot be a predicate");
  variable.align_bytes = prefix.align_bytes == 0 ? static_cast<std::uint32_t>(variable.size_bytes)
                                                 : prefix.align_bytes;
  parse_extents(lexer, variable);
  return variable;
}

}  // namespace

bool is_variable_space(std::string_view word) noexcept {
  return word == ".global" || word == ".const" || word == ".shared" || word == ".local" ||
         word == ".param";
}

void parse_variables(Lexer& lexer, const Token& space, bool is_extern,
                     const std::function<void(VariableDeclaration)>& add) {
  const VariableSpace variable_space = find_space(lexer, space);
  const TypePrefix prefix = parse_type_prefix(lexer);
  do {
    VariableDeclaration variable = parse_declarator(lexer, prefix);
    variable.space = variable_space;
    variable.is_extern = is_extern;
    if (lexer.take_if("=")) parse_initialiser(lexer, variable);
    const std::uint64_t element = size_bytes(variable.type);
    if (variable.size_bytes == 0 && !is_extern)
      variable.size_bytes = variable.values.size() * element;
    if (variable.values.size() * element > variable.size_bytes) {
      lexer.fail(lexer.peek(), fmt::format("more values than '{}' holds", variable.name));
    }
    add(std::move(variable));
  } while (lexer.take_if(","));
  lexer.expect(";");
}

void parse_parameters(Lexer& lexer, std::vector<VariableDeclaration>& parameters) {
  if (lexer.take_if(")")) return;
  do {
    const Token token = lexer.peek();
    if (!lexer.take_if(".param")) lexer.fail(token, "expected '.param'");
    const TypePrefix prefix = parse_type_prefix(lexer);
    parameters.push_back(parse_declarator(lexer, prefix));
    parameters.back().space = VariableSpace::param;
  } while (lexer.take_if(","));
  lexer.expect(")");
}

void parse_registers(Lexer& lexer, std::vector<Statement>& body) {
  const TypePrefix prefix = parse_type_prefix(lexer);
  if (prefix.vector != 1) lexer.fail(lexer.peek(), "vector registers are not supported");
  do {
    RegisterDeclaration declaration;
    declaration.name = lexer.expect_word("a register name").text;
    declaration.type = prefix.type;
    if (lexer.take_if("<")) {
      const Token token = lexer.peek();
      const std::uint64_t count = lexer.expect_integer("a count");
      if (count == 0 || count > kRegisterCountMax) {
        lexer.fail(token, "a register count is 1 to 1048576");
      }
      declaration.count = static_cast<std::uint32_t>(count);
      lexer.expect(">");
    }
    body.emplace_back(declaration);
  } while (lexer.take_if(","));
  lexer.expect(";");
}

}  // namespace cpverify::sim
