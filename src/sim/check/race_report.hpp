#pragma once

#include <array>
#include <cstdint>

#include "cpverify/observer.hpp"
#include "sim/check/fault_table.hpp"
#include "sim/check/proxy_map.hpp"
#include "sim/check/race_map.hpp"
#include "sim/check/race_order.hpp"
#include "sim/isa/code.hpp"

namespace cpverify::sim {

/// What an access is to the maps of racecheck, in an order with these times. Keeps `event`'s
/// addresses, `times` and `order`.
[[nodiscard]] RaceMap::Touch touch_of(const ExecutionPoint& point, const AccessEvent& event,
                                      const RaceTimes& times, const RaceOrder& order) noexcept;

/// Makes faults of what the maps of racecheck find, and finds what one access says by itself.
class RaceReport {
 public:
  /// Both must outlive the report.
  RaceReport(FaultTable& faults, const Code& code) : faults_{&faults}, code_{&code} {}

  /// An access that is in no order with an earlier one, which a warp of `cta` has made.
  void add(const ExecutionPoint& point, const AccessEvent& event, const RaceMap::Conflict& conflict,
           const std::array<std::uint32_t, 3>& cta);
  /// Lanes of one store that store different values to one byte.
  void check_lanes(const ExecutionPoint& point, const AccessEvent& event);
  /// Shared memory between ordinary writes and asynchronous reads. `time` is that of the warp.
  void check_proxy(const ExecutionPoint& point, const AccessEvent& event, std::uint32_t time,
                   ProxyMap& proxies);

  /// Stores that would race if they did not store what is there already; not reported.
  [[nodiscard]] std::uint64_t same_value_stores() const noexcept { return same_value_stores_; }

 private:
  [[nodiscard]] bool is_ordinary_write(const ExecutionPoint& point,
                                       const AccessEvent& event) const noexcept;

  FaultTable* faults_;
  const Code* code_;
  std::uint64_t same_value_stores_ = 0;
};

}  // namespace cpverify::sim
