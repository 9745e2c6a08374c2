#include "judge/finding_log.hpp"

#include <cstdint>

#include "cpverify/finding.hpp"

namespace cpverify::judge {

Finding* FindingLog::note(const FindingGroup& group, std::uint64_t count) {
  const std::int64_t rank = group.rank ? std::int64_t{group.rank->value()} : -1;
  const auto [entry, is_new] = index_.try_emplace(
      Key{group.kind, group.step, rank, group.buffer, group.request}, findings_.size());
  if (!is_new) {
    findings_[entry->second].count += count;
    return nullptr;
  }
  Finding& finding = findings_.emplace_back();
  finding.check = check_;
  finding.kind = group.kind;
  finding.strategy = strategy_;
  finding.mode = mode_;
  finding.step = group.step;
  finding.rank = group.rank;
  finding.buffer = group.buffer;
  finding.request = group.request;
  finding.count = count;
  return &finding;
}

}  // namespace cpverify::judge
