#pragma once

#include "cpverify/observer.hpp"
#include "sim/check/fault_table.hpp"

namespace cpverify::sim {

/// Warps and lanes that do not meet where they must: barriers, `.sync` instructions, deadlocks,
/// exhausted budgets.
class Synccheck final : public Observer {
 public:
  /// `faults` must outlive the checker.
  explicit Synccheck(FaultTable& faults) : faults_{&faults} {}
  void on_violation(const ExecutionPoint& point, const ViolationEvent& event) noexcept override;

 private:
  FaultTable* faults_;
};

}  // namespace cpverify::sim
