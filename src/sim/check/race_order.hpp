#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <vector>

#include "cpverify/observer.hpp"

namespace cpverify::sim {

/// Who accessed a place, in 8 bytes.
struct RaceLabel {
  /// A time that is before everything.
  static constexpr std::uint32_t kNobody = 0;
  static constexpr std::uint32_t kInstructionMax = (1U << 19) - 1;

  /// Times are multiples of this. What is below says how many bytes each lane has, its log2, where
  /// a label stands for lanes side by side.
  static constexpr std::uint32_t kTick = 8;

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
            (instruction < kInstructionMax ? instruction : kInstructionMax) << 13 | warp << 5};
  }
  [[nodiscard]] std::uint32_t lane() const noexcept { return packed & 31U; }
  [[nodiscard]] std::uint32_t warp() const noexcept { return packed >> 5 & 31U; }
  /// Atomic, or with a memory order of its own: such accesses do not race with each other.
  [[nodiscard]] bool is_strong() const noexcept { return (packed >> 10 & 1U) != 0; }
  /// An asynchronous copy that has not been waited for.
  [[nodiscard]] bool is_async() const noexcept { return (packed >> 11 & 1U) != 0; }
  /// Strong for the threads of its CTA only.
  [[nodiscard]] bool is_cta_scope() const noexcept { return (packed >> 12 & 1U) != 0; }
  [[nodiscard]] std::uint32_t instruction() const noexcept { return packed >> 13; }
  /// 0 for those that race with more than those of 1, which race with more than those of 2.
  [[nodiscard]] std::uint32_t strength() const noexcept {
    return is_strong() ? 2U - (packed >> 12 & 1U) : 0U;
  }
  [[nodiscard]] bool is_of_warp_of(const RaceLabel& other) const noexcept {
    return ((packed ^ other.packed) >> 5 & 31U) == 0;
  }
  void set_cta_scope() noexcept { packed |= 1U << 12; }
  /// The copy has been waited for.
  void complete(std::uint32_t now) noexcept {
    time = now | time % kTick;
    packed &= ~(1U << 11);
  }
  /// Of the lane that has byte `byte` of those that the label stands for.
  [[nodiscard]] RaceLabel at(std::uint32_t byte) const noexcept {
    return {time, packed + (byte >> time % kTick)};
  }
};

/// What can be said of a label without asking a RaceOrder.
struct RaceTimes {
  std::uint32_t now = RaceLabel::kTick;
  /// Labels of `home` up to here are before what runs now, unless they are asynchronous.
  std::uint32_t first = RaceLabel::kTick;
  /// What has happened since then is ordered alike for all who come, but for the warp itself.
  std::uint32_t since = RaceLabel::kTick;
  std::uint32_t home =
      RaceLabel::kTick;  ///< From here on: labels of the CTA (or cluster) that runs.
  std::uint32_t oldest = RaceLabel::kTick;  ///< Labels below count for nothing.
  /// False: of what is not before `first`, only what the same warp of the same CTA did is before
  /// what it does now.
  bool is_partial = false;
  /// Labels below `home` may be before what runs now.
  bool knows_others = false;
  /// Labels below count for nothing unless they are asynchronous.
  std::uint32_t forgotten = RaceLabel::kTick;
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
  [[nodiscard]] virtual RaceTimes times() const noexcept = 0;
};

/// The warps of one CTA after the other, ordered by barriers and mbarriers. Times number the
/// stretches between such points over all CTAs of a launch.
class WarpOrder final : public RaceOrder {
 public:
  static constexpr std::size_t kWarps = 32;
  using Clocks = std::array<std::uint32_t, kWarps>;  ///< What each warp did up to this time.

  /// `is_partial`: there may be barriers of some warps.
  explicit WarpOrder(bool is_partial) : is_partial_{is_partial} {}

