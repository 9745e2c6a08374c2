#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "cpverify/dtype.hpp"
#include "cpverify/finding.hpp"
#include "cpverify/ids.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "judge/checks.hpp"
#include "judge/finding_log.hpp"
#include "judge/judge.hpp"

namespace cpverify::judge {
namespace {

std::string_view kind_name(CollectiveKind kind) noexcept {
  switch (kind) {
    case CollectiveKind::all_gather:
      return "all_gather";
  }
  return "?";
}

/// One collective as its rank calls it.
struct Call {
  const Collective* collective = nullptr;
  std::size_t operation = 0;  ///< Index in the rank's operations.
};

/// What a rank calls in one group, in order.
struct Sequence {
  const RankPlan* rank = nullptr;
  std::vector<Call> calls;
};

bool agree(const Call& a, const Call& b) {
  return a.operation == b.operation && a.collective->kind == b.collective->kind &&
         a.collective->count == b.collective->count && a.collective->dtype == b.collective->dtype &&
         a.collective->meaning == b.collective->meaning;
}

/// The call that most members make; on a tie the one of the group's first rank.
const Sequence& majority(const std::vector<Sequence>& members, std::size_t index) {
  std::size_t best = 0;
  std::ptrdiff_t best_votes = -1;
  for (std::size_t m = 0; m < members.size(); ++m) {
    if (index >= members[m].calls.size()) continue;
    const Call& call = members[m].calls[index];
    const auto votes = std::count_if(members.begin(), members.end(), [&](const Sequence& other) {
      return index < other.calls.size() && agree(other.calls[index], call);
    });
    if (votes > best_votes) {
      best = m;
      best_votes = votes;
    }
  }
  return members[best];
}

class CollectiveComparison {
 public:
  CollectiveComparison(const Plan& plan, DataMode mode, CheckReport& report)
      : plan_{plan}, log_{Check::collectives, plan.strategy, mode}, report_{report} {}

  void compare() {
    check_membership();
    for (std::uint32_t group = 0; group < plan_.groups.size(); ++group) compare_group(group);
    report_.findings.insert(report_.findings.end(), log_.findings().begin(), log_.findings().end());
  }

 private:
  void check_membership() {
    for (const RankPlan& rank : plan_.ranks) {
      std::size_t index = 0;
      for (const Operation& operation : rank.operations) {
        const auto* collective = std::get_if<Collective>(&operation.body);
        if (collective == nullptr) continue;
        const bool is_member =
            collective->group < plan_.groups.size() &&
            std::count(plan_.groups[collective->group].members.begin(),
                       plan_.groups[collective->group].members.end(), rank.rank) == 1;
        if (!is_member) {
          note("collective_group_invalid", rank, index, collective,
               fmt::format("group {} does not have rank {} once", collective->group,
                           rank.rank.value()));
        }
        ++index;
      }
    }
  }

  void compare_group(std::uint32_t group) {
    std::vector<Sequence> members;
    std::size_t longest = 0;
    for (const RankId member : plan_.groups[group].members) {
      const auto rank = std::ranges::find_if(
          plan_.ranks, [member](const RankPlan& entry) { return entry.rank == member; });
      if (rank == plan_.ranks.end()) continue;
      members.push_back(sequence(*rank, group));
      longest = std::max(longest, members.back().calls.size());
    }
    for (std::size_t index = 0; index < longest; ++index) {
      const Sequence& expected = majority(members, index);
      for (const Sequence& member : members) compare_call(member, expected, index, group);
    }
  }

  static Sequence sequence(const RankPlan& rank, std::uint32_t group) {
    Sequence sequence{.rank = &rank, .calls = {}};
    for (std::size_t i = 0; i < rank.operations.size(); ++i) {
      const auto* collective = std::get_if<Collective>(&rank.operations[i].body);
      if (collective != nullptr && collective->group == group)
        sequence.calls.push_back({collective, i});
    }
    return sequence;
  }

