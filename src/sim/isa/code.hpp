#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "sim/isa/insn.hpp"
#include "sim/isa/kernel_info.hpp"
#include "sim/isa/register_file.hpp"
#include "sim/isa/syntax.hpp"

namespace cpverify::sim {

/// Where an instruction comes from.
struct SourceLine {
  std::uint32_t ptx_line = 0;
  std::uint32_t ptx_column = 0;
  std::uint32_t file = 0;  ///< Index into Code::files; 0 for none.
  std::uint32_t line = 0;
};

/// A decoded entry, its device functions inlined.
struct Code {
  KernelInfo info;
  std::vector<Insn> insns;
  std::vector<Form> forms;          ///< One per instruction.
  std::vector<SourceLine> lines;    ///< One per instruction.
  std::vector<std::uint32_t> wide;  ///< Registers, before them how many; see Insn::target.
  std::vector<std::string> files{""};
  RegisterFile registers;
};

}  // namespace cpverify::sim
