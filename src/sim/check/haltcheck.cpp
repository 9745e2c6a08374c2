#include "sim/check/haltcheck.hpp"

#include "cpverify/fault.hpp"
#include "cpverify/observer.hpp"

namespace cpverify::sim {

void Haltcheck::on_violation(const ExecutionPoint& point, const ViolationEvent& event) noexcept {
  switch (event.kind) {
    case FaultKind::illegal_instruction:
    case FaultKind::race:  // Of registers: that of memory is racecheck's own.
      faults_->add(point, event);
      return;
    default:
      return;
  }
}

}  // namespace cpverify::sim
