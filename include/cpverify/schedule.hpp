#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>

namespace cpverify {

/// In which order the simulated GPU runs warps and CTAs; docs/simulated_machine.md says what each
/// does. A kernel without races gives the same bytes under all of them.
enum class SchedulePolicy : std::uint8_t {
  round_robin,   ///< CTAs in order, warps in order, each up to its next barrier.
  reverse,       ///< The same from the other end.
  run_to_block,  ///< One warp as far as it goes, then the next.
  random,        ///< Seeded; warps are preempted at memory and synchronisation instructions.
  pct,           ///< Seeded priorities that change at few points, which finds bugs of small depth.
};

/// When lanes of a warp that a branch has separated meet again.
enum class ThreadScheduling : std::uint8_t {
  converged,    ///< As soon as their ways meet; until then one side runs after the other.
  independent,  ///< At `.sync` instructions only; until then each side is scheduled on its own.
};

/// A schedule is a function of these values: the same ones give the same run again.
struct ScheduleSpec {
  SchedulePolicy policy = SchedulePolicy::round_robin;
  std::uint64_t seed = 0;   ///< Of random and pct.
  std::uint32_t depth = 3;  ///< pct: priority changes + 1; finds bugs that need as many orderings.
  ThreadScheduling threads = ThreadScheduling::converged;
};

inline constexpr std::array kSchedulePolicies{SchedulePolicy::round_robin, SchedulePolicy::reverse,
                                              SchedulePolicy::run_to_block, SchedulePolicy::random,
                                              SchedulePolicy::pct};
inline constexpr std::array kThreadSchedulings{ThreadScheduling::converged,
                                               ThreadScheduling::independent};

[[nodiscard]] constexpr bool is_seeded(SchedulePolicy policy) noexcept {
  return policy == SchedulePolicy::random || policy == SchedulePolicy::pct;
}

/// CTAs run one after the other, which racecheck needs; otherwise several are resident.
[[nodiscard]] constexpr bool runs_one_cta_at_a_time(SchedulePolicy policy) noexcept {
  return !is_seeded(policy);
}

[[nodiscard]] std::string_view name(SchedulePolicy policy) noexcept;
[[nodiscard]] std::string_view name(ThreadScheduling threads) noexcept;

/// "reverse", "random:7" or "pct:7+its", as `--schedule` takes it.
[[nodiscard]] std::string text(const ScheduleSpec& schedule);

}  // namespace cpverify
