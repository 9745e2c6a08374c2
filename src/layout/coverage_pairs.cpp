// The proof that every visible (head, query, key) is in exactly one part, for the keys before the
// step and those of the step apart: of the former every query sees all, whoever it belongs to.
// Three sweeps cut the heads, the queries and the queries' residues into cells in which the same
// parts are active; in a cell, the parts' key ranges are either fixed or end at x + diagonal for
// query x. A cell is cut where such an end starts or stops to move; what remains is monotone in x,
// so its first and last query stand for all. An end that is not at the query itself leaves a window
// of keys that moves with x: there, one common period of queries and keys is looked at.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cpverify/plan.hpp"
#include "layout/coverage.hpp"
#include "layout/intervals.hpp"
#include "layout/splits.hpp"
#include "layout/tiling.hpp"

namespace cpverify::layout {
namespace {

constexpr std::int64_t kNoEnd = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t kRanksNamedMax = 4;

/// First key that the part hides from query x.
std::int64_t end_of_keys(const AttentionPart& part, std::int64_t query) noexcept {
  return std::min(part.keys.end, part.diagonal ? query + *part.diagonal + 1 : kNoEnd);
}

/// First key that the part shows to query x.
std::int64_t begin_of_keys(const AttentionPart& part, std::int64_t query) noexcept {
  if (part.window == 0 || !part.diagonal) return part.keys.begin;
  return std::max(part.keys.begin, query + *part.diagonal + 1 - part.window);
}

bool shows(const AttentionPart& part, std::int64_t query, std::int64_t key) noexcept {
  return contains(part.queries, query) && contains(part.keys, key) &&
         key >= begin_of_keys(part, query) && key < end_of_keys(part, query);
}

bool overlap(const HeadRange& a, const HeadRange& b) noexcept {
  return a.first < b.first + b.count && b.first < a.first + a.count;
}

std::string ranks_text(const std::vector<std::uint32_t>& ranks) {
  if (ranks.empty()) return "no rank";
  if (ranks.size() == 1) return fmt::format("rank {}", ranks.front());
  return fmt::format("ranks {}", fmt::join(ranks, ", "));
}

/// Parts that differ only in adjacent heads are one, so that the slices of a group cost no more
/// than the whole.
std::vector<AttentionPart> merge_heads(std::vector<AttentionPart> parts) {
  const auto shape = [](const AttentionPart& part) {
    return std::tie(part.queries, part.keys, part.diagonal, part.window);
  };
  std::sort(parts.begin(), parts.end(), [&](const AttentionPart& a, const AttentionPart& b) {
    return std::tuple_cat(shape(a), std::tie(a.heads.first)) <
           std::tuple_cat(shape(b), std::tie(b.heads.first));
  });
  std::vector<AttentionPart> merged;
  for (const AttentionPart& part : parts) {
    const bool is_adjacent =
        !merged.empty() && shape(merged.back()) == shape(part) &&
        merged.back().heads.first + merged.back().heads.count == part.heads.first;
    if (is_adjacent) {
      merged.back().heads.count += part.heads.count;
    } else {
      merged.push_back(part);
    }
  }
  return merged;
}

/// Queries of a cell: the same parts are active for each.
struct Cell {
  HeadRange heads;
  TokenSet queries;
};

class PairCheck {
 public:
  /// Looks at the keys of [keys.begin, keys.end) only.
  PairCheck(const RequestSplit& split, std::uint32_t replica, const TokenSet& keys,
            SplitProblems& problems)
      : split_{split}, replica_{replica}, keys_{keys}, problems_{problems} {
    for (AttentionPart part : split.parts) {
      part.keys = clip(part.keys, keys.begin, keys.end);
      if (part.replica == replica && part.keys.begin < part.keys.end) parts_.push_back(part);
    }
    parts_ = merge_heads(std::move(parts_));
    has_windows_ = std::any_of(parts_.begin(), parts_.end(),
                               [](const AttentionPart& part) { return part.window > 0; });
  }

  void run(std::uint32_t num_heads) const {
    std::vector<Segment> segments;
    for (std::size_t i = 0; i < parts_.size(); ++i) {
      const HeadRange& heads = parts_[i].heads;
      segments.push_back({heads.first, std::int64_t{heads.first} + heads.count, i});
    }
    sweep(segments, 0, num_heads,
          [this](std::int64_t begin, std::int64_t end, const std::vector<std::size_t>& open) {
            check_heads(
                {static_cast<std::uint32_t>(begin), static_cast<std::uint32_t>(end - begin)}, open);
          });
  }

