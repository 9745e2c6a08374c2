#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "sim/isa/kernel_info.hpp"

/// What a PTX file holds, without running it.
namespace cpverify::sim {

struct EntryFacts {
  KernelInfo info;
  std::uint64_t instructions = 0;  ///< As written; device functions count where they are called.
  std::map<std::string, std::uint64_t, std::less<>> opcodes;  ///< Sum: instructions.
};

/// An instruction that the machine refuses.
struct UnsupportedInstruction {
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  std::string text;     ///< On one line, shortened.
  std::string section;  ///< Anchor in the PTX ISA manual; empty for a word it does not have.
  std::string message;  ///< `file:line:column: ` and the reason.
};

struct ModuleFacts {
  std::vector<EntryFacts> entries;  ///< In the order of the file; those with a body.
  /// All of them, by place. When there is one, the module does not load and entries may be short.
  std::vector<UnsupportedInstruction> unsupported;
};

/// Throws InputError `file:line:column` when the text is not PTX, holds no entry, or does not load
/// for a reason other than an instruction.
[[nodiscard]] ModuleFacts inspect_module(std::string_view ptx, const std::string& file);

}  // namespace cpverify::sim
