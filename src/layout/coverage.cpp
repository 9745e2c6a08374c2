#include "layout/coverage.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "layout/intervals.hpp"
#include "layout/splits.hpp"
#include "layout/tiling.hpp"

namespace cpverify::layout {
namespace {

SplitProblem problem_of(SplitFault fault, const RequestSplit& split, const TokenSet& tokens,
                        std::string message) {
  return {fault, split.request, {}, {}, {}, tokens, std::move(message)};
}

void check_lengths(const RequestSplit& split, const std::vector<TokenShare>& shares,
                   SplitProblems& problems) {
  for (const TokenShare& share : shares) {
    if (share.length >= 0 && share.length == count(share.tokens)) continue;
    SplitProblem problem = problem_of(
        SplitFault::local_length, split, share.tokens,
        fmt::format("rank {}: the local length of request {} is {}, but tokens {} are {}",
                    share.rank, split.request, share.length, text(share.tokens),
                    count(share.tokens)));
    problem.ranks = {share.rank};
    problems.add(std::move(problem));
  }
}

struct ShareCheck {
  TokenSet whole;
  SplitProblems& problems;
};

/// The shares of one copy and one class of residues must tile [whole.begin, whole.end).
void check_class(const RequestSplit& split, const std::vector<TokenShare>& shares,
                 std::vector<std::size_t> items, const TokenSet& window, const ShareCheck& check) {
  const TokenSet& whole = check.whole;
  std::sort(items.begin(), items.end(), [&shares](std::size_t a, std::size_t b) {
    return shares[a].tokens.begin < shares[b].tokens.begin;
  });
  std::int64_t covered = whole.begin;
  const auto report = [&](std::int64_t begin, std::int64_t end, const std::string& ranks,
                          std::string_view what) {
    const TokenSet tokens = within(window, begin, end);
    if (begin >= end || count(tokens) == 0) return;
    check.problems.add(problem_of(
        SplitFault::ownership, split, tokens,
        fmt::format("{} tokens {} of request {} {}", ranks, text(tokens), split.request, what)));
  };
  for (std::size_t i = 0; i < items.size(); ++i) {
    const TokenShare& share = shares[items[i]];
    if (share.tokens.end <= share.tokens.begin) continue;
    const std::string rank = fmt::format("rank {}:", share.rank);
    report(covered, share.tokens.begin, "no rank:", "are held by nobody");
    const std::string pair =
        i == 0 ? rank : fmt::format("ranks {} and {}:", shares[items[i - 1]].rank, share.rank);
    report(std::max(share.tokens.begin, whole.begin), std::min(covered, share.tokens.end), pair,
           "are held twice");
    report(share.tokens.begin, std::min(share.tokens.end, whole.begin), rank, "are none of it");
    report(std::max(share.tokens.begin, whole.end), share.tokens.end, rank, "are none of it");
    covered = std::max(covered, share.tokens.end);
  }
  report(covered, whole.end, "no rank:", "are held by nobody");
}

}  // namespace

std::string_view name(SplitFault fault) noexcept {
  switch (fault) {
    case SplitFault::missing_pair:
      return "missing_pair";
    case SplitFault::doubled_pair:
      return "doubled_pair";
    case SplitFault::hidden_pair:
      return "hidden_pair";
    case SplitFault::foreign_query:
      return "foreign_query";
    case SplitFault::ownership:
      return "ownership";
    case SplitFault::local_length:
      return "local_length";
    case SplitFault::slot:
      return "slot";
    case SplitFault::workspace:
      return "workspace";
  }
  return "?";
}

void SplitProblems::add(SplitProblem problem) {
  ++total;
  if (kept.size() < kKeptMax) kept.push_back(std::move(problem));
}

void check_shares(const RequestSplit& split, const std::vector<TokenShare>& shares,
                  const TokenSet& whole, SplitProblems& problems) {
  check_lengths(split, shares, problems);
  std::vector<std::size_t> order(shares.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::stable_sort(order.begin(), order.end(), [&shares](std::size_t a, std::size_t b) {
    return shares[a].copy < shares[b].copy;
  });
  std::size_t begin = 0;
  do {
    std::size_t end = begin;
    std::vector<std::size_t> items;
    for (; end < order.size() && shares[order[end]].copy == shares[order[begin]].copy; ++end) {
      items.push_back(order[end]);
    }
    for_each_residue_window(
        items, [&shares](std::size_t i) -> const TokenSet& { return shares[i].tokens; },
        [&](const TokenSet& window, const std::vector<std::size_t>& open) {
          check_class(split, shares, open, window, {whole, problems});
        });
    begin = end;
  } while (begin < order.size());
}

void check_slot_owners(const RequestSplit& split, SplitProblems& problems) {
  std::vector<TokenShare> written;
  written.reserve(split.slots.size());
  for (const SlotRun& run : split.slots) {
    written.push_back({run.rank, run.copy, run.positions, count(run.positions)});
  }
  // A copy that is stored must be written, also when no run mentions it.
  const TokenSet nothing = interval(split.row.computed, split.row.computed);
  for (const TokenShare& share : split.stored) {
    written.push_back({share.rank, share.copy, nothing, 0});
  }
  const TokenSet whole = interval(split.row.computed, split.row.computed + split.row.scheduled);
  SplitProblems found;
  check_shares(split, written, whole, found);
  for (SplitProblem& problem : found.kept) {
    problem.fault = SplitFault::slot;
    problem.message = "slots written: " + problem.message;
    problems.add(std::move(problem));
  }
  std::vector<TokenShare> stored = split.stored;
  const auto by_rank = [](const TokenShare& a, const TokenShare& b) { return a.rank < b.rank; };
  std::stable_sort(stored.begin(), stored.end(), by_rank);
  for (const SlotRun& run : split.slots) {
    const auto own =
        std::equal_range(stored.begin(), stored.end(), TokenShare{run.rank, 0, {}, 0}, by_rank);
    const bool is_owned = std::any_of(own.first, own.second, [&run](const TokenShare& share) {
      return is_subset(run.positions, share.tokens);
    });
    if (is_owned) continue;
    SplitProblem problem =
        problem_of(SplitFault::slot, split, run.positions,
                   fmt::format("rank {}: writes tokens {} of request {}, which it does not own",
                               run.rank, text(run.positions), split.request));
    problem.ranks = {run.rank};
    problems.add(std::move(problem));
  }
}

void SlotCheck::add(const RequestSplit& split, SplitProblems& problems) {
  for (const SlotRun& run : split.slots) {
    const std::int64_t end = run.first_slot + count(run.positions);
    ranges_.push_back({run.rank, run.first_slot, end, split.request});
    if (run.first_slot >= first_slot_ && end <= end_slot_) continue;
    SplitProblem problem = problem_of(
        SplitFault::slot, split, run.positions,
        fmt::format("rank {}: slots [{}, {}) of request {} are outside the pool's [{}, {})",
                    run.rank, run.first_slot, end, split.request, first_slot_, end_slot_));
    problem.ranks = {run.rank};
    problems.add(std::move(problem));
  }
}

void SlotCheck::finish(SplitProblems& problems) {
  std::sort(ranges_.begin(), ranges_.end(), [](const Range& a, const Range& b) {
    return std::tie(a.rank, a.begin, a.end, a.request) <
           std::tie(b.rank, b.begin, b.end, b.request);
  });
  std::size_t widest = 0;  // The range of the rank that ends last so far.
  for (std::size_t i = 1; i < ranges_.size(); ++i) {
    const Range& last = ranges_[widest];
    const Range& range = ranges_[i];
    if (range.rank == last.rank && range.begin < last.end && range.begin < range.end) {
      problems.add(
          {SplitFault::slot,
           range.request,
           {range.rank},
           {},
           {},
           {},
           fmt::format("rank {}: requests {} and {} both write slots [{}, {})", range.rank,
                       last.request, range.request, range.begin, std::min(last.end, range.end))});
    }
    if (range.rank != last.rank || range.end > last.end) widest = i;
  }
}

void check_workspaces(const std::vector<Workspace>& workspaces, SplitProblems& problems) {
  for (const Workspace& workspace : workspaces) {
    if (workspace.needed_rows >= 0 && workspace.needed_rows <= workspace.capacity_rows) continue;
    problems.add({SplitFault::workspace,
                  0,
                  {workspace.rank},
                  {},
                  {},
                  {},
                  fmt::format("rank {}: {} has {} rows, {} are needed", workspace.rank,
                              workspace.name, workspace.capacity_rows, workspace.needed_rows)});
  }
}

SplitProblems check_batch(const BatchSplit& batch) {
  SplitProblems problems;
  const std::int64_t block_size = batch.spec().block_size;
  SlotCheck slots{block_size, batch.num_blocks() * block_size};
  for (std::size_t index = 0; index < batch.rows().size(); ++index) {
    const RequestSplit split = batch.request(index);
    const std::int64_t total = split.row.computed + split.row.scheduled;
    check_pairs(split, batch.spec().num_heads_q, problems);
    check_shares(split, split.rows, interval(split.row.computed, total), problems);
    check_shares(split, split.stored, interval(0, total), problems);
    check_slot_owners(split, problems);
    slots.add(split, problems);
  }
  slots.finish(problems);
  check_workspaces(batch.workspaces(), problems);
  return problems;
}

}  // namespace cpverify::layout
