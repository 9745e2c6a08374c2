#pragma once

#include "cpverify/observer.hpp"
#include "sim/check/fault_table.hpp"

namespace cpverify::sim {

/// Reads of bytes that nobody has written, in global, shared and local memory, reported at the load
/// (also when the value is only copied); cp.async carries "unwritten" along instead.
class Initcheck final : public Observer {
 public:
  /// `faults` must outlive the checker.
  explicit Initcheck(FaultTable& faults) : faults_{&faults} {}
  void on_violation(const ExecutionPoint& point, const ViolationEvent& event) noexcept override;

 private:
  FaultTable* faults_;
};

}  // namespace cpverify::sim
