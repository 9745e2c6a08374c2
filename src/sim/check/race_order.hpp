#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <vector>

#include "cpverify/observer.hpp"

namespace cpverify::sim {

/// Who accessed a place, in 8 bytes.
struct RaceLabel {
  /// A time that is before everything.
  static constexpr std::uint32_t kNobody = 0;
  static constexpr std::uint32_t kInstructionMax = (1U << 20) - 1;

  std::uint32_t time;  ///< Of the order that the label is for.
  std::uint32_t packed;

  static RaceLabel make(std::uint32_t time, const ExecutionPoint& point, bool is_strong,
                        bool is_async) {
    RaceLabel label = make_plain(time, point.instruction, point.warp);
    label.packed |=
        static_cast<std::uint32_t>(is_async) << 11 | static_cast<std::uint32_t>(is_strong) << 10;
    return label;
  }
  /// Neither strong nor asynchronous.
  static RaceLabel make_plain(std::uint32_t time, std::uint32_t instruction, std::uint32_t warp) {
    return {time,
            (instruction < kInstructionMax ? instruction : kInstructionMax) << 12 | warp << 5};
  }
  [[nodiscard]] std::uint32_t lane() const noexcept { return packed & 31U; }
  [[nodiscard]] std::uint32_t warp() const noexcept { return packed >> 5 & 31U; }
  /// Atomic, or with a memory order of its own: such accesses do not race with each other.
  [[nodiscard]] bool is_strong() const noexcept { return (packed >> 10 & 1U) != 0; }
  /// An asynchronous copy that has not been waited for.
  [[nodiscard]] bool is_async() const noexcept { return (packed >> 11 & 1U) != 0; }
  [[nodiscard]] std::uint32_t instruction() const noexcept { return packed >> 12; }
};

/// What comes before what, seen from the warp or CTA that runs now.
class RaceOrder {
 public:
  RaceOrder() = default;
  RaceOrder(const RaceOrder&) = delete;
  RaceOrder& operator=(const RaceOrder&) = delete;
  RaceOrder(RaceOrder&&) = delete;
  RaceOrder& operator=(RaceOrder&&) = delete;
  virtual ~RaceOrder() = default;

  /// True when what the label stands for is before what runs now.
  [[nodiscard]] virtual bool is_before(const RaceLabel& earlier) const noexcept = 0;
  /// False when nothing that a map remembers of others is before what runs now.
  [[nodiscard]] virtual bool is_partial() const noexcept = 0;
};

/// The warps of one CTA, ordered by barriers and mbarriers. A vector clock for each: times are its
/// own clock.
class WarpOrder final : public RaceOrder {
 public:
  static constexpr std::size_t kWarps = 32;
  using Clocks = std::array<std::uint32_t, kWarps>;

  void begin_cta() noexcept;
  void run(std::uint32_t warp) noexcept { warp_ = warp; }
  [[nodiscard]] std::uint32_t warp() const noexcept { return warp_; }
  [[nodiscard]] std::uint32_t time() const noexcept { return clocks_[warp_]; }
  /// A barrier of some warps; one of all warps needs no clocks, since all that came before is
  /// forgotten.
  void synchronise(std::uint32_t warps) noexcept;
  /// Adds what the running warp did and knows to `target`; what it does next is not in it.
  void release(Clocks& target) noexcept;
  /// The running warp comes to know what was released.
  void acquire(const Clocks& source) noexcept;
  [[nodiscard]] bool is_before(const RaceLabel& earlier) const noexcept override;
  [[nodiscard]] bool is_partial() const noexcept override { return is_partial_; }

 private:
  std::uint32_t warp_ = 0;
  bool is_partial_ = false;
  Clocks clocks_{};
  std::array<Clocks, kWarps> known_{};  ///< [of whom][of what]
};

/// The CTAs of a launch, ordered by a fence, then an atomic (or strong store), then an atomic (or
/// strong load) of another CTA at the same address. Times number the stretches between such points
/// over all CTAs. A fence counts for its whole CTA, and an atomic acquires also without a fence
/// behind it: both may hide a race, neither invents one.
class CtaOrder final : public RaceOrder {
 public:
  void begin_cta(const std::array<std::uint32_t, 3>& cta);
  /// For clusters, which count as one CTA here: from here on this one of it runs.
  void run_cta(const std::array<std::uint32_t, 3>& cta);
  void fence();
  /// An atomic or strong access of one address.
  void synchronise(std::uint64_t address, AccessKind kind, MemoryOrder order);
  [[nodiscard]] std::uint32_t time() const noexcept {
    return static_cast<std::uint32_t>(ctas_.size() - 1);
  }
  [[nodiscard]] const std::array<std::uint32_t, 3>& cta_at(std::uint32_t time) const {
    return ctas_[time];
  }
  [[nodiscard]] bool is_before(const RaceLabel& earlier) const noexcept override;
  [[nodiscard]] bool is_partial() const noexcept override { return !released_.empty(); }

 private:
  using Times = std::vector<bool>;
  void begin_stretch();

  std::vector<std::array<std::uint32_t, 3>> ctas_{1};  ///< [time]; none at time 0.
  std::uint32_t first_ = 0;                            ///< First time of the CTA that runs.
  std::uint32_t fenced_ = 0;                           ///< Times below are before a fence of it.
  Times acquired_;
  std::map<std::uint64_t, Times> released_;  ///< By address.
};

}  // namespace cpverify::sim
