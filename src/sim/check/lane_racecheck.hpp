#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "cpverify/observer.hpp"
#include "sim/check/fault_table.hpp"
#include "sim/check/lane_order.hpp"
#include "sim/check/race_order.hpp"
#include "sim/isa/code.hpp"

namespace cpverify::sim {

/// Accesses of different lanes of one warp to one byte, at least one a write, in no order: what a
/// missing bar.warp.sync makes of threads that are scheduled independently. Every byte has the last
/// writer and a reader, so that of many races at one place one is named. What other warps do is
/// Racecheck's.
class LaneRacecheck final : public Observer {
 public:
  /// `faults` and `code` must outlive the checker.
  LaneRacecheck(FaultTable& faults, const Code& code, std::uint32_t warp_count);

  [[nodiscard]] bool wants_accesses() const noexcept override { return true; }
  void on_access(const ExecutionPoint& point, const AccessEvent& event) noexcept override;
  void on_cta(const std::array<std::uint32_t, 3>& cta) noexcept override;
  void on_ordered(std::uint32_t rank, std::uint32_t warps) noexcept override;
  void on_lanes_ordered(std::uint32_t warp, std::uint32_t lanes) noexcept override;
  void on_completed(const ExecutionPoint& point, const AccessEvent& event) noexcept override;

 private:
  static constexpr std::uint64_t kPageBytes = 1024;

  struct Byte {
    RaceLabel writer;
    RaceLabel reader;
  };
  using Page = std::array<Byte, kPageBytes>;
  /// The bytes of one memory object that this CTA has touched.
  using Pages = std::map<std::uint64_t, Page*>;
  struct Conflict {
    RaceLabel earlier{};
    bool is_earlier_write = false;
    std::uint32_t lanes = 0;    ///< Of the later access.
    std::uint64_t address = 0;  ///< Of the first of them.
  };

  [[nodiscard]] Byte& byte_at(const AccessEvent& event, std::uint64_t address);
  [[nodiscard]] Page* new_page();
  void find_conflicts(const ExecutionPoint& point, const AccessEvent& event, Conflict& conflict);
  void add_labels(const ExecutionPoint& point, const AccessEvent& event);
  void order_strong(const ExecutionPoint& point, const AccessEvent& event);
  void report(const ExecutionPoint& point, const AccessEvent& event, const Conflict& conflict);

  FaultTable* faults_;
  const Code* code_;
  std::uint32_t warp_count_;
  LaneOrder order_;
  std::map<std::uint64_t, Pages> objects_;  ///< By base address; shared memory at kSharedObject.
  std::vector<std::unique_ptr<Page>> storage_;
  std::size_t used_pages_ = 0;  ///< Of storage_; all are free when a CTA begins.
  /// The page that was looked for last.
  std::uint64_t last_object_ = 0;
  std::uint64_t last_index_ = 0;
  Page* last_page_ = nullptr;
};

}  // namespace cpverify::sim
