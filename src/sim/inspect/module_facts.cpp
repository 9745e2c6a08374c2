#include "sim/inspect/module_facts.hpp"

#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include <fmt/format.h>

#include "cpverify/error.hpp"
#include "sim/isa/ast.hpp"
#include "sim/isa/code.hpp"
#include "sim/isa/decode_trace.hpp"
#include "sim/isa/decoder.hpp"
#include "sim/isa/manual_section.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/parser.hpp"
#include "sim/machine/global_memory.hpp"
#include "sim/machine/handlers.hpp"
#include "sim/machine/program.hpp"

namespace cpverify::sim {
namespace {

constexpr std::size_t kTextMax = 100;

using Refusals = std::map<std::pair<std::uint32_t, std::uint32_t>, UnsupportedInstruction>;

/// From a place in the module's text to the semicolon, blanks and line ends as one blank.
std::string statement_text(const ModuleAst& module, std::size_t begin) {
  std::string text;
  for (const char c : std::string_view{module.text}.substr(begin)) {
    const bool is_blank = c == ' ' || c == '\t' || c == '\n' || c == '\r';
    if (is_blank && (text.empty() || text.back() == ' ')) continue;
    text += is_blank ? ' ' : c;
    if (c == ';') break;
    if (text.size() == kTextMax) return text + "...";
  }
  return text;
}

/// Places in the file of decoded instructions, as offsets into its text.
std::size_t offset_of(const ModuleAst& module, std::uint32_t line, std::uint32_t column) {
  std::size_t at = 0;
  for (std::uint32_t i = 1; i < line; ++i) at = module.text.find('\n', at) + 1;
  return at + column - 1;
}

void note_refused(const ModuleAst& module, const DecodeTrace& trace, Refusals& refusals) {
  for (const auto& [place, refused] : trace.refused) {
    UnsupportedInstruction found;
    found.line = place.first;
    found.column = place.second;
    found.text =
        statement_text(module, static_cast<std::size_t>(refused.name.data() - module.text.data()));
    found.section = manual_section(refused.name);
    found.message = refused.message;
    refusals.try_emplace(place, std::move(found));
  }
}

/// Rows of the table that exist, but not with these suffixes.
void note_unhandled(const ModuleAst& module, const Code& code, Refusals& refusals) {
  for (std::size_t i = 0; i < code.forms.size(); ++i) {
    if (find_handler(code.forms[i]) != nullptr) continue;
    const OpInfo& row = info(code.forms[i].op);
    const SourceLine& line = code.lines[i];
    UnsupportedInstruction found;
    found.line = line.ptx_line;
    found.column = line.ptx_column;
    found.text = statement_text(module, offset_of(module, line.ptx_line, line.ptx_column));
    found.section = row.anchor;
    found.message = fmt::format("{}:{}:{}: this combination of suffixes is not supported for '{}'",
                                module.file, line.ptx_line, line.ptx_column, row.syntax);
    refusals.try_emplace({line.ptx_line, line.ptx_column}, std::move(found));
  }
}

EntryFacts entry_facts(const Code& code, DecodeTrace& trace) {
  EntryFacts facts;
  facts.info = code.info;
  facts.opcodes = std::move(trace.opcodes);
  for (const auto& opcode : facts.opcodes) facts.instructions += opcode.second;
  return facts;
}

/// Addresses that only have to exist: nothing runs.
VariableAddresses any_addresses(const ModuleAst& module) {
  VariableAddresses addresses;
  std::uint64_t next = 0;
  for (const VariableDeclaration& variable : module.variables) {
    if (!variable.is_extern) addresses[variable.name] = next += 256;
  }
  return addresses;
}

}  // namespace

ModuleFacts inspect_module(std::string_view ptx, const std::string& file) {
  const std::unique_ptr<const ModuleAst> module = parse_ptx(ptx, file);
  const VariableAddresses addresses = any_addresses(*module);
  ModuleFacts facts;
  Refusals refusals;
  for (const FunctionAst& function : module->functions) {
    if (!function.is_entry || !function.has_body) continue;
    DecodeTrace trace;
    const Code code = decode_entry(*module, function, addresses, &trace);
    note_refused(*module, trace, refusals);
    note_unhandled(*module, code, refusals);
    facts.entries.push_back(entry_facts(code, trace));
  }
  if (facts.entries.empty()) {
    throw InputError{fmt::format("{}: holds no .entry with a body", file)};
  }
  for (auto& refusal : refusals) facts.unsupported.push_back(std::move(refusal.second));
  if (!facts.unsupported.empty()) return facts;
  // What is left to refuse is about variables; loading it is the surest answer.
  GlobalMemory memory;
  const Program program{ptx, file, memory, 0};
  return facts;
}

}  // namespace cpverify::sim
