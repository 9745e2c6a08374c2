#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "cpverify/schedule.hpp"

namespace cpverify::sim {

/// A warp that has run so many instructions lets the others run: it may poll what they write.
inline constexpr std::uint64_t kSliceInstructions = 1U << 16;

/// A warp of a resident CTA, as a schedule sees it; of independent threads, a lane of one, which
/// stands for the lanes that run together and of which it is the lowest.
struct Candidate {
  std::uint64_t id = 0;  ///< One number per candidate of the launch, whatever the order of CTAs.
  bool is_ready = false;
  bool is_spinning = false;  ///< Polls memory: it goes on when another warp has written.
};

/// A warp's next stretch.
struct Turn {
  std::size_t candidate = 0;
  std::uint64_t instructions = kSliceInstructions;  ///< At most; at least 1.
  /// Ends before the next memory or synchronisation instruction after so many; 0 for never.
  std::uint32_t points = 0;
};

/// Decides which warp runs next, and in which order CTAs start. Deterministic: the same calls get
/// the same answers. One object serves one launch.
class Schedule {
 public:
  Schedule() = default;
  Schedule(const Schedule&) = delete;
  Schedule& operator=(const Schedule&) = delete;
  Schedule(Schedule&&) = delete;
  Schedule& operator=(Schedule&&) = delete;
  virtual ~Schedule() = default;

  /// The CTA (in grid order, x fastest) that starts as number `index` of `count`: a permutation.
  [[nodiscard]] virtual std::uint64_t cta(std::uint64_t index, std::uint64_t count) const noexcept;
  /// CTAs that run at the same time. When all of their warps spin, more are started.
  [[nodiscard]] virtual std::uint32_t resident_ctas() const noexcept { return 1; }
  /// Barriers open between two rounds only; otherwise as soon as they are complete.
  [[nodiscard]] virtual bool has_rounds() const noexcept { return false; }
  /// Of the two sides of a branch that splits a fragment, the one with the lowest lane goes on; or
  /// the other one.
  [[nodiscard]] virtual bool prefers_high_lanes() const noexcept { return false; }
  /// The next turn, of a candidate that is ready. Nothing when none is ready, or at the end of a
  /// round. A candidate keeps its place until its CTA has ended.
  [[nodiscard]] virtual std::optional<Turn> pick(std::span<const Candidate> candidates) = 0;
  /// Of `count` candidates, one that stays ready is picked at least once in so many turns.
  [[nodiscard]] virtual std::uint64_t fair_turns(std::size_t count) const noexcept = 0;
};

[[nodiscard]] std::unique_ptr<Schedule> make_schedule(const ScheduleSpec& spec);

}  // namespace cpverify::sim
