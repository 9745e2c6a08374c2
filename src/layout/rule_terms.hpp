#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

#include "layout/configuration.hpp"
#include "layout/splits.hpp"

/// Words in which the tables of rules are written.
namespace cpverify::layout {

[[nodiscard]] constexpr std::uint8_t bit(System system) noexcept {
  return static_cast<std::uint8_t>(1U << static_cast<unsigned>(system));
}

inline constexpr std::uint8_t kVllm = bit(System::vllm);
inline constexpr std::uint8_t kAscend = bit(System::vllm_ascend);
inline constexpr std::uint8_t kBothVllm = kVllm | kAscend;
inline constexpr std::uint8_t kSglang = bit(System::sglang);
inline constexpr std::uint8_t kOwn = bit(System::cpverify);
inline constexpr std::uint8_t kAll = kBothVllm | kSglang | kOwn;

/// The text when the condition that breaks a rule holds, else "".
[[nodiscard]] inline std::string when(bool is_broken, std::string text) {
  return is_broken ? std::move(text) : std::string{};
}

struct Clause {
  bool is_broken = false;
  std::string_view text;
};

/// The texts of the clauses that hold, when the rule is in force.
[[nodiscard]] inline std::string clauses(bool is_in_force, std::initializer_list<Clause> list) {
  std::string all;
  for (const Clause& clause : list) {
    if (!is_in_force || !clause.is_broken) continue;
    if (!all.empty()) all += ", ";
    all += clause.text;
  }
  return all;
}

[[nodiscard]] inline bool is_power_of_two(std::int64_t value) noexcept {
  return value > 0 && (value & (value - 1)) == 0;
}

/// Strategies that split new tokens over cp ranks, and those that split the cache over dcp ranks.
[[nodiscard]] constexpr bool uses_cp(SplitKind kind) noexcept {
  return kind != SplitKind::single && kind != SplitKind::dcp && kind != SplitKind::dcp_virtual;
}
[[nodiscard]] constexpr bool uses_dcp(SplitKind kind) noexcept {
  return kind == SplitKind::dcp || kind == SplitKind::dcp_virtual ||
         kind == SplitKind::pcp_head_tail || kind == SplitKind::pcp_virtual_batch;
}

[[nodiscard]] inline bool is_gqa(const Configuration& c) {
  return !c.has(Feature::mla) && !c.has(Feature::sparse_attention);
}

[[nodiscard]] inline bool is_zigzag(const Configuration& c) noexcept {
  return c.strategy == SplitKind::zigzag || c.strategy == SplitKind::zigzag_combined;
}

[[nodiscard]] inline bool is_cp(const Configuration& c) noexcept {
  return c.cp > 1;
}
[[nodiscard]] inline bool is_dcp(const Configuration& c) noexcept {
  return c.dcp > 1;
}
[[nodiscard]] inline bool is_any_cp(const Configuration& c) noexcept {
  return c.cp > 1 || c.dcp > 1;
}

[[nodiscard]] inline bool is_all_to_all(const Configuration& c) noexcept {
  return c.combine == Combine::a2a || c.combine == Combine::fi_a2a;
}

}  // namespace cpverify::layout
