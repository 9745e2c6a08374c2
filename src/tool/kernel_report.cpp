#include "tool/kernel_report.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "report/json_text.hpp"
#include "sim/inspect/module_facts.hpp"
#include "sim/isa/kernel_info.hpp"

namespace cpverify::tool {
namespace {

using nlohmann::ordered_json;
using OpcodeCount = std::pair<std::string, std::uint64_t>;

/// The most frequent first, by name among equals.
std::vector<OpcodeCount> histogram(const sim::EntryFacts& entry) {
  std::vector<OpcodeCount> counts{entry.opcodes.begin(), entry.opcodes.end()};
  std::stable_sort(counts.begin(), counts.end(),
                   [](const OpcodeCount& a, const OpcodeCount& b) { return a.second > b.second; });
  return counts;
}

std::string entry_text(const sim::EntryFacts& entry) {
  const sim::KernelInfo& info = entry.info;
  std::string text = fmt::format("entry {}\n  instructions  {}\n", info.name, entry.instructions);
  text += fmt::format("  shared        {} bytes of a CTA, static\n", info.static_shared_bytes);
  text += fmt::format("  local         {} bytes of a thread\n", info.local_bytes);
  text += fmt::format("  threads       at most {}", info.max_threads);
  const auto& block = info.required_block;
  if (block[0] != 0) text += fmt::format(", exactly {}x{}x{}", block[0], block[1], block[2]);
  text +=
      fmt::format("\n  parameters    {}, {} bytes\n", info.parameters.size(), info.parameter_bytes);
  for (const sim::ParameterInfo& parameter : info.parameters) {
    text += fmt::format("    offset {:5}  size {:5}  {}\n", parameter.offset_bytes,
                        parameter.size_bytes, parameter.name);
  }
  return text;
}

ordered_json entry_json(const sim::EntryFacts& entry) {
  const sim::KernelInfo& info = entry.info;
  ordered_json json;
  json["name"] = info.name;
  json["instructions"] = entry.instructions;
  json["static_shared_bytes"] = info.static_shared_bytes;
  json["local_bytes"] = info.local_bytes;
  json["max_threads"] = info.max_threads;
  json["required_block"] =
      info.required_block[0] == 0 ? ordered_json{} : ordered_json(info.required_block);
  json["parameter_bytes"] = info.parameter_bytes;
  json["parameters"] = ordered_json::array();
  for (const sim::ParameterInfo& parameter : info.parameters) {
    ordered_json one;
    one["name"] = parameter.name;
    one["offset_bytes"] = parameter.offset_bytes;
    one["size_bytes"] = parameter.size_bytes;
    json["parameters"].push_back(std::move(one));
  }
  json["opcodes"] = ordered_json::object();
  for (const OpcodeCount& count : histogram(entry)) json["opcodes"][count.first] = count.second;
  return json;
}

}  // namespace

std::string module_text(const std::string& file, const sim::ModuleFacts& facts,
                        bool has_histogram) {
  std::string text = fmt::format("{}\n", file);
  for (const sim::EntryFacts& entry : facts.entries) {
    text += entry_text(entry);
    if (!has_histogram) continue;
    text += "  opcodes\n";
    for (const OpcodeCount& count : histogram(entry)) {
      text += fmt::format("    {:6}  {}\n", count.second, count.first);
    }
  }
  return text;
}

std::string module_json(const std::string& file, const sim::ModuleFacts& facts) {
  ordered_json json;
  json["schema"] = "cpverify.kernel";
  json["schema_version"] = 1;
  json["file"] = file;
  json["entries"] = ordered_json::array();
  for (const sim::EntryFacts& entry : facts.entries) json["entries"].push_back(entry_json(entry));
  json["unsupported"] = ordered_json::array();
  for (const sim::UnsupportedInstruction& found : facts.unsupported) {
    ordered_json one;
    one["line"] = found.line;
    one["column"] = found.column;
    one["text"] = found.text;
    one["section"] = found.section;
    one["message"] = found.message;
    json["unsupported"].push_back(std::move(one));
  }
  return report::json_text(json);
}

std::string unsupported_text(const sim::ModuleFacts& facts) {
  std::string text;
  for (const sim::UnsupportedInstruction& found : facts.unsupported) {
    text += fmt::format("\n{}", found.message);
    // Messages about a known mnemonic name its section themselves.
    if (!found.section.empty() && found.message.find("PTX ISA, section") == std::string::npos) {
      text += fmt::format(" (PTX ISA, section {})", found.section);
    }
    text += fmt::format("\n    {}", found.text);
  }
  return text;
}

}  // namespace cpverify::tool
