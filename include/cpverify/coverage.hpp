#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace cpverify {

/// Where an instruction of a kernel comes from.
struct InstructionPlace {
  std::string source_file;  ///< Innermost .loc; empty without a line table.
  std::uint32_t source_line = 0;
  std::uint32_t ptx_line = 0;
  std::uint32_t ptx_column = 0;
  bool is_branch = false;  ///< A branch or exit with a guard: it may go both ways.

  /// Compilers give line 0 to instructions that no line of the source asked for.
  [[nodiscard]] bool has_source() const noexcept { return !source_file.empty() && source_line > 0; }
  std::strong_ordering operator<=>(const InstructionPlace&) const = default;
};

/// Lanes that came to an instruction, summed over warps and launches.
struct InstructionCount {
  std::uint64_t executed = 0;  ///< Of a branch: those that took it.
  std::uint64_t skipped = 0;   ///< The guard said no; a branch was not taken.
};

/// How often the instructions of kernels were executed.
struct Coverage {
  /// The entry's name and its instructions: two builds of one name are two kernels.
  using Kernel = std::pair<std::string, std::vector<InstructionPlace>>;
  struct Counts {
    std::uint64_t launches = 0;
    std::vector<InstructionCount> instructions;  ///< One for each place.
  };
  std::map<Kernel, Counts> kernels;

  /// `counts` must have as many instructions as the kernel.
  void add(const Kernel& kernel, const Counts& counts);
  /// The sum, whatever the order.
  void merge(const Coverage& other);
};

}  // namespace cpverify