 private:
  void check_heads(const HeadRange& heads, const std::vector<std::size_t>& active) const {
    std::vector<Segment> segments;
    segments.reserve(active.size());
    for (const std::size_t i : active) {
      segments.push_back({parts_[i].queries.begin, parts_[i].queries.end, i});
    }
    const std::int64_t begin = split_.row.computed;
    sweep(segments, begin, begin + split_.row.scheduled,
          [&](std::int64_t from, std::int64_t to, const std::vector<std::size_t>& open) {
            for_each_residue_window(
                open, [this](std::size_t i) -> const TokenSet& { return parts_[i].queries; },
                [&](const TokenSet& window, const std::vector<std::size_t>& items) {
                  check_cell({heads, within(window, from, to)}, items);
                });
          });
  }

  /// Cuts the cell where an end of a part's keys, or of those that must be seen, starts or stops to
  /// move.
  void check_cell(const Cell& cell, const std::vector<std::size_t>& active) const {
    std::vector<std::int64_t> cuts{cell.queries.begin, cell.queries.end};
    const auto add_cut = [&](std::int64_t cut) {
      if (cut > cell.queries.begin && cut < cell.queries.end) cuts.push_back(cut);
    };
    if (split_.window > 0) {
      add_cut(split_.window);
      // Keys are of [keys_.begin, keys_.end), one of which is the first new token.
      add_cut(split_.row.computed + split_.window - 1);
      add_cut(split_.row.computed + split_.window);
    }
    for (const std::size_t i : active) {
      const AttentionPart& part = parts_[i];
      if (!part.diagonal) continue;
      for (const std::int64_t shift : {std::int64_t{0}, part.window}) {
        add_cut(part.keys.begin - *part.diagonal + shift);
        add_cut(part.keys.end - *part.diagonal + shift);
      }
    }
    std::sort(cuts.begin(), cuts.end());
    for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
      const Cell piece{cell.heads, within(cell.queries, cuts[i], cuts[i + 1])};
      if (!first(piece.queries)) continue;
      for_each_residue_window(
          active, [this](std::size_t item) -> const TokenSet& { return parts_[item].keys; },
          [&](const TokenSet& window, const std::vector<std::size_t>& items) {
            check_keys(piece, window, items);
          });
    }
  }

  void check_keys(const Cell& cell, const TokenSet& window, std::vector<std::size_t> items) const {
    std::sort(items.begin(), items.end(), [this](std::size_t a, std::size_t b) {
      return parts_[a].keys.begin < parts_[b].keys.begin;
    });
    const std::int64_t start = first(cell.queries).value_or(0);
    const std::int64_t stop = last(cell.queries).value_or(start);
    if (!check_query(cell, start, window, items)) return;
    if (stop != start && !check_query(cell, stop, window, items)) return;
    const bool has_moving_window = std::any_of(items.begin(), items.end(), [this](std::size_t i) {
      return parts_[i].diagonal.value_or(0) != 0;
    });
    if (!has_moving_window) return;
    const std::int64_t period = std::lcm(cell.queries.period, window.period);
    std::optional<std::int64_t> query = next_in(cell.queries, start + 1);
    while (query && *query < start + period) {
      if (!check_query(cell, *query, window, items)) return;
      query = next_in(cell.queries, *query + 1);
    }
  }