  void compare_call(const Sequence& member, const Sequence& model, std::size_t index,
                    std::uint32_t group) {
    ++report_.compared;
    const Call& want = model.calls[index];
    const std::string as =
        fmt::format("as on rank {} (group {})", model.rank->rank.value(), plan_.groups[group].name);
    if (index >= member.calls.size()) {
      note("collective_missing", *member.rank, index, nullptr,
           fmt::format("found {} collectives, expected {} {}", member.calls.size(),
                       model.calls.size(), as));
      return;
    }
    const Call& got = member.calls[index];
    if (agree(got, want)) return;
    const auto differ = [&](const char* kind, const auto& found, const auto& expected) {
      note(kind, *member.rank, index, got.collective,
           fmt::format("collective {}: found {}, expected {} {}", index, found, expected, as));
    };
    if (is_reordered(member, model)) {
      differ("collective_order_mismatch", got.collective->meaning, want.collective->meaning);
      return;
    }
    if (got.collective->kind != want.collective->kind) {
      differ("collective_kind_mismatch", kind_name(got.collective->kind),
             kind_name(want.collective->kind));
    }
    if (got.collective->count != want.collective->count)
      differ("collective_count_mismatch", got.collective->count, want.collective->count);
    if (got.collective->dtype != want.collective->dtype) {
      differ("collective_dtype_mismatch", name(got.collective->dtype),
             name(want.collective->dtype));
    }
    if (got.collective->meaning != want.collective->meaning)
      differ("collective_meaning_mismatch", got.collective->meaning, want.collective->meaning);
    if (got.operation != want.operation) {
      differ("collective_order_mismatch", fmt::format("operation {}", got.operation),
             fmt::format("operation {}", want.operation));
    }
  }

  /// The same meanings in another order.
  static bool is_reordered(const Sequence& a, const Sequence& b) {
    const auto meanings = [](const Sequence& sequence) {
      std::vector<std::string> found;
      found.reserve(sequence.calls.size());
      for (const Call& call : sequence.calls) found.push_back(call.collective->meaning);
      return found;
    };
    std::vector<std::string> left = meanings(a);
    std::vector<std::string> right = meanings(b);
    if (left == right) return false;
    std::ranges::sort(left);
    std::ranges::sort(right);
    return left == right;
  }

  void note(const std::string& kind, const RankPlan& rank, std::size_t index,
            const Collective* collective, const std::string& detail) {
    std::string buffer;
    if (collective != nullptr && collective->send.buffer.value() < rank.buffers.size())
      buffer = rank.buffers[collective->send.buffer.value()].name;
    Finding* finding = log_.note({.kind = kind,
                                  .step = plan_.step,
                                  .rank = rank.rank,
                                  .buffer = buffer,
                                  .request = std::string{}});
    if (finding == nullptr) return;
    finding->element = static_cast<std::int64_t>(index);
    finding->detail = detail;
  }

  const Plan& plan_;
  FindingLog log_;
  CheckReport& report_;
};

bool has_collectives(const std::vector<Plan>& plans) {
  return std::ranges::any_of(plans, [](const Plan& plan) {
    return std::ranges::any_of(plan.ranks, [](const RankPlan& rank) {
      return std::ranges::any_of(rank.operations, [](const Operation& op) {
        return std::holds_alternative<Collective>(op.body);
      });
    });
  });
}

}  // namespace

void compare_collectives(const Plan& plan, DataMode mode, CheckReport& report) {
  CollectiveComparison{plan, mode, report}.compare();
}

CheckReport check_collectives(const CellEvidence& evidence) {
  if (!has_collectives(*evidence.plans)) return not_applicable("no collectives in the plan");
  CheckReport report;
  for (const Plan& plan : *evidence.plans) compare_collectives(plan, evidence.mode, report);
  if (!report.findings.empty() || evidence.run == nullptr) return report;
  for (const Finding& finding : evidence.run->findings) {
    if (finding.check == Check::collectives) report.findings.push_back(finding);
  }
  return report;
}

}  // namespace cpverify::judge
