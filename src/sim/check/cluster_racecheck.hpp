#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "cpverify/observer.hpp"
#include "sim/check/cluster_order.hpp"
#include "sim/check/fault_table.hpp"
#include "sim/check/proxy_map.hpp"
#include "sim/check/race_map.hpp"
#include "sim/check/race_order.hpp"
#include "sim/check/race_report.hpp"
#include "sim/isa/code.hpp"

namespace cpverify::sim {

/// What Racecheck is for launches in clusters, one of which runs at a time: accesses in no order of
/// the warps of a cluster (global memory and the shared memory of each of its CTAs), and of
/// clusters (global memory). Made for one launch.
class ClusterRacecheck final : public Observer {
 public:
  struct Shape {
    std::uint32_t ctas = 1;   ///< Of a cluster.
    std::uint32_t warps = 1;  ///< Of a CTA.
  };
  /// `faults` and `code` must outlive the checker.
  ClusterRacecheck(FaultTable& faults, const Code& code, const Shape& shape);

  [[nodiscard]] bool wants_accesses() const noexcept override { return true; }
  void on_access(const ExecutionPoint& point, const AccessEvent& event) noexcept override;
  void on_cta(const std::array<std::uint32_t, 3>& cta) noexcept override;
  void on_ordered(std::uint32_t rank, std::uint32_t warps) noexcept override;
  void on_completed(const ExecutionPoint& point, const AccessEvent& event) noexcept override;
  void on_fence(const ExecutionPoint& point) noexcept override;
  void on_proxy_fence(const ExecutionPoint& point) noexcept override;
  void on_mbarrier(const ExecutionPoint& point, std::uint32_t offset,
                   MbarrierEvent event) noexcept override;
  void on_cluster_barrier(const ClusterWarp& warp, MbarrierEvent event,
                          MemoryOrder order) noexcept override;

  [[nodiscard]] std::uint64_t same_value_stores() const noexcept {
    return report_.same_value_stores();
  }

 private:
  struct Maps {
    explicit Maps(std::uint64_t size_bytes)
        : warps{MemorySpace::global, size_bytes}, clusters{MemorySpace::global, size_bytes} {}
    RaceMap warps;
    RaceMap clusters;
  };
  /// What those who wait for a barrier object come to know.
  struct BarrierClocks {
    ClusterOrder::Clocks arrived;   ///< In the phase that is open.
    ClusterOrder::Clocks complete;  ///< Up to the last complete one.
  };
  /// Of a CTA.
  struct Shared {
    std::unique_ptr<RaceMap> races;
    std::unique_ptr<ProxyMap> proxies;
  };

  void begin_warp(std::uint32_t rank, std::uint32_t warp);
  void meet(BarrierClocks& clocks, MbarrierEvent event, MemoryOrder order);
  void access_shared(const ExecutionPoint& point, const AccessEvent& event,
                     const RaceMap::Touch& touch);
  void access_global(const ExecutionPoint& point, const AccessEvent& event, RaceMap::Touch touch);
  void acquire_at(const AccessEvent& event);
  void release_at(const AccessEvent& event);

  RaceReport report_;
  std::uint32_t size_;     ///< CTAs of a cluster.
  std::uint32_t started_;  ///< CTAs of the cluster that runs.
  ClusterOrder order_;
  CtaOrder cluster_order_;
  std::vector<std::array<std::uint32_t, 3>> ctas_;  ///< By rank.
  std::vector<Shared> shared_;                      ///< By rank.
  bool has_async_reads_ = false;  ///< The kernel may read shared memory asynchronously.
  /// By rank and offset in shared memory.
  std::map<std::pair<std::uint32_t, std::uint32_t>, BarrierClocks> mbarriers_;
  BarrierClocks barrier_;                 ///< Of the cluster.
  std::map<std::uint64_t, Maps> global_;  ///< By base address of the allocation.
  std::vector<RaceMap::Conflict> conflicts_;
};

}  // namespace cpverify::sim
