#pragma once

#include "cpverify/observer.hpp"
#include "sim/check/fault_table.hpp"

namespace cpverify::sim {

/// Accesses out of bounds, to freed memory, and misaligned ones. After one the launch stops.
class Memcheck final : public Observer {
 public:
  /// `faults` must outlive the checker.
  explicit Memcheck(FaultTable& faults) : faults_{&faults} {}
  void on_violation(const ExecutionPoint& point, const ViolationEvent& event) noexcept override;

 private:
  FaultTable* faults_;
};

}  // namespace cpverify::sim
