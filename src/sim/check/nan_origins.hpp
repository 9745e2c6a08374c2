#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cpverify/fault.hpp"
#include "sim/check/special_values.hpp"
#include "sim/isa/code.hpp"
#include "sim/isa/type.hpp"

namespace cpverify::sim {

/// Where the NaNs and infinities of a launch were made, and by which instructions they went on: a
/// tree of nodes, numbered from 1. A path does not name an instruction twice, and its length is
/// bounded.
class NanOrigins {
 public:
  /// `code` must outlive the object.
  explicit NanOrigins(const Code& code) : code_{&code} {}

  /// One instruction made it; `origin.fault` says where and of what.
  [[nodiscard]] std::uint32_t add(std::uint32_t instruction, const SpecialOrigin& origin);
  /// An earlier launch made it.
  [[nodiscard]] std::uint32_t import(const SpecialValueMemory::Pointer& origin);
  /// It goes on through one more instruction, which computes with it or only moves it.
  [[nodiscard]] std::uint32_t extend(std::uint32_t node, std::uint32_t instruction);
  /// What is stored is an `element` from now on.
  [[nodiscard]] const SpecialOrigin& origin(std::uint32_t node) const {
    return *origins_[nodes_[node - 1].origin];
  }
  [[nodiscard]] SpecialValueMemory::Pointer share(std::uint32_t node) const {
    return origins_[nodes_[node - 1].origin];
  }
  /// A NaN that came from memory has been computed with.
  [[nodiscard]] bool is_computed(std::uint32_t node) const { return nodes_[node - 1].length > 0; }
  /// ", through PTX lines 12, 14", or nothing.
  [[nodiscard]] std::string path_text(std::uint32_t node) const;

 private:
  struct Node {
    std::uint32_t parent = 0;  ///< 0 for the first.
    std::uint32_t instruction = 0;
    std::uint32_t origin = 0;
    std::uint32_t length = 0;  ///< Nodes before it.
  };

  const Code* code_;
  std::vector<Node> nodes_;
  std::vector<SpecialValueMemory::Pointer> origins_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> extensions_;
  std::map<std::uint32_t, std::uint32_t> first_of_;  ///< By instruction.
  std::map<const SpecialOrigin*, std::uint32_t> imports_;
};

}  // namespace cpverify::sim
