#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "cpverify/coverage.hpp"
#include "cpverify/observer.hpp"
#include "sim/isa/code.hpp"
#include "sim/machine/async_work.hpp"
#include "sim/machine/checked_bytes.hpp"
#include "sim/machine/cluster.hpp"
#include "sim/machine/dataflow.hpp"
#include "sim/machine/flow.hpp"
#include "sim/machine/fresh_registers.hpp"
#include "sim/machine/global_memory.hpp"
#include "sim/machine/launch.hpp"
#include "sim/machine/machine_code.hpp"
#include "sim/machine/mbarrier.hpp"
#include "sim/machine/warp.hpp"
#include "sim/machine/warpgroup.hpp"

namespace cpverify::sim {

/// What all warps of a launch share.
struct LaunchState {
  GlobalMemory* memory = nullptr;
  const Code* code = nullptr;
  const KernelFlow* flow = nullptr;
  FlowCheckers flow_checkers;
  const MachineCode* machine = nullptr;
  const LaunchRequest* request = nullptr;
  std::uint32_t device = 0;
  std::vector<Observer*> observers;
  std::vector<Observer*> access_observers;  ///< Those that want every access.
  /// Per instruction: the allocation that it touched last.
  std::vector<Allocation*> last_allocation;
  /// Per instruction: how many from here on always run one after the other; see straight_runs().
  const std::uint32_t* straight = nullptr;
  std::span<const RegisterRange> refreshed;  ///< What a warp must not find in its registers.
  std::vector<InstructionCount> counts;      ///< Per instruction; empty when nobody wants them.
  /// What the straight runs add to counts: lanes at the first instruction, and less those behind
  /// the last, modulo 2^64. One longer than counts.
  std::vector<std::uint64_t> run_lanes;
  std::array<std::uint32_t, 3> cluster{1, 1, 1};  ///< CTAs of a cluster.
  std::uint64_t budget_left = 0;
  std::uint64_t warp_instructions = 0;
  std::uint64_t thread_instructions = 0;
  bool is_aborted = false;
  bool is_independent = false;      ///< Threads are scheduled on their own.
  bool prefers_high_lanes = false;  ///< Of the schedule.
  CheckedBytes parameters;          ///< As generic addresses see them.
};

/// Barriers that a CTA has.
inline constexpr std::uint32_t kBarrierCount = 16;

/// What bar.arrive has added to a barrier since it last opened.
struct BarrierArrivals {
  std::uint32_t threads = 0;
  std::uint32_t expected = 0;  ///< By the last of them.
  std::uint32_t warps = 0;     ///< Bit i: warp i has arrived.
  const Insn* last = nullptr;  ///< The last bar.arrive.
};

/// A CTA that runs.
struct Cta {
  std::array<std::uint32_t, 3> id{};
  Cluster* cluster = nullptr;
  std::uint32_t rank = 0;  ///< In its cluster.
  CheckedBytes shared;
  std::vector<Warp> warps;
  std::vector<Warpgroup> warpgroups;  ///< Four warps each; the last may be incomplete.
  std::array<BarrierArrivals, kBarrierCount> arrivals{};
  std::map<std::uint32_t, Mbarrier> mbarriers;  ///< By offset in shared memory.
  AsyncWork async;
  std::uint64_t clock = 0;  ///< What %clock64 and %globaltimer say; each read moves it on.
  LaunchState* launch = nullptr;
};

/// A resident CTA with its storage, in which one after the other runs.
class CtaRunner {
 public:
  explicit CtaRunner(LaunchState& launch);

  /// Makes it the CTA with this index, none of whose warps has run. `cluster` has its id and its
  /// CTAs, this one at `rank`.
  void reset(const std::array<std::uint32_t, 3>& id, Cluster& cluster, std::uint32_t rank);
  /// Lets the warps go on whose barrier is complete. False when there are none.
  bool open_barriers();
  [[nodiscard]] const Cta& cta() const noexcept { return cta_; }
  [[nodiscard]] Cta& cta() noexcept { return cta_; }

 private:
  struct AlignedDelete {
    void operator()(std::byte* pointer) const noexcept;
  };

  void make_image();
  void make_specials();
  void reset_warp(Warp& warp);
  void fill_specials(Warp& warp);
  void open_barrier(std::uint32_t barrier);
  void notify_ordered(std::uint32_t barrier) const;
  void reduce_at_barrier(std::uint32_t barrier);

  LaunchState* launch_;
  Cta cta_;
  std::uint32_t threads_;
  std::uint32_t register_bytes_;
  std::vector<std::byte> image_;         ///< Registers of a warp before it starts.
  std::vector<std::uint32_t> specials_;  ///< [warp][special register of the code][lane]
  std::unique_ptr<std::byte, AlignedDelete> registers_;
};

/// How many threads of a CTA are at a barrier, and for how many it waits.
struct BarrierCount {
  std::uint32_t waiting = 0;   ///< In whole warps, as all of these.
  std::uint32_t arrived = 0;   ///< Waiting, or counted by bar.arrive.
  std::uint32_t expected = 0;  ///< Those that have exited are not waited for.
  bool is_for_all = true;      ///< Nobody has named a number of threads.

  [[nodiscard]] bool is_complete() const noexcept { return arrived > 0 && arrived >= expected; }
};

[[nodiscard]] BarrierCount count_barrier(const Cta& cta, std::uint32_t barrier);

[[nodiscard]] ExecutionPoint execution_point(const Warp& warp, const Insn* insn);

/// Tells the observers of what must not happen; all kinds but uninitialised_read and
/// unfinished_copy abort the launch.
void report(Warp& warp, const Insn* insn, const ViolationEvent& event);

}  // namespace cpverify::sim
