#pragma once

#include <cstdint>
#include <map>
#include <string_view>

#include "sim/isa/ast.hpp"
#include "sim/isa/code.hpp"

namespace cpverify::sim {

/// Addresses of a module's .global and .const variables.
using VariableAddresses = std::map<std::string_view, std::uint64_t>;

/// Decodes an entry that has a body: names resolved, device functions inlined, registers placed,
/// joins inserted. Handlers are still null. Throws InputError.
[[nodiscard]] Code decode_entry(const ModuleAst& module, const FunctionAst& entry,
                                const VariableAddresses& addresses);

}  // namespace cpverify::sim