  void begin_cta() noexcept;
  void run(std::uint32_t warp) noexcept { warp_ = warp; }
  [[nodiscard]] std::uint32_t time() const noexcept { return now_; }
  /// A new stretch begins.
  void tick() noexcept {
    if (now_ < kLast) now_ += RaceLabel::kTick;
  }
  /// A barrier of all warps.
  void synchronise() noexcept;
  /// A barrier of some.
  void synchronise(std::uint32_t warps) noexcept;
  /// Adds what the running warp did and knows to `target`; what it does next is not in it.
  void release(Clocks& target) noexcept;
  /// The running warp comes to know what was released.
  void acquire(const Clocks& source) noexcept;
  [[nodiscard]] bool is_before(const RaceLabel& earlier) const noexcept override;
  [[nodiscard]] RaceTimes times() const noexcept override {
    return {now_, first_, first_, home_, home_, is_partial_, false, first_};
  }

 private:
  /// Time stands still: what comes is not distinguished any more.
  static constexpr std::uint32_t kLast = ~0U - 4 * RaceLabel::kTick + 1;

  std::uint32_t warp_ = 0;
  std::uint32_t now_ = RaceLabel::kTick;
  std::uint32_t first_ = RaceLabel::kTick;  ///< Since the last barrier of all warps.
  std::uint32_t home_ = RaceLabel::kTick;   ///< Since the CTA began.
  bool is_partial_;
  bool has_clocks_ = false;             ///< known_ is not all zeros.
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
    return static_cast<std::uint32_t>(ctas_.size() - 1) * RaceLabel::kTick;
  }
  [[nodiscard]] const std::array<std::uint32_t, 3>& cta_at(std::uint32_t time) const {
    return ctas_[time / RaceLabel::kTick];
  }
  [[nodiscard]] bool is_partial() const noexcept { return !released_.empty(); }
  [[nodiscard]] bool knows_others() const noexcept { return !acquired_.empty(); }
  [[nodiscard]] bool is_before(const RaceLabel& earlier) const noexcept override;
  [[nodiscard]] RaceTimes times() const noexcept override {
    constexpr std::uint32_t kNever = std::numeric_limits<std::uint32_t>::max();
    return {time(),           kNever,       time(),         first_ * RaceLabel::kTick,
            RaceLabel::kTick, is_partial(), knows_others(), RaceLabel::kTick};
  }

 private:
  using Times = std::vector<bool>;
  void begin_stretch();

  std::vector<std::array<std::uint32_t, 3>> ctas_{1};  ///< [time / kTick]; none at the first.
  std::uint32_t first_ = 0;                            ///< Index of the first time of the CTA.
  std::uint32_t fenced_ = 0;                           ///< What is below is before a fence of it.
  Times acquired_;
  std::map<std::uint64_t, Times> released_;  ///< By address.
};

/// Both together, for global memory: within a CTA the order of its warps, whose times these are,
/// between CTAs that of the CTAs.
class LaunchOrder final : public RaceOrder {
 public:
  explicit LaunchOrder(WarpOrder& warps) : warps_{&warps} {}

  void begin_cta(const std::array<std::uint32_t, 3>& cta);
  void fence();
  void synchronise(std::uint64_t address, AccessKind kind, MemoryOrder order);
  /// The CTA of a label.
  [[nodiscard]] const std::array<std::uint32_t, 3>& cta_of(const RaceLabel& label) const;
  [[nodiscard]] bool is_before(const RaceLabel& earlier) const noexcept override;
  [[nodiscard]] RaceTimes times() const noexcept override {
    RaceTimes times = warps_->times();
    times.since = std::max(times.since, starts_.back());
    times.oldest = RaceLabel::kTick;
    times.forgotten = RaceLabel::kTick;
    times.is_partial = times.is_partial || ctas_.is_partial();
    times.knows_others = ctas_.knows_others();
    return times;
  }

 private:
  void follow();
  [[nodiscard]] std::uint32_t cta_time(const RaceLabel& label) const;

  WarpOrder* warps_;
  CtaOrder ctas_;
  std::vector<std::uint32_t> starts_{0};  ///< [time of ctas_ / kTick]: first time of warps_.
};

}  // namespace cpverify::sim
