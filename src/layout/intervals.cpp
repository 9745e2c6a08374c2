#include "layout/intervals.hpp"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <optional>
#include <string>

#include <fmt/format.h>

namespace cpverify::layout {
namespace {

/// Members of the set's residues in [0, x), negative for x < 0, whatever begin and end are.
std::int64_t count_below(const TokenSet& set, std::int64_t x) noexcept {
  const std::int64_t rounds = floor_div(x, set.period);
  const std::int64_t rest = x - rounds * set.period;
  return rounds * set.run + std::clamp<std::int64_t>(rest - set.low, 0, set.run);
}

/// Their sum: `rounds` whole periods, then a part of one.
std::int64_t sum_below(const TokenSet& set, std::int64_t x) noexcept {
  const std::int64_t rounds = floor_div(x, set.period);
  const std::int64_t rest = std::clamp<std::int64_t>(x - rounds * set.period - set.low, 0, set.run);
  const std::int64_t in_run = set.run * (set.run - 1) / 2;
  return set.period * set.run * (rounds * (rounds - 1) / 2) +
         rounds * (set.run * set.low + in_run) + rest * (rounds * set.period + set.low) +
         rest * (rest - 1) / 2;
}

}  // namespace

std::int64_t floor_div(std::int64_t value, std::int64_t divisor) noexcept {
  const std::int64_t quotient = value / divisor;
  return value % divisor < 0 ? quotient - 1 : quotient;
}

std::int64_t floor_mod(std::int64_t value, std::int64_t divisor) noexcept {
  return value - floor_div(value, divisor) * divisor;
}

TokenSet interval(std::int64_t begin, std::int64_t end) noexcept {
  return {begin, end, 1, 0, 1};
}

TokenSet comb(std::int64_t begin, std::int64_t end, std::int64_t period,
              std::int64_t residue) noexcept {
  return {begin, end, period, floor_mod(residue, period), 1};
}

TokenSet shard_of(std::int64_t begin, std::int64_t end, std::int64_t shard, std::int64_t num_shards,
                  std::int64_t interleave_size) noexcept {
  if (num_shards == 1) return interval(begin, end);
  return {begin, end, num_shards * interleave_size, shard * interleave_size, interleave_size};
}

TokenSet clip(TokenSet set, std::int64_t begin, std::int64_t end) noexcept {
  set.begin = std::max(set.begin, begin);
  set.end = std::max(set.begin, std::min(set.end, end));
  return set;
}

std::int64_t count(const TokenSet& set) noexcept {
  if (set.end <= set.begin) return 0;
  return count_below(set, set.end) - count_below(set, set.begin);
}

std::int64_t sum(const TokenSet& set) noexcept {
  if (set.end <= set.begin) return 0;
  return sum_below(set, set.end) - sum_below(set, set.begin);
}

bool contains(const TokenSet& set, std::int64_t position) noexcept {
  const std::int64_t residue = floor_mod(position, set.period) - set.low;
  return position >= set.begin && position < set.end && residue >= 0 && residue < set.run;
}

std::optional<std::int64_t> next_in(const TokenSet& set, std::int64_t position) noexcept {
  std::int64_t candidate = std::max(position, set.begin);
  const std::int64_t residue = floor_mod(candidate, set.period) - set.low;
  if (residue < 0) candidate -= residue;
  if (residue >= set.run) candidate += set.period - residue;
  if (candidate >= set.end) return std::nullopt;
  return candidate;
}

std::optional<std::int64_t> first(const TokenSet& set) noexcept {
  return next_in(set, set.begin);
}

std::optional<std::int64_t> last(const TokenSet& set) noexcept {
  const std::int64_t residue = floor_mod(set.end - 1, set.period) - set.low;
  std::int64_t candidate = set.end - 1;
  if (residue < 0) candidate -= residue + set.period - set.run + 1;
  if (residue >= set.run) candidate -= residue - set.run + 1;
  if (candidate < set.begin) return std::nullopt;
  return candidate;
}

bool is_subset(const TokenSet& part, const TokenSet& whole) noexcept {
  const std::optional<std::int64_t> start = first(part);
  if (!start) return true;
  const std::int64_t stop = last(part).value_or(*start);
  if (*start < whole.begin || stop >= whole.end) return false;
  // Both sets repeat after the common period, so its members stand for all.
  const std::int64_t common = std::lcm(part.period, whole.period);
  for (std::optional<std::int64_t> x = start; x && *x < *start + common;
       x = next_in(part, *x + 1)) {
    if (!contains(whole, *x)) return false;
  }
  return true;
}

std::string text(const TokenSet& set) {
  std::string range = fmt::format("[{}, {})", set.begin, set.end);
  if (set.period == set.run) return range;
  if (set.run == 1) return fmt::format("{} with x mod {} = {}", range, set.period, set.low);
  return fmt::format("{} with x mod {} in [{}, {})", range, set.period, set.low, set.low + set.run);
}

}  // namespace cpverify::layout
