#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <optional>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "cpverify/scenario.hpp"
#include "layout/coverage.hpp"
#include "layout/intervals.hpp"
#include "layout/splits.hpp"

// The proofs against enumeration: every pair of every part is counted here one by one.
namespace cpverify::layout {
namespace {

bool is_member(const TokenSet& set, std::int64_t x) {
  if (x < set.begin || x >= set.end) return false;
  std::int64_t residue = x % set.period;
  if (residue < 0) residue += set.period;
  return residue >= set.low && residue < set.low + set.run;
}

TokenSet any_set() {
  TokenSet set;
  set.begin = *rc::gen::inRange<std::int64_t>(-5, 40);
  set.end = *rc::gen::inRange<std::int64_t>(-5, 60);
  set.period = *rc::gen::inRange<std::int64_t>(1, 9);
  set.low = *rc::gen::inRange<std::int64_t>(0, set.period);
  set.run = *rc::gen::inRange<std::int64_t>(1, set.period - set.low + 1);
  return set;
}

std::vector<std::int64_t> members(const TokenSet& set) {
  std::vector<std::int64_t> all;
  for (std::int64_t x = -10; x < 80; ++x) {
    if (is_member(set, x)) all.push_back(x);
  }
  return all;
}

RC_GTEST_PROP(TokenSetProperty, CountsSumsAndFindsAsEnumerationDoes, ()) {
  const TokenSet set = any_set();
  const std::vector<std::int64_t> all = members(set);
  std::int64_t total = 0;
  for (const std::int64_t x : all) total += x;
  RC_ASSERT(count(set) == static_cast<std::int64_t>(all.size()));
  RC_ASSERT(sum(set) == total);
  RC_ASSERT(first(set) == (all.empty() ? std::nullopt : std::optional{all.front()}));
  RC_ASSERT(last(set) == (all.empty() ? std::nullopt : std::optional{all.back()}));
  for (std::int64_t x = -10; x < 70; ++x) RC_ASSERT(contains(set, x) == is_member(set, x));
}

RC_GTEST_PROP(TokenSetProperty, KnowsSubsets, ()) {
  const TokenSet part = any_set();
  const TokenSet whole = any_set();
  const std::vector<std::int64_t> all = members(part);
  const bool expected =
      std::all_of(all.begin(), all.end(), [&whole](std::int64_t x) { return is_member(whole, x); });
  RC_ASSERT(is_subset(part, whole) == expected);
}

using Pair = std::tuple<std::uint32_t, std::uint32_t, std::int64_t, std::int64_t>;

/// Counts the pairs of one query of a part.
void add_query(const AttentionPart& part, std::int64_t query, std::int64_t end,
               std::map<Pair, int>& pairs) {
  for (std::int64_t key = -4; key < end; ++key) {
    const bool is_seen = !part.diagonal || key <= query + *part.diagonal;
    const bool is_before_window =
        part.diagonal && part.window > 0 && key <= query + *part.diagonal - part.window;
    if (!is_seen || is_before_window || !is_member(part.keys, key)) continue;
    for (std::uint32_t head = 0; head < part.heads.count; ++head) {
      ++pairs[{part.replica, part.heads.first + head, query, key}];
    }
  }
}

/// How often each (replica, head, query, key) is computed.
std::map<Pair, int> computed_pairs(const RequestSplit& split) {
  std::map<Pair, int> pairs;
  const std::int64_t end = split.row.computed + split.row.scheduled + 8;
  for (const AttentionPart& part : split.parts) {
    for (std::int64_t query = -4; query < end; ++query) {
      if (is_member(part.queries, query)) add_query(part, query, end, pairs);
    }
  }
  return pairs;
}

bool is_right(const RequestSplit& split, std::uint32_t num_heads) {
  std::map<Pair, int> expected;
  const std::int64_t total = split.row.computed + split.row.scheduled;
  for (std::uint32_t replica = 0; replica < split.num_replicas; ++replica) {
    for (std::uint32_t head = 0; head < num_heads; ++head) {
      for (std::int64_t query = split.row.computed; query < total; ++query) {
        for (std::int64_t key = 0; key <= query; ++key) {
          if (split.window == 0 || key > query - split.window) {
            expected[{replica, head, query, key}] = 1;
          }
        }
      }
    }
  }
  return computed_pairs(split) == expected;
}

struct Case {
  SplitSpec spec;
  std::vector<SplitRow> rows;
};

SplitSpec any_spec() {
  SplitSpec spec;
  spec.kind = *rc::gen::elementOf(all_split_kinds());
  spec.cp = *rc::gen::inRange<std::uint32_t>(1, 5);
  spec.dcp = *rc::gen::inRange<std::uint32_t>(1, 4);
  spec.interleave_size = *rc::gen::elementOf(std::vector<std::int64_t>{1, 2, 3, 4});
  spec.block_size = spec.interleave_size * *rc::gen::inRange<std::int64_t>(1, 4);
  spec.visibility = *rc::gen::elementOf(std::vector{DcpVisibility::split, DcpVisibility::cached});
  spec.ring_order = *rc::gen::elementOf(std::vector{RingOrder::contiguous, RingOrder::zigzag});
  if (spec.kind == SplitKind::ulysses_ring) {
    spec.ulysses = *rc::gen::inRange<std::uint32_t>(1, 4);
    spec.cp *= spec.ulysses;
  }
  if (spec.kind == SplitKind::pcp_virtual_batch && spec.dcp > 1)
    spec.dcp = spec.cp * (spec.dcp - 1);
  if (computes_whole_rows(spec) && *rc::gen::arbitrary<bool>()) {
    spec.window = *rc::gen::inRange<std::int64_t>(1, 30);
  }
  spec.num_heads_q = 1;
  const bool has_slices = spec.kind != SplitKind::zigzag && spec.kind != SplitKind::interleave;
  if (has_slices) spec.num_heads_q = std::lcm(spec.cp, spec.dcp);
  return spec;
}

Case any_case() {
  Case any{any_spec(), {}};
  const auto num_rows = *rc::gen::inRange<std::size_t>(1, 4);
  for (std::size_t i = 0; i < num_rows; ++i) {
    SplitRow row;
    row.is_decode = *rc::gen::inRange(0, 4) == 0;
    row.computed = *rc::gen::inRange<std::int64_t>(0, 20);
    row.scheduled = *rc::gen::inRange<std::int64_t>(0, row.is_decode ? 4 : 24);
    any.rows.push_back(row);
  }
  return any;
}

/// Ten batches a run, so that 200 runs are 2,000 of them.
RC_GTEST_PROP(CoverageProperty, EveryStrategyCoversEveryVisiblePairOnce, ()) {
  for (int i = 0; i < 10; ++i) {
    const Case any = any_case();
    const BatchSplit batch{any.spec, any.rows};
    const SplitProblems problems = check_batch(batch);
    if (!problems.empty()) RC_FAIL(problems.kept.front().message);
    for (std::size_t row = 0; row < any.rows.size(); ++row) {
      RC_ASSERT(is_right(batch.request(row), any.spec.num_heads_q));
    }
  }
}

/// Request 0 of the case, with a new token at least so that there is something to damage.
RequestSplit first_request(Case any) {
  any.rows.front().scheduled = std::max<std::int64_t>(any.rows.front().scheduled, 1);
  return BatchSplit{any.spec, any.rows}.request(0);
}

/// Moves a bound, drops a part, doubles one, or shifts a mask.
void damage(AttentionPart& part) {
  const std::int64_t shift = *rc::gen::elementOf(std::vector<std::int64_t>{-2, -1, 1, 2});
  switch (*rc::gen::inRange(0, 7)) {
    case 0:
      part.keys.begin += shift;
      break;
    case 1:
      part.keys.end += shift;
      break;
    case 2:
      part.queries.begin += shift;
      break;
    case 3:
      part.queries.end += shift;
      break;
    case 4:
      if (part.diagonal) *part.diagonal += shift;
      break;
    case 5:
      if (part.window > 0) part.window = std::max<std::int64_t>(part.window + shift, 0);
      break;
    default:
      if (part.keys.period > 1 && part.keys.low + part.keys.run < part.keys.period) {
        ++part.keys.low;
      }
      break;
  }
}

RC_GTEST_PROP(CoverageProperty, AgreesWithEnumerationOnDamagedSplits, ()) {
  const Case any = any_case();
  RequestSplit split = first_request(any);
  for (int change = *rc::gen::inRange(1, 3); change > 0 && !split.parts.empty(); --change) {
    const auto at = *rc::gen::inRange<std::size_t>(0, split.parts.size());
    const int what = *rc::gen::inRange(0, 5);
    if (what == 0) {
      split.parts.erase(split.parts.begin() + static_cast<std::ptrdiff_t>(at));
    } else if (what == 1) {
      split.parts.push_back(split.parts[at]);
    } else {
      damage(split.parts[at]);
    }
  }
  SplitProblems problems;
  check_pairs(split, any.spec.num_heads_q, problems);
  const bool expected = is_right(split, any.spec.num_heads_q);
  // A foreign query with no key in sight computes nothing, but is a defect all the same.
  const bool is_foreign =
      !problems.empty() && problems.kept.front().fault == SplitFault::foreign_query;
  if (!is_foreign) RC_ASSERT(problems.empty() == expected);
  if (!expected) RC_ASSERT(!problems.empty());
}

/// Every problem must be true: the query named sees one of the keys named not exactly as it should.
RC_GTEST_PROP(CoverageProperty, NamesAQueryAndKeysThatAreWrong, ()) {
  const Case any = any_case();
  RequestSplit split = first_request(any);
  damage(split.parts[*rc::gen::inRange<std::size_t>(0, split.parts.size())]);
  SplitProblems problems;
  check_pairs(split, any.spec.num_heads_q, problems);
  const std::map<Pair, int> pairs = computed_pairs(split);
  const std::int64_t total = split.row.computed + split.row.scheduled;
  for (const SplitProblem& problem : problems.kept) {
    if (problem.fault == SplitFault::foreign_query) continue;
    const std::int64_t query = problem.queries.begin;
    bool is_true = false;
    for (std::int64_t key = -4; key < total + 8; ++key) {
      if (!is_member(problem.keys, key)) continue;
      for (std::uint32_t replica = 0; replica < split.num_replicas; ++replica) {
        const auto found = pairs.find({replica, problem.heads.first, query, key});
        const int times = found == pairs.end() ? 0 : found->second;
        const bool is_visible =
            key >= 0 && key <= query && (split.window == 0 || key > query - split.window);
        is_true = is_true || times != (is_visible ? 1 : 0);
      }
    }
    RC_ASSERT(is_true);
  }
}

/// Shares against counting: each token of the whole once per copy, and nothing else.
RC_GTEST_PROP(CoverageProperty, SharesAgreeWithCounting, ()) {
  RequestSplit split;
  split.row = {*rc::gen::inRange<std::int64_t>(0, 10), *rc::gen::inRange<std::int64_t>(0, 20),
               false};
  const std::int64_t total = split.row.computed + split.row.scheduled;
  const auto num_shards = *rc::gen::inRange<std::int64_t>(1, 4);
  for (std::int64_t shard = 0; shard < num_shards; ++shard) {
    const TokenSet tokens = shard_of(0, total, shard, num_shards, 2);
    split.stored.push_back({static_cast<std::uint32_t>(shard), 0, tokens, count(tokens)});
  }
  TokenShare& changed =
      split.stored[static_cast<std::size_t>(*rc::gen::inRange<std::int64_t>(0, num_shards))];
  changed.tokens.begin += *rc::gen::inRange<std::int64_t>(-2, 3);
  changed.tokens.end += *rc::gen::inRange<std::int64_t>(-2, 3);
  changed.length = count(changed.tokens);
  std::map<std::int64_t, int> held;
  for (const TokenShare& share : split.stored) {
    for (std::int64_t x = -4; x < total + 4; ++x) held[x] += is_member(share.tokens, x) ? 1 : 0;
  }
  bool expected = true;
  for (const auto& [token, times] : held) {
    expected = expected && times == (token >= 0 && token < total ? 1 : 0);
  }
  SplitProblems problems;
  check_shares(split, split.stored, interval(0, total), problems);
  RC_ASSERT(problems.empty() == expected);
}

}  // namespace
}  // namespace cpverify::layout
