#include "sim/check/initcheck.hpp"

#include "cpverify/fault.hpp"
#include "cpverify/observer.hpp"

namespace cpverify::sim {

void Initcheck::on_violation(const ExecutionPoint& point, const ViolationEvent& event) noexcept {
  switch (event.kind) {
    case FaultKind::uninitialised_read:
      faults_->add(point, event);
      return;
    default:
      return;
  }
}

}  // namespace cpverify::sim
