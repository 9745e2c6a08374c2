#include "sim/check/nan_origins.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "sim/check/special_values.hpp"
#include "sim/isa/code.hpp"
#include "sim/isa/insn.hpp"

namespace cpverify::sim {
namespace {

/// Beyond it the first that an instruction made stands for all later ones.
constexpr std::size_t kOriginsMax = std::size_t{1} << 18;
constexpr std::size_t kNodesMax = std::size_t{1} << 20;
constexpr std::uint32_t kPathMax = 8;

}  // namespace

std::uint32_t NanOrigins::add(std::uint32_t instruction, const SpecialOrigin& origin) {
  const auto first = first_of_.find(instruction);
  if (origins_.size() >= kOriginsMax && first != first_of_.end()) return first->second;
  nodes_.push_back({0, instruction, static_cast<std::uint32_t>(origins_.size()), 0});
  origins_.push_back(std::make_shared<const SpecialOrigin>(origin));
  const auto node = static_cast<std::uint32_t>(nodes_.size());
  first_of_.try_emplace(instruction, node);
  return node;
}

std::uint32_t NanOrigins::import(const SpecialValueMemory::Pointer& origin) {
  const auto [found, is_new] = imports_.try_emplace(origin.get(), 0);
  if (is_new) {
    nodes_.push_back({0, kNoIndex, static_cast<std::uint32_t>(origins_.size()), 0});
    origins_.push_back(origin);
    found->second = static_cast<std::uint32_t>(nodes_.size());
  }
  return found->second;
}

std::uint32_t NanOrigins::extend(std::uint32_t node, std::uint32_t instruction) {
  const Node last = nodes_[node - 1];
  if (last.length == kPathMax || nodes_.size() >= kNodesMax) return node;
  for (std::uint32_t at = node; at != 0; at = nodes_[at - 1].parent) {
    if (nodes_[at - 1].instruction == instruction) return node;
  }
  const auto [found, is_new] = extensions_.try_emplace(std::pair{node, instruction}, 0);
  if (is_new) {
    nodes_.push_back({node, instruction, last.origin, last.length + 1});
    found->second = static_cast<std::uint32_t>(nodes_.size());
  }
  return found->second;
}

std::string NanOrigins::path_text(std::uint32_t node) const {
  std::vector<std::uint32_t> lines;
  for (; nodes_[node - 1].parent != 0; node = nodes_[node - 1].parent) {
    lines.push_back(code_->lines[nodes_[node - 1].instruction].ptx_line);
  }
  if (lines.empty()) return {};
  std::reverse(lines.begin(), lines.end());
  return fmt::format(", through PTX line{} {}", lines.size() == 1 ? "" : "s",
                     fmt::join(lines, ", "));
}

}  // namespace cpverify::sim
