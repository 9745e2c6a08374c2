#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

namespace cpverify::sim {

/// What is wrong with one instruction; views point into ModuleAst::text.
struct RefusedInstruction {
  std::string_view name;
  std::string message;  ///< Of the InputError, `file:line:column: ` included.
};

/// Decoding that does not stop at an instruction which is refused: for who wants to know them all.
struct DecodeTrace {
  /// Instructions of the entry and of the device functions inlined into it, by dotted name.
  std::map<std::string, std::uint64_t, std::less<>> opcodes;
  /// By (line, column): an instruction that is inlined twice is refused once.
  std::map<std::pair<std::uint32_t, std::uint32_t>, RefusedInstruction> refused;
};

}  // namespace cpverify::sim
