#include "report/cell_names.hpp"

#include <algorithm>
#include <cstddef>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cpverify/scenario.hpp"
#include "cpverify/verdict.hpp"

namespace cpverify::report {
namespace {

/// Whether `some` is every cell of `all` whose key is among those of `some`.
template <class Key>
bool is_whole(const std::vector<const CellVerdict*>& some, const std::vector<CellVerdict>& all,
              Key CellVerdict::* key) {
  std::set<Key> keys;
  for (const CellVerdict* cell : some) keys.insert(cell->*key);
  const auto count = std::count_if(all.begin(), all.end(), [&](const CellVerdict& cell) {
    return keys.find(cell.*key) != keys.end();
  });
  return static_cast<std::size_t>(count) == some.size();
}

template <class Key>
std::string keys_text(const std::vector<const CellVerdict*>& some, Key CellVerdict::* key) {
  std::vector<std::string> names;
  for (const CellVerdict* cell : some) {
    const std::string text{name(cell->*key)};
    if (std::find(names.begin(), names.end(), text) == names.end()) names.push_back(text);
  }
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace

std::string cell_name(const CellVerdict& cell) {
  // Kernels that are launched as they are have one run and no data mode.
  if (cell.strategy == StrategyKind::launch) return std::string{name(cell.strategy)};
  return fmt::format("{}/{}", name(cell.strategy), name(cell.mode));
}

std::string cells_text(const std::vector<const CellVerdict*>& some,
                       const std::vector<CellVerdict>& all) {
  if (some.size() == all.size()) return {};
  if (is_whole(some, all, &CellVerdict::strategy)) return keys_text(some, &CellVerdict::strategy);
  if (is_whole(some, all, &CellVerdict::mode)) return keys_text(some, &CellVerdict::mode);
  std::vector<std::string> names;
  names.reserve(some.size());
  for (const CellVerdict* cell : some) names.push_back(cell_name(*cell));
  return fmt::format("{}", fmt::join(names, ", "));
}

}  // namespace cpverify::report
