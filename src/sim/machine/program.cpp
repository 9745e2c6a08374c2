#include "sim/machine/program.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cpverify/error.hpp"
#include "sim/isa/ast.hpp"
#include "sim/isa/code.hpp"
#include "sim/isa/decoder.hpp"
#include "sim/isa/insn.hpp"
#include "sim/isa/kernel_info.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/parser.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/isa/type.hpp"
#include "sim/machine/dataflow.hpp"
#include "sim/machine/flow.hpp"
#include "sim/machine/fresh_registers.hpp"
#include "sim/machine/global_memory.hpp"
#include "sim/machine/kernel.hpp"
#include "sim/machine/machine_code.hpp"
#include "support/check.hpp"

namespace cpverify::sim {
namespace {

/// Sum of all variables of a module.
constexpr std::uint64_t kVariableBytesMax = 1ULL << 30;

[[noreturn]] void fail(const ModuleAst& module, Position where, const std::string& message) {
  throw InputError{{module.file, static_cast<int>(where.line), static_cast<int>(where.column)},
                   message};
}

bool has_address(const VariableDeclaration& variable) {
  return !variable.is_extern &&
         (variable.space == VariableSpace::global || variable.space == VariableSpace::constant);
}

/// A variable with values starts as them and zeros; .const and .global without are zeros too, as
/// the driver leaves them. Source: PTX ISA, "Variable Initialization".
std::vector<std::byte> initial_bytes(const ModuleAst& module, const VariableDeclaration& variable,
                                     const VariableAddresses& addresses) {
  std::vector<std::byte> bytes(variable.size_bytes);
  const std::size_t element = size_bytes(variable.type);
  std::size_t at = 0;
  for (const Initialiser& value : variable.values) {
    std::uint64_t bits = value.bits;
    if (!value.symbol.empty()) {
      const auto found = addresses.find(value.symbol);
      if (found == addresses.end() || element != 8) {
        fail(module, variable.where,
             fmt::format("'{}' is no address that '{}' can hold", value.symbol, variable.name));
      }
      bits = found->second;
    }
    for (std::size_t i = 0; i < element; ++i) {
      bytes[at + i] = static_cast<std::byte>(bits >> (8 * i));
    }
    at += element;
  }
  return bytes;
}

void link(Kernel& kernel, const std::string& file) {
  Code& code = kernel.code;
  for (std::size_t i = 0; i < code.insns.size(); ++i) {
    const Form& form = code.forms[i];
    code.insns[i].handler = kernel.machine->find_handler(form);
    if (code.insns[i].handler != nullptr) continue;
    const SourceLine& line = code.lines[i];
    throw InputError{
        {file, static_cast<int>(line.ptx_line), static_cast<int>(line.ptx_column)},
        fmt::format("this combination of suffixes is not supported for '{}' (PTX ISA, section {})",
                    info(form.op).syntax, info(form.op).anchor)};
  }
}

/// For each instruction, how many from it on have no guard and lead to the next one whenever they
/// do not stop the warp.
std::vector<std::uint32_t> straight_runs(const Code& code) {
  std::vector<std::uint32_t> runs(code.insns.size());
  for (std::size_t i = code.insns.size(); i-- > 0;) {
    const Insn& insn = code.insns[i];
    const Effect effect = info(insn.op).effect;
    const bool is_straight = insn.guard == 0 && insn.guard_flip == 0 &&
                             (effect == Effect::pure || effect == Effect::memory);
    if (is_straight) runs[i] = 1 + (i + 1 < runs.size() ? runs[i + 1] : 0);
  }
  return runs;
}

}  // namespace

Program::Program(std::string_view ptx, const std::string& file, GlobalMemory& memory,
                 std::uint32_t device, VectorWidth width)
    : Program{*parse_ptx(ptx, file), memory, device, width} {}

Program::Program(const ModuleAst& module, GlobalMemory& memory, std::uint32_t device,
                 VectorWidth width)
    : variables_{memory}, device_{device} {
  std::uint64_t total = 0;
  VariableAddresses addresses;
  std::vector<const VariableDeclaration*> placed;
  for (const VariableDeclaration& variable : module.variables) {
    if (!has_address(variable)) continue;
    total += variable.size_bytes;
    if (variable.size_bytes == 0 || total > kVariableBytesMax) {
      fail(module, variable.where, "variables of a module take 1 byte to 1 GiB");
    }
    placed.push_back(&variable);
  }
  for (const VariableDeclaration* const variable : placed) {
    addresses[variable->name] = variables_.add(device, variable->size_bytes);
  }
  for (const VariableDeclaration* const variable : placed) {
    const std::vector<std::byte> bytes = initial_bytes(module, *variable, addresses);
    CPVERIFY_CHECK(!memory.write(addresses[variable->name], bytes).has_value());
  }
  for (const FunctionAst& function : module.functions) {
    if (!function.is_entry || !function.has_body) continue;
    auto kernel = std::make_unique<Kernel>();
    kernel->code = decode_entry(module, function, addresses);
    kernel->device = device;
    kernel->machine = &machine_code(width);
    link(*kernel, module.file);
    kernel->straight = straight_runs(kernel->code);
    kernel->refreshed = registers_to_refresh(kernel->code);
    kernel->flow = make_kernel_flow(kernel->code);
    watch_first_uses(kernel->code, kernel->flow);
    kernels_.push_back(std::move(kernel));
  }
}

// Here, where Kernel is complete.
Program::~Program() = default;

const Kernel* Program::find(std::string_view name) const noexcept {
  for (const auto& kernel : kernels_) {
    if (kernel->code.info.name == name) return kernel.get();
  }
  return nullptr;
}

const KernelInfo& kernel_info(const Kernel& kernel) noexcept {
  return kernel.code.info;
}

}  // namespace cpverify::sim
