#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "cpverify/ids.hpp"
#include "cpverify/scenario.hpp"

namespace cpverify {

/// One defect, in the field's words, with enough to find it again.
struct Finding {
  Check check = Check::metadata;
  std::string kind;  ///< Stable snake_case name, e.g. "metadata_mismatch", "out_of_bounds_read".
  StrategyKind strategy = StrategyKind::single;
  DataMode mode = DataMode::random;
  std::uint32_t step = 0;
  std::optional<RankId> rank;
  std::string request;                ///< Request id, empty when none applies.
  std::optional<std::int64_t> token;  ///< Query token: position in the request.
  std::optional<std::int64_t> key;    ///< Key token: position in the request.
  std::optional<std::uint32_t> head;
  std::optional<std::int64_t> page;
  std::optional<std::int64_t> slot;
  std::string buffer;
  std::optional<std::int64_t> element;
  std::string kernel;
  std::string source;       ///< "kernels/attention_fma.cuh:120".
  std::uint64_t count = 1;  ///< How many elements or accesses this finding stands for.
  std::string detail;       ///< One line, no trailing full stop: found, expected, bound.

  /// Every set field under its name, as text; what `expect` matches against.
  [[nodiscard]] std::map<std::string, std::string> fields() const;
};

}  // namespace cpverify
