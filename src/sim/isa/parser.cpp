#include "sim/isa/parser.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "sim/isa/ast.hpp"
#include "sim/isa/declaration_parser.hpp"
#include "sim/isa/lexer.hpp"

namespace cpverify::sim {
namespace {

/// Looking up a name costs a step per scope; compilers nest two or three.
constexpr std::uint32_t kScopeDepthMax = 64;

Position position(const Token& token) {
  return {token.line, token.column};
}

class Parser {
 public:
  explicit Parser(ModuleAst& module) : module_{&module}, lexer_{module.text, module.file} {}

  void parse_module() {
    while (lexer_.peek().kind != TokenKind::end) parse_top_level();
  }

 private:
  void parse_top_level();
  void parse_linked(const Token& token);
  void parse_function(bool is_entry);
  void parse_function_attributes(FunctionAst& function);
  void parse_body(FunctionAst& function);
  void parse_directive(FunctionAst& function);
  void parse_branch_targets(const Token& token, FunctionAst& function);
  void parse_line_mark(FunctionAst& function);
  void parse_file();
  void skip_section();
  InstructionAst parse_instruction(const Token& name);
  Operand parse_operand();
  Operand parse_scalar();
  Operand parse_number(bool is_negative);
  Operand parse_address();
  Operand parse_group(Operand::Kind kind, std::string_view close);
  std::array<std::uint32_t, 3> parse_extent();
  std::uint32_t parse_count();

