#pragma once

#include <cstdint>
#include <map>
#include <string_view>

#include "sim/isa/ast.hpp"
#include "sim/isa/code.hpp"
#include "sim/isa/decode_trace.hpp"

namespace cpverify::sim {

/// Addresses of a module's .global and .const variables.
using VariableAddresses = std::map<std::string_view, std::uint64_t>;

/// Decodes an entry that has a body: names resolved, device functions inlined, registers placed,
/// joins inserted. Handlers are still null. Throws InputError; with a trace, instructions that are
/// refused go there instead, and when there are any the code cannot be run.
[[nodiscard]] Code decode_entry(const ModuleAst& module, const FunctionAst& entry,
                                const VariableAddresses& addresses, DecodeTrace* trace = nullptr);

}  // namespace cpverify::sim
