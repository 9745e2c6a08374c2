#include "sim/check/haltcheck.hpp"

#include "cpverify/fault.hpp"
#include "cpverify/observer.hpp"

namespace cpverify::sim {

void Haltcheck::on_violation(const ExecutionPoint& point, const ViolationEvent& event) noexcept {
  if (event.kind == FaultKind::illegal_instruction) faults_->add(point, event);
}

}  // namespace cpverify::sim
