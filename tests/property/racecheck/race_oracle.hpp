#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <vector>

#include "cpverify/observer.hpp"

namespace cpverify::sim {

/// What happens before what in one launch, and what races: every access of every lane is kept, and
/// for every warp the set of those that are before what it does next. No clocks, no labels, nothing
/// is ever forgotten.
class RaceOracle {
 public:
  static constexpr std::uint32_t kWarps = 4;

  /// One access of a warp.
  struct Access {
    std::uint32_t id = 0;  ///< The instruction; the two accesses of a copy share it.
    std::uint32_t warp = 0;
    std::uint32_t lanes = 0;
    std::uint32_t size_bytes = 0;
    std::array<std::uint64_t, 32> offsets{};
    AccessKind kind = AccessKind::read;
    MemoryOrder order = MemoryOrder::weak;
    bool is_shared = false;
    bool is_cta_scope = false;

    [[nodiscard]] bool is_pending() const;
    [[nodiscard]] bool is_write() const;
    [[nodiscard]] bool is_strong() const;
  };

  struct Race {
    bool is_shared = false;
    std::uint64_t byte = 0;          ///< Offset in the object.
    std::uint32_t lane = 0;          ///< Of the later access.
    std::uint32_t earlier = 0;       ///< Instruction,
    std::uint32_t earlier_warp = 0;  ///< warp
    std::uint32_t earlier_lane = 0;  ///< and lane of the earlier one.
    bool is_between_ctas = false;
  };

  void begin_cta();
  /// A barrier of the warps whose bits are set.
  void meet(std::uint32_t warps);
  void fence();
  void arrive(std::uint32_t warp, std::uint32_t barrier);
  void complete_phase(std::uint32_t barrier);
  void wait(std::uint32_t warp, std::uint32_t barrier);
  /// Adds an access and says with what it races.
  std::vector<Race> add(const Access& access);
  /// These lanes of a copy have been waited for.
  void end_copy(std::uint32_t id, std::uint32_t lanes);

 private:
  using Set = std::set<std::size_t>;  ///< Indices of all_.

  /// One lane.
  struct Kept {
    Access access;
    std::uint32_t lane = 0;
    std::size_t cta = 0;
    bool is_pending = false;
  };
  struct Phase {
    Set arrived;
    Set complete;
  };

  void synchronise(const Access& access);
  [[nodiscard]] bool is_racing(const Access& access, std::size_t earlier) const;
  void find_races(const Access& access, std::uint32_t lane, std::vector<Race>& races) const;

  std::vector<Kept> all_;
  std::size_t cta_ = 0;
  std::array<Set, kWarps> known_;            ///< Of this CTA.
  std::map<std::uint32_t, Phase> barriers_;  ///< mbarriers, by offset.
  bool has_fenced_ = false;
  Set fenced_;                             ///< Of this CTA, before its last fence.
  Set acquired_;                           ///< Of other CTAs.
  std::map<std::uint64_t, Set> released_;  ///< By offset in global memory.
};

}  // namespace cpverify::sim
