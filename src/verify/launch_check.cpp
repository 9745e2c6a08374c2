#include "verify/launch_check.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <ios>
#include <iterator>
#include <string>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cpverify/error.hpp"
#include "cpverify/launch.hpp"
#include "sim/inspect/module_facts.hpp"
#include "sim/isa/kernel_info.hpp"
#include "support/nearest.hpp"

namespace cpverify::verify_detail {
namespace {

std::string read_ptx(const std::filesystem::path& path, const LaunchSpec& spec) {
  std::ifstream file{path, std::ios::binary};
  std::string text{std::istreambuf_iterator<char>{file}, std::istreambuf_iterator<char>{}};
  if (file) return text;
  throw InputError{spec.where, fmt::format("cannot read {}", path.generic_string())};
}

std::uint32_t size_bytes(const KernelArgument& argument) noexcept {
  const bool has_4_bytes =
      std::holds_alternative<std::int32_t>(argument) || std::holds_alternative<float>(argument);
  return has_4_bytes ? 4 : 8;
}

const sim::KernelInfo& find_entry(const sim::ModuleFacts& facts, const Launch& launch,
                                  const SourceLocation& where) {
  std::vector<std::string> known;
  for (const sim::EntryFacts& entry : facts.entries) {
    if (entry.info.name == launch.entry) return entry.info;
    known.push_back(entry.info.name);
  }
  throw InputError{where,
                   fmt::format("{} has no entry '{}'{}; it has: {}", launch.module, launch.entry,
                               did_you_mean(launch.entry, known), fmt::join(known, ", "))};
}

void check_arguments(const sim::KernelInfo& entry, const Launch& launch,
                     const SourceLocation& where) {
  if (entry.parameters.size() != launch.arguments.size()) {
    throw InputError{where, fmt::format("'{}' takes {} arguments, and {} are given", entry.name,
                                        entry.parameters.size(), launch.arguments.size())};
  }
  for (std::size_t i = 0; i < entry.parameters.size(); ++i) {
    const std::uint32_t given = size_bytes(launch.arguments[i]);
    const std::uint32_t taken = entry.parameters[i].size_bytes;
    if (given == taken) continue;
    throw InputError{where, fmt::format("argument {} of '{}' has {} bytes; expected {}", i,
                                        entry.name, given, taken)};
  }
}

/// Says what a driver would only answer with "invalid value". Source of the limits: CUDA C++
/// Programming Guide, "Compute capabilities", table of technical specifications.
void check_resources(const sim::KernelInfo& entry, const Launch& launch,
                     const SourceLocation& where) {
  constexpr std::uint64_t kStaticSharedMax = std::uint64_t{48} * 1024;
  constexpr std::uint64_t kSharedMax = std::uint64_t{227} * 1024;
  if (entry.static_shared_bytes > kStaticSharedMax) {
    throw InputError{where, fmt::format("'{}' declares {} bytes of shared memory; expected at most "
                                        "{}, and more as shared_bytes of the launch",
                                        entry.name, entry.static_shared_bytes, kStaticSharedMax)};
  }
  const std::uint64_t shared = std::uint64_t{entry.static_shared_bytes} + launch.shared_bytes;
  if (shared > kSharedMax) {
    throw InputError{
        where, fmt::format("'{}' declares {} bytes of shared memory, and shared_bytes is {}; "
                           "expected at most {} together",
                           entry.name, entry.static_shared_bytes, launch.shared_bytes, kSharedMax)};
  }
  const std::uint64_t threads = std::uint64_t{launch.block[0]} * launch.block[1] * launch.block[2];
  if (threads > entry.max_threads) {
    throw InputError{where, fmt::format("'block' has {} threads, and '{}' is compiled for {}",
                                        threads, entry.name, entry.max_threads)};
  }
}

}  // namespace

void check_launches(const LaunchSpec& spec, const std::string& kernel_directory) {
  const std::filesystem::path path =
      spec.file.empty() ? std::filesystem::path{kernel_directory} / (spec.module + ".ptx")
                        : spec.file;
  const std::string ptx = read_ptx(path, spec);
  const sim::ModuleFacts facts = sim::inspect_module(ptx, path.generic_string());
  if (!facts.unsupported.empty()) throw InputError{facts.unsupported.front().message};
  for (const LaunchStep& step : spec.steps) {
    const auto* const launch = std::get_if<Launch>(&step.action);
    if (launch == nullptr) continue;
    const sim::KernelInfo& entry = find_entry(facts, *launch, step.where);
    check_arguments(entry, *launch, step.where);
    check_resources(entry, *launch, step.where);
  }
}

}  // namespace cpverify::verify_detail
