#pragma once

#include <cstdint>

#include "sim/check/race_order.hpp"

namespace cpverify::sim {

/// Counts the stretches in which one runner after the other acts on a map. Stamps carry the low
/// bits that their owner likes to keep with them.
class RaceClock {
 public:
  static constexpr std::uint64_t kStep = 4;

  [[nodiscard]] std::uint64_t now() const noexcept { return now_; }
  /// Of the stretch that runs.
  [[nodiscard]] bool is_own(std::uint64_t stamp) const noexcept { return stamp >= now_; }
  /// False for what has been forgotten, and for a stamp of 0.
  [[nodiscard]] bool is_valid(std::uint64_t stamp) const noexcept { return stamp >= first_; }
  void advance() noexcept { now_ += kStep; }
  void forget() noexcept { first_ = now_; }

 private:
  std::uint64_t now_ = kStep;
  std::uint64_t first_ = kStep;
};

/// Who has touched 128 bytes that warps have only touched as a whole, lane beside lane: what bits
/// and labels for each of the bytes would say, in 32 bytes.
struct RaceLine {
  static constexpr std::uint64_t kBytes = 128;

  struct Use {
    RaceLabel label{0, 0};  ///< Of the first 4 bytes: the last writer, or the first reader.
    /// When it was last touched; the low bits: log2 of how many 4 bytes each lane has.
    std::uint64_t stamp = 0;

    [[nodiscard]] RaceLabel label_of(std::uint32_t word) const noexcept {
      return {label.time, label.packed + (word >> (stamp % RaceClock::kStep))};
    }
  };

  Use reads;
  Use writes;

  /// An access of all of it, neither strong nor pending. False, and nothing has happened, when it
  /// races with what is remembered. `shift` is that of Use::stamp.
  bool touch(const RaceClock& clock, bool is_write, const RaceLabel& label, std::uint32_t shift,
             const RaceOrder& order) noexcept {
    if (is_in_conflict(clock, writes, order)) return false;
    if (is_write) {
      if (is_in_conflict(clock, reads, order)) return false;
      if (!clock.is_own(writes.stamp)) writes = {label, clock.now() | shift};
      return true;
    }
    if (clock.is_own(reads.stamp)) return true;
    // The first reader stays, unless it is before this one.
    const bool is_kept =
        clock.is_valid(reads.stamp) && !(order.is_partial() && order.is_before(reads.label));
    if (is_kept) {
      reads.stamp = clock.now() | reads.stamp % RaceClock::kStep;
    } else {
      reads = {label, clock.now() | shift};
    }
    return true;
  }

 private:
  static bool is_in_conflict(const RaceClock& clock, const Use& use,
                             const RaceOrder& order) noexcept {
    return clock.is_valid(use.stamp) && !order.is_before(use.label);
  }
};

}  // namespace cpverify::sim