  /// The keys of one class that query x sees: they must tile what of [0, x] is looked at.
  [[nodiscard]] bool check_query(const Cell& cell, std::int64_t query, const TokenSet& window,
                                 std::vector<std::size_t> items) const {
    // First key that the query must see.
    const std::int64_t first_key =
        split_.window > 0 ? std::max<std::int64_t>(query + 1 - split_.window, 0) : 0;
    std::int64_t covered = std::max(keys_.begin, first_key);
    const std::int64_t visible_end = std::min(query + 1, keys_.end);
    if (has_windows_) {
      std::stable_sort(items.begin(), items.end(), [&](std::size_t a, std::size_t b) {
        return begin_of_keys(parts_[a], query) < begin_of_keys(parts_[b], query);
      });
    }
    bool is_right = true;
    const auto expect_none = [&](SplitFault fault, std::int64_t begin, std::int64_t end) {
      const TokenSet keys = within(window, begin, end);
      if (begin >= end || count(keys) == 0) return;
      report(fault, cell, query, keys);
      is_right = false;
    };
    for (const std::size_t i : items) {
      const std::int64_t begin = begin_of_keys(parts_[i], query);
      const std::int64_t end = end_of_keys(parts_[i], query);
      if (end <= begin) continue;
      expect_none(SplitFault::hidden_pair, begin, std::min(end, first_key));
      expect_none(SplitFault::missing_pair, covered, std::min(begin, visible_end));
      expect_none(SplitFault::doubled_pair, std::max(begin, first_key),
                  std::min({covered, end, visible_end}));
      expect_none(SplitFault::hidden_pair, std::max(begin, visible_end), end);
      covered = std::max(covered, end);
    }
    expect_none(SplitFault::missing_pair, covered, visible_end);
    return is_right;
  }

  [[nodiscard]] std::vector<std::uint32_t> ranks_of(SplitFault fault, const Cell& cell,
                                                    std::int64_t query, std::int64_t key) const {
    std::vector<std::uint32_t> ranks;
    for (const AttentionPart& part : split_.parts) {
      if (part.replica != replica_ || !overlap(part.heads, cell.heads)) continue;
      const bool is_meant = fault == SplitFault::missing_pair ? contains(part.queries, query)
                                                              : shows(part, query, key);
      if (is_meant) ranks.push_back(part.rank);
    }
    if (fault != SplitFault::doubled_pair) {
      std::sort(ranks.begin(), ranks.end());
      ranks.erase(std::unique(ranks.begin(), ranks.end()), ranks.end());
    }
    if (ranks.size() > kRanksNamedMax) ranks.resize(kRanksNamedMax);
    return ranks;
  }

  void report(SplitFault fault, const Cell& cell, std::int64_t query, const TokenSet& keys) const {
    SplitProblem problem{fault, split_.request, {}, cell.heads, interval(query, query + 1), keys,
                         {}};
    if (problems_.kept.size() >= SplitProblems::kKeptMax) return problems_.add(std::move(problem));
    const std::int64_t key = first(keys).value_or(0);
    problem.ranks = ranks_of(fault, cell, query, key);
    std::string_view verb = "misses";
    if (fault == SplitFault::doubled_pair) verb = "sees more than once";
    if (fault == SplitFault::hidden_pair) verb = "sees, though it must not,";
    problem.message =
        fmt::format("{}: query {} of request {} {} keys {} (heads {} to {}, replica {})",
                    ranks_text(problem.ranks), query, split_.request, verb, text(keys),
                    cell.heads.first, cell.heads.first + cell.heads.count - 1, replica_);
    problems_.add(std::move(problem));
  }

  const RequestSplit& split_;
  std::uint32_t replica_;
  TokenSet keys_;
  SplitProblems& problems_;
  std::vector<AttentionPart> parts_;
  bool has_windows_ = false;
};

}  // namespace

void check_pairs(const RequestSplit& split, std::uint32_t num_heads, SplitProblems& problems) {
  const TokenSet new_tokens =
      interval(split.row.computed, split.row.computed + split.row.scheduled);
  std::uint32_t num_replicas = split.num_replicas;
  for (const AttentionPart& part : split.parts) {
    num_replicas = std::max(num_replicas, part.replica + 1);
    const bool is_inside = is_subset(part.queries, new_tokens);
    if (is_inside && part.heads.first + part.heads.count <= num_heads) continue;
    problems.add({SplitFault::foreign_query,
                  split.request,
                  {part.rank},
                  part.heads,
                  part.queries,
                  part.keys,
                  fmt::format("rank {}: queries {} of request {} (heads {} to {}) are not all new "
                              "tokens and heads of it",
                              part.rank, text(part.queries), split.request, part.heads.first,
                              part.heads.first + part.heads.count - 1)});
  }
  for (std::uint32_t replica = 0; replica < num_replicas; ++replica) {
    for (const TokenSet& keys :
         {interval(-kNoEnd, new_tokens.begin), interval(new_tokens.begin, kNoEnd)}) {
      PairCheck{split, replica, keys, problems}.run(num_heads);
    }
  }
}

}  // namespace cpverify::layout
