#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "cpverify/finding.hpp"
#include "cpverify/ids.hpp"
#include "cpverify/scenario.hpp"

namespace cpverify::judge {

/// What one finding stands for; see docs/findings.md for the granularity.
struct FindingGroup {
  std::string kind;
  std::uint32_t step = 0;
  std::optional<RankId> rank;
  std::string buffer;
  std::string request;
};

/// Collects bad elements into one finding per group: the first one's place and everybody's count.
class FindingLog {
 public:
  FindingLog(Check check, StrategyKind strategy, DataMode mode)
      : check_{check}, strategy_{strategy}, mode_{mode} {}

  /// Counts `count` more bad elements. Returns the finding to be filled when they are the first of
  /// their group, null otherwise; valid until the next call.
  Finding* note(const FindingGroup& group, std::uint64_t count = 1);

  [[nodiscard]] bool empty() const noexcept { return findings_.empty(); }
  [[nodiscard]] const std::vector<Finding>& findings() const noexcept { return findings_; }

 private:
  using Key = std::tuple<std::string, std::uint32_t, std::int64_t, std::string, std::string>;

  Check check_;
  StrategyKind strategy_;
  DataMode mode_;
  std::vector<Finding> findings_;
  std::map<Key, std::size_t> index_;
};

}  // namespace cpverify::judge
