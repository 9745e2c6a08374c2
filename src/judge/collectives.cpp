#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
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

/// What a rank calls in one group, in order.
struct Sequence {
  const RankPlan* rank = nullptr;
  std::vector<const Collective*> calls;
};

/// Peers are not compared: they differ by rank, and check_peers() looks at them.
bool agree(const Collective& a, const Collective& b) {
  return a.kind == b.kind && a.count == b.count && a.dtype == b.dtype && a.meaning == b.meaning;
}

std::vector<const Collective*> collectives_of(const RankPlan& rank) {
  std::vector<const Collective*> calls;
  for (const Operation& operation : rank.operations) {
    if (const auto* call = std::get_if<Collective>(&operation.body)) calls.push_back(call);
  }
  return calls;
}

/// The call that most members make; on a tie the one of the group's first rank.
const Sequence& majority(const std::vector<Sequence>& members, std::size_t index) {
  std::size_t best = 0;
  std::ptrdiff_t best_votes = -1;
  for (std::size_t m = 0; m < members.size(); ++m) {
    if (index >= members[m].calls.size()) continue;
    const Collective& call = *members[m].calls[index];
    const auto votes = std::count_if(members.begin(), members.end(), [&](const Sequence& other) {
      return index < other.calls.size() && agree(*other.calls[index], call);
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
    if (log_.empty()) check_deadlock();
    report_.findings.insert(report_.findings.end(), log_.findings().begin(), log_.findings().end());
  }

 private:
  void check_membership() {
    for (const RankPlan& rank : plan_.ranks) {
      std::size_t index = 0;
      for (const Collective* collective : collectives_of(rank)) {
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
      check_peers(members, index, group);
    }
  }

  static Sequence sequence(const RankPlan& rank, std::uint32_t group) {
    Sequence sequence{.rank = &rank, .calls = collectives_of(rank)};
    std::erase_if(sequence.calls,
                  [group](const Collective* collective) { return collective->group != group; });
    return sequence;
  }

  /// Of a send_recv: whom a rank receives from must send to it. Members are in group order.
  void check_peers(const std::vector<Sequence>& members, std::size_t index, std::uint32_t group) {
    for (std::size_t m = 0; m < members.size(); ++m) {
      if (index >= members[m].calls.size()) continue;
      const Collective& call = *members[m].calls[index];
      if (call.kind != CollectiveKind::send_recv) continue;
      ++report_.compared;
      const std::uint32_t peer = call.recv_peer;
      const bool is_sent = peer < members.size() && index < members[peer].calls.size() &&
                           members[peer].calls[index]->send_peer == m;
      if (is_sent) continue;
      note("collective_peer_mismatch", *members[m].rank, index, &call,
           fmt::format("collective {}: receives from rank {} of group {}, which does not send to "
                       "rank {} of it",
                       index, peer, plan_.groups[group].name, m));
    }
  }

  /// Plays the calls: a collective happens when it is the next one of every member of its group.
  void check_deadlock() {
    std::vector<std::vector<const Collective*>> calls;
    for (const RankPlan& rank : plan_.ranks) calls.push_back(collectives_of(rank));
    std::vector<std::size_t> next(calls.size(), 0);
    const auto waits_for = [&](std::size_t rank) {
      return next[rank] < calls[rank].size() ? calls[rank][next[rank]] : nullptr;
    };
    const auto is_ready = [&](std::uint32_t group) {
      return std::ranges::all_of(plan_.groups[group].members, [&](RankId member) {
        const Collective* call =
            member.value() < calls.size() ? waits_for(member.value()) : nullptr;
        return call != nullptr && call->group == group;
      });
    };
    for (bool has_moved = true; has_moved;) {
      has_moved = false;
      for (std::uint32_t group = 0; group < plan_.groups.size(); ++group) {
        while (!plan_.groups[group].members.empty() && is_ready(group)) {
          for (const RankId member : plan_.groups[group].members) ++next[member.value()];
          has_moved = true;
        }
      }
    }
    for (std::size_t rank = 0; rank < calls.size(); ++rank) {
      const Collective* call = waits_for(rank);
      if (call == nullptr) continue;
      note("collective_deadlock", plan_.ranks[rank], next[rank], call,
           fmt::format("waits for ever in '{}' of group {}, whose members wait in others",
                       call->meaning, plan_.groups[call->group].name));
    }
  }

  void compare_call(const Sequence& member, const Sequence& model, std::size_t index,
                    std::uint32_t group) {
    ++report_.compared;
    const Collective& want = *model.calls[index];
    const std::string as =
        fmt::format("as on rank {} (group {})", model.rank->rank.value(), plan_.groups[group].name);
    if (index >= member.calls.size()) {
      note("collective_missing", *member.rank, index, nullptr,
           fmt::format("found {} collectives, expected {} {}", member.calls.size(),
                       model.calls.size(), as));
      return;
    }
    const Collective& got = *member.calls[index];
    if (agree(got, want)) return;
    const auto differ = [&](const char* kind, const auto& found, const auto& expected) {
      note(kind, *member.rank, index, &got,
           fmt::format("collective {}: found {}, expected {} {}", index, found, expected, as));
    };
    if (is_reordered(member, model)) {
      differ("collective_order_mismatch", got.meaning, want.meaning);
      return;
    }
    if (got.kind != want.kind) {
      differ("collective_kind_mismatch", name(got.kind), name(want.kind));
    }
    if (got.count != want.count) differ("collective_count_mismatch", got.count, want.count);
    if (got.dtype != want.dtype) {
      differ("collective_dtype_mismatch", name(got.dtype), name(want.dtype));
    }
    if (got.meaning != want.meaning)
      differ("collective_meaning_mismatch", got.meaning, want.meaning);
  }

  /// The same meanings in another order.
  static bool is_reordered(const Sequence& a, const Sequence& b) {
    const auto meanings = [](const Sequence& sequence) {
      std::vector<std::string> found;
      found.reserve(sequence.calls.size());
      for (const Collective* call : sequence.calls) found.push_back(call->meaning);
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
