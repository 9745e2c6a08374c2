#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "cpverify/observer.hpp"
#include "sim/check/fault_table.hpp"
#include "sim/check/proxy_map.hpp"
#include "sim/check/race_map.hpp"
#include "sim/check/race_order.hpp"
#include "sim/check/race_report.hpp"
#include "sim/isa/code.hpp"

namespace cpverify::sim {

/// Accesses in no order, at least one a write: of warps of a CTA (shared and global memory), of
/// CTAs (global), of lanes in one instruction, and of asynchronous copies, which own their target
/// and source from issue to wait; and shared memory that is written, then read asynchronously
/// without fence.proxy.async. Found whatever the schedule made of them. Made for one launch.
class Racecheck final : public Observer {
 public:
  /// `faults` and `code` must outlive the checker.
  Racecheck(FaultTable& faults, const Code& code, std::uint32_t warp_count);

  [[nodiscard]] bool wants_accesses() const noexcept override { return true; }
  void on_access(const ExecutionPoint& point, const AccessEvent& event) noexcept override;
  [[nodiscard]] bool on_plain_access(const PlainAccessEvent& event) noexcept override;
  [[nodiscard]] bool on_plain_rows(const PlainRowsEvent& event) noexcept override;
  void on_cta(const std::array<std::uint32_t, 3>& cta) noexcept override;
  void on_ordered(std::uint32_t rank, std::uint32_t warps) noexcept override;
  void on_completed(const ExecutionPoint& point, const AccessEvent& event) noexcept override;
  void on_fence(const ExecutionPoint& point) noexcept override;
  void on_proxy_fence(const ExecutionPoint& point) noexcept override;
  void on_mbarrier(const ExecutionPoint& point, std::uint32_t offset,
                   MbarrierEvent event) noexcept override;

  /// Stores that would race if they did not store what is there already; not reported.
  [[nodiscard]] std::uint64_t same_value_stores() const noexcept {
    return report_.same_value_stores();
  }

 private:
  /// What waiters of an mbarrier object come to know.
  struct MbarrierClocks {
    WarpOrder::Clocks arrived{};   ///< In the phase that is open.
    WarpOrder::Clocks complete{};  ///< Up to the last complete one.
  };

  /// Rows that an instruction has read since the last barrier of all warps, by which of them.
  struct RowsRead {
    std::uint32_t since = 0;
    std::uint32_t warps = 0;
    std::array<std::uint32_t, 32> offsets{};
  };

  [[nodiscard]] bool have_two_read(const PlainRowsEvent& event);
  [[nodiscard]] RaceMap& map_of(std::uint32_t instruction, std::uint64_t base,
                                std::uint64_t object_bytes);
  void report(const ExecutionPoint& point, const AccessEvent& event);
  void follow_orders() noexcept;

  RaceReport report_;
  std::uint32_t all_warps_;
  WarpOrder warp_order_;
  LaunchOrder launch_order_{warp_order_};
  RaceTimes warp_times_;         ///< Of the one,
  RaceTimes launch_times_;       ///< and of the other order.
  std::vector<bool> is_strong_;  ///< Per instruction: it has a memory order.
  std::unique_ptr<RaceMap> shared_;
  bool has_async_reads_ = false;       ///< The kernel may read shared memory asynchronously.
  std::unique_ptr<ProxyMap> proxies_;  ///< Only then.
  std::map<std::uint32_t, MbarrierClocks> mbarriers_;  ///< By offset in shared memory.
  std::map<std::uint64_t, RaceMap> global_;            ///< By base address of the allocation.
  /// Per instruction: the map that it used last, and its base.
  std::vector<std::pair<std::uint64_t, RaceMap*>> last_maps_;
  std::vector<std::uint32_t> rows_of_;  ///< Per instruction: index in rows_read_, or 0.
  std::vector<RowsRead> rows_read_{1};
  std::vector<RaceMap::Conflict> conflicts_;
};

}  // namespace cpverify::sim
