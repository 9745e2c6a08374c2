#pragma once

#include <functional>
#include <string_view>
#include <vector>

#include "sim/isa/ast.hpp"
#include "sim/isa/lexer.hpp"

namespace cpverify::sim {

/// True of .global, .const, .shared, .local and .param.
[[nodiscard]] bool is_variable_space(std::string_view word) noexcept;

/// The rest of a declaration whose state space has been taken, to its semicolon. Calls `add` for
/// each variable.
void parse_variables(Lexer& lexer, const Token& space, bool is_extern,
                     const std::function<void(VariableDeclaration)>& add);

/// `.param .type name, ...)`: the open parenthesis has been taken.
void parse_parameters(Lexer& lexer, std::vector<VariableDeclaration>& parameters);

/// The rest of a .reg declaration.
void parse_registers(Lexer& lexer, std::vector<Statement>& body);

}  // namespace cpverify::sim
