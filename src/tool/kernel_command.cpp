#include <cstddef>
#include <memory>
#include <string>

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cpverify/error.hpp"
#include "scenario/file_text.hpp"
#include "sim/inspect/instruction_page.hpp"
#include "sim/inspect/module_facts.hpp"
#include "tool/commands.hpp"
#include "tool/exit_code.hpp"
#include "tool/kernel_report.hpp"
#include "tool/output_file.hpp"

namespace cpverify::tool {
namespace {

/// The largest PTX that compilers emit for attention kernels has a few MiB.
constexpr std::size_t kFileBytesMax = 64U << 20;

struct KernelFlags {
  std::string path;
  bool has_histogram = false;
  bool is_json = false;
  bool has_instructions = false;
};

int inspect(const KernelFlags& flags) {
  if (flags.has_instructions) {
    write_stdout(sim::instruction_page());
    return kExitPassed;
  }
  if (flags.path.empty()) throw InputError{"kernel: give a PTX file, or --instructions"};
  const std::string ptx = scenario::read_file(flags.path, {}, kFileBytesMax);
  const sim::ModuleFacts facts = sim::inspect_module(ptx, flags.path);
  if (flags.is_json) write_stdout(module_json(flags.path, facts));
  if (!facts.unsupported.empty()) {
    throw InputError{fmt::format("{}: {} instructions are not supported{}", flags.path,
                                 facts.unsupported.size(), unsupported_text(facts))};
  }
  if (!flags.is_json) write_stdout(module_text(flags.path, facts, flags.has_histogram));
  return kExitPassed;
}

}  // namespace

void add_kernel_command(CLI::App& app, Action& action) {
  const auto flags = std::make_shared<KernelFlags>();
  CLI::App* command = app.add_subcommand("kernel", "Say what a PTX file holds; nothing is run");
  command->add_option("file", flags->path, "PTX file")->type_name("FILE");
  command->add_flag("--histogram", flags->has_histogram, "How often each opcode is written");
  command->add_flag("--json", flags->is_json,
                    "Everything as JSON, unsupported instructions included");
  command->add_flag("--instructions", flags->has_instructions,
                    "Print the page of all instruction forms (docs/ptx.md)");
  command->callback([flags, &action] { action = [flags] { return inspect(*flags); }; });
}

}  // namespace cpverify::tool
