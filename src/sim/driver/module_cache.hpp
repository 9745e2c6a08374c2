#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "sim/isa/ast.hpp"
#include "sim/isa/parser.hpp"

namespace cpverify::sim {

/// Modules that have been parsed, by their whole text: every rank loads the same ones.
class ModuleCache {
 public:
  /// Valid as long as the cache. Throws InputError as parse_ptx() does; then nothing is kept.
  [[nodiscard]] const ModuleAst& parse(std::string_view ptx) {
    const auto found = modules_.find(ptx);
    if (found != modules_.end()) return *found->second;
    auto module = parse_ptx(ptx, "ptx");
    return *modules_.emplace(std::string{ptx}, std::move(module)).first->second;
  }

 private:
  std::map<std::string, std::unique_ptr<const ModuleAst>, std::less<>> modules_;
};

}  // namespace cpverify::sim
