#pragma once

#include <cstdint>
#include <optional>
#include <string>

/// Sets of token positions as formulas, so that a split of a million tokens is as cheap as one of
/// ten.
namespace cpverify::layout {

/// The positions x of [begin, end) with x mod period in [low, low + run). An interval has period 1;
/// a comb has run 1; the shard of rank r of N with interleave I has period N*I, low r*I, run I.
/// 0 <= low, run >= 1, low + run <= period.
struct TokenSet {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::int64_t period = 1;
  std::int64_t low = 0;
  std::int64_t run = 1;

  friend constexpr auto operator<=>(const TokenSet&, const TokenSet&) noexcept = default;
};

/// Quotient and remainder with the remainder in [0, divisor), also for negative values: position
/// arithmetic that truncates instead is a known defect.
[[nodiscard]] std::int64_t floor_div(std::int64_t value, std::int64_t divisor) noexcept;
[[nodiscard]] std::int64_t floor_mod(std::int64_t value, std::int64_t divisor) noexcept;

[[nodiscard]] TokenSet interval(std::int64_t begin, std::int64_t end) noexcept;
/// The x of [begin, end) that are congruent to `residue`, any integer, modulo `period`.
[[nodiscard]] TokenSet comb(std::int64_t begin, std::int64_t end, std::int64_t period,
                            std::int64_t residue) noexcept;
/// The x of [begin, end) that shard `shard` of `num_shards` holds: (x div I) mod N == shard.
[[nodiscard]] TokenSet shard_of(std::int64_t begin, std::int64_t end, std::int64_t shard,
                                std::int64_t num_shards, std::int64_t interleave_size) noexcept;

/// The part of the set in [begin, end).
[[nodiscard]] TokenSet clip(TokenSet set, std::int64_t begin, std::int64_t end) noexcept;

[[nodiscard]] std::int64_t count(const TokenSet& set) noexcept;
/// Sum of all positions; fits for positions below 10^9.
[[nodiscard]] std::int64_t sum(const TokenSet& set) noexcept;
[[nodiscard]] bool contains(const TokenSet& set, std::int64_t position) noexcept;
/// Smallest position of the set that is at least `position`.
[[nodiscard]] std::optional<std::int64_t> next_in(const TokenSet& set,
                                                  std::int64_t position) noexcept;
[[nodiscard]] std::optional<std::int64_t> first(const TokenSet& set) noexcept;
[[nodiscard]] std::optional<std::int64_t> last(const TokenSet& set) noexcept;
/// Exact for any two sets whose periods' least common multiple is small.
[[nodiscard]] bool is_subset(const TokenSet& part, const TokenSet& whole) noexcept;

/// "[0, 32)", "[0, 37) with x mod 4 = 2", "[0, 37) with x mod 64 in [16, 32)".
[[nodiscard]] std::string text(const TokenSet& set);

}  // namespace cpverify::layout
