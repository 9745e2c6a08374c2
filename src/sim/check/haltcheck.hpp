#pragma once

#include "cpverify/observer.hpp"
#include "sim/check/fault_table.hpp"

namespace cpverify::sim {

/// Instructions that cannot go on.
class Haltcheck final : public Observer {
 public:
  /// `faults` must outlive the checker.
  explicit Haltcheck(FaultTable& faults) : faults_{&faults} {}
  void on_violation(const ExecutionPoint& point, const ViolationEvent& event) noexcept override;

 private:
  FaultTable* faults_;
};

}  // namespace cpverify::sim