  ModuleAst* module_;
  Lexer lexer_;
  std::set<std::string, std::less<>> defined_;  ///< Functions with a body.
};

void Parser::parse_file() {
  FileName file;
  file.index = static_cast<std::uint32_t>(lexer_.expect_integer("a file number"));
  if (lexer_.peek().kind != TokenKind::string) lexer_.fail(lexer_.peek(), "expected a file name");
  file.name = lexer_.take().text;
  // Time stamp and size may follow.
  while (lexer_.take_if(",")) (void)lexer_.expect_integer("a number");
  module_->files.push_back(file);
}

/// Debug sections hold bytes for debuggers; nothing in them changes what a kernel does.
void Parser::skip_section() {
  (void)lexer_.expect_word("a section name");
  const Token open = lexer_.peek();
  lexer_.expect("{");
  for (std::uint32_t depth = 1; depth > 0;) {
    if (lexer_.peek().kind == TokenKind::end) lexer_.fail(open, "section without end");
    const Token token = lexer_.take();
    if (token.kind != TokenKind::punctuation) continue;
    if (token.text == "{") ++depth;
    if (token.text == "}") --depth;
  }
}

void Parser::parse_top_level() {
  const Token token = lexer_.expect_word("a directive");
  if (token.text == ".version") {
    if (lexer_.peek().kind != TokenKind::real_double) lexer_.fail(token, "expected a version");
    (void)lexer_.take();
  } else if (token.text == ".target") {
    do (void)lexer_.expect_word("a target");
    while (lexer_.take_if(","));
  } else if (token.text == ".address_size") {
    if (lexer_.expect_integer("an address size") != 64) {
      lexer_.fail(token, "only .address_size 64 is supported");
    }
  } else if (token.text == ".file") {
    parse_file();
  } else if (token.text == ".section") {
    skip_section();
  } else if (token.text == ".pragma") {
    while (!lexer_.take_if(";")) {
      if (lexer_.take().kind == TokenKind::end) lexer_.fail(token, "directive without end");
    }
  } else if (token.text == ".entry" || token.text == ".func") {
    parse_function(token.text == ".entry");
  } else {
    parse_linked(token);
  }
}

/// A variable, or the linkage directive of a variable or function.
void Parser::parse_linked(const Token& token) {
  const bool is_linkage =
      token.text == ".visible" || token.text == ".weak" || token.text == ".extern";
  if (!is_linkage && !is_variable_space(token.text)) {
    lexer_.fail(token, fmt::format("directive '{}' is not supported", token.text));
  }
  // The function that follows is parsed by itself: linkage changes nothing for one module.
  if (lexer_.is_next(".entry") || lexer_.is_next(".func")) return;
  const Token space = is_linkage ? lexer_.expect_word("a directive") : token;
  parse_variables(lexer_, space, token.text == ".extern", [this](VariableDeclaration variable) {
    module_->variables.push_back(std::move(variable));
  });
}

std::array<std::uint32_t, 3> Parser::parse_extent() {
  std::array<std::uint32_t, 3> extent{1, 1, 1};
  std::size_t count = 0;
  do {
    if (count == 3) lexer_.fail(lexer_.peek(), "expected at most 3 numbers");
    const std::uint64_t value = lexer_.expect_integer("a number of threads");
    extent[count++] = static_cast<std::uint32_t>(std::min<std::uint64_t>(value, 1U << 30));
  } while (lexer_.take_if(","));
  return extent;
}

std::uint32_t Parser::parse_count() {
  return static_cast<std::uint32_t>(
      std::min<std::uint64_t>(lexer_.expect_integer("a number"), 1U << 30));
}

void Parser::parse_function_attributes(FunctionAst& function) {
  while (lexer_.peek().kind == TokenKind::word) {
    const Token token = lexer_.take();
    if (token.text == ".maxntid") {
      function.max_threads = parse_extent();
    } else if (token.text == ".reqntid") {
      function.required_threads = parse_extent();
    } else if (token.text == ".reqnctapercluster") {
      function.required_cluster = parse_extent();
    } else if (token.text == ".explicitcluster") {
      function.has_explicit_cluster = true;
    } else if (token.text == ".maxclusterrank") {
      function.max_cluster = parse_count();
    } else if (token.text == ".maxnreg") {
      function.registers = parse_count();
    } else if (token.text == ".minnctapersm" || token.text == ".maxnctapersm") {
      (void)lexer_.expect_integer("a number");
    } else if (token.text == ".pragma") {
      (void)lexer_.take();
      lexer_.expect(";");
    } else if (token.text != ".noreturn") {
      lexer_.fail(token, fmt::format("function attribute '{}' is not supported", token.text));
    }
  }
}

void Parser::parse_function(bool is_entry) {
  FunctionAst function;
  function.is_entry = is_entry;
  if (!is_entry && lexer_.take_if("(")) parse_parameters(lexer_, function.results);
  const Token name = lexer_.expect_word("a function name");
  function.name = name.text;
  function.where = position(name);
  if (lexer_.take_if("(")) parse_parameters(lexer_, function.parameters);
  parse_function_attributes(function);
  if (!lexer_.take_if(";")) {
    function.has_body = true;
    if (!defined_.emplace(name.text).second) {
      lexer_.fail(name, fmt::format("function '{}' is defined twice", name.text));
    }
    parse_body(function);
  }
  module_->functions.push_back(std::move(function));
}

void Parser::parse_body(FunctionAst& function) {
  const Token open = lexer_.peek();
  lexer_.expect("{");
  for (std::uint32_t depth = 1; depth > 0;) {
    const Token token = lexer_.peek();
    if (token.kind == TokenKind::end) {
      lexer_.fail(open, fmt::format("body of '{}' without end", function.name));
    }
    if (lexer_.take_if("{")) {
      if (++depth > kScopeDepthMax) lexer_.fail(token, "scopes are nested too deeply");
      function.body.emplace_back(ScopeOpen{});
    } else if (lexer_.take_if("}")) {
      --depth;
      if (depth > 0) function.body.emplace_back(ScopeClose{});
    } else if (token.text.starts_with('.') && token.kind == TokenKind::word) {
      parse_directive(function);
    } else if (!lexer_.take_if(";")) {
      const Token first = lexer_.is_next("@") ? Token{} : lexer_.expect_word("an instruction");
      if (first.kind == TokenKind::word && lexer_.take_if(":")) {
        function.body.emplace_back(LabelAst{first.text, position(first)});
      } else {
        function.body.emplace_back(parse_instruction(first));
      }
    }
  }
}

void Parser::parse_directive(FunctionAst& function) {
  const Token token = lexer_.take();
  if (token.text == ".reg") {
    parse_registers(lexer_, function.body);
  } else if (token.text == ".loc") {
    parse_line_mark(function);
  } else if (token.text == ".pragma") {
    (void)lexer_.take();
    lexer_.expect(";");
  } else if (token.text == ".branchtargets") {
    parse_branch_targets(token, function);
  } else if (is_variable_space(token.text) || token.text == ".extern") {
    const bool is_extern = token.text == ".extern";
    parse_variables(lexer_, is_extern ? lexer_.expect_word("a state space") : token, is_extern,
                    [&function](VariableDeclaration variable) {
                      function.body.emplace_back(std::move(variable));
                    });
  } else {
    lexer_.fail(token, fmt::format("directive '{}' is not supported", token.text));
  }
}

/// The label before it is the name of the list.
void Parser::parse_branch_targets(const Token& token, FunctionAst& function) {
  const auto* const label =
      function.body.empty() ? nullptr : std::get_if<LabelAst>(&function.body.back());
  if (label == nullptr) lexer_.fail(token, "'.branchtargets' needs a label before it");
  BranchTargets targets{label->name, {}, label->where};
  do targets.labels.push_back(parse_scalar());
  while (lexer_.take_if(","));
  lexer_.expect(";");
  function.body.back() = std::move(targets);
}

/// .loc file line column [, function_name label [+ offset], inlined_at file line column]
void Parser::parse_line_mark(FunctionAst& function) {
  LineMark mark;
  mark.file = static_cast<std::uint32_t>(lexer_.expect_integer("a file number"));
  mark.line = static_cast<std::uint32_t>(lexer_.expect_integer("a line"));
  (void)lexer_.expect_integer("a column");
  if (lexer_.take_if(",")) {
    lexer_.expect("function_name");
    (void)lexer_.expect_word("a label");
    if (lexer_.take_if("+")) (void)lexer_.expect_integer("an offset");
    lexer_.expect(",");
    lexer_.expect("inlined_at");
    for (int i = 0; i < 3; ++i) (void)lexer_.expect_integer("a number");
  }
  function.body.emplace_back(mark);
}

InstructionAst Parser::parse_instruction(const Token& name) {
  InstructionAst instruction;
  Token opcode = name;
  if (lexer_.take_if("@")) {
    instruction.is_guard_negated = lexer_.take_if("!");
    instruction.guard = lexer_.expect_word("a predicate").text;
    opcode = lexer_.expect_word("an instruction");
  }
  instruction.name = opcode.text;
  instruction.where = position(opcode);
  if (opcode.text.starts_with('.') || opcode.text.starts_with('%')) {
    lexer_.fail(opcode, fmt::format("expected an instruction, found '{}'", opcode.text));
  }
  if (lexer_.take_if(";")) return instruction;
  do instruction.operands.push_back(parse_operand());
  while (lexer_.take_if(","));
  lexer_.expect(";");
  return instruction;
}

Operand Parser::parse_number(bool is_negative) {
  const Token token = lexer_.take();
  Operand operand;
  operand.where = position(token);
  operand.bits = token.bits;
  switch (token.kind) {
    case TokenKind::integer:
      operand.kind = Operand::Kind::integer;
      if (is_negative) operand.bits = 0 - token.bits;
      return operand;
    case TokenKind::real_single:
      operand.kind = Operand::Kind::real_single;
      if (is_negative) operand.bits ^= 1ULL << 31;
      return operand;
    case TokenKind::real_double:
      operand.kind = Operand::Kind::real_double;
      if (is_negative) operand.bits ^= 1ULL << 63;
      return operand;
    default:
      lexer_.fail(token, fmt::format("expected an operand, found '{}'", token.text.substr(0, 40)));
  }
}

Operand Parser::parse_scalar() {
  const Token token = lexer_.peek();
  if (lexer_.take_if("-")) return parse_number(true);
  const bool is_negated = lexer_.take_if("!");
  if (lexer_.peek().kind != TokenKind::word) return parse_number(false);
  Operand operand;
  operand.where = position(token);
  operand.is_negated = is_negated;
  operand.name = lexer_.take().text;
  operand.kind = operand.name == "_" ? Operand::Kind::sink : Operand::Kind::name;
  return operand;
}

Operand Parser::parse_group(Operand::Kind kind, std::string_view close) {
  Operand operand;
  operand.kind = kind;
  operand.where = position(lexer_.peek());
  if (lexer_.take_if(close)) return operand;
  do operand.elements.push_back(parse_scalar());
  while (lexer_.take_if(","));
  lexer_.expect(close);
  return operand;
}

Operand Parser::parse_address() {
  Operand operand;
  operand.kind = Operand::Kind::address;
  operand.where = position(lexer_.peek());
  if (lexer_.peek().kind == TokenKind::integer) {
    operand.offset = static_cast<std::int64_t>(lexer_.take().bits);
  } else {
    operand.name = lexer_.expect_word("a register, a variable or a number").text;
    const bool is_minus = lexer_.take_if("-");
    if (is_minus || lexer_.take_if("+")) {
      const bool is_negative = lexer_.take_if("-") != is_minus;
      const std::uint64_t bits = lexer_.expect_integer("an offset");
      operand.offset = static_cast<std::int64_t>(is_negative ? 0 - bits : bits);
    }
  }
  // Tensor coordinates, [base, {x, y}]: read here so that the decoder can refuse the instruction.
  if (lexer_.take_if(",")) {
    lexer_.expect("{");
    operand.elements = parse_group(Operand::Kind::vector, "}").elements;
  }
  lexer_.expect("]");
  return operand;
}

Operand Parser::parse_operand() {
  if (lexer_.take_if("{")) return parse_group(Operand::Kind::vector, "}");
  if (lexer_.take_if("(")) return parse_group(Operand::Kind::list, ")");
  if (lexer_.take_if("[")) return parse_address();
  Operand operand = parse_scalar();
  if (lexer_.take_if("|")) operand.pair = lexer_.expect_word("a predicate").text;
  return operand;
}

}  // namespace

std::unique_ptr<const ModuleAst> parse_ptx(std::string_view text, const std::string& file) {
  auto module = std::make_unique<ModuleAst>();
  module->text = text;
  module->file = file;
  Parser{*module}.parse_module();
  return module;
}

}  // namespace cpverify::sim
