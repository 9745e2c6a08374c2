#include "sim/check/memcheck.hpp"

#include "cpverify/fault.hpp"
#include "cpverify/observer.hpp"

namespace cpverify::sim {

void Memcheck::on_violation(const ExecutionPoint& point, const ViolationEvent& event) noexcept {
  switch (event.kind) {
    case FaultKind::out_of_bounds_read:
    case FaultKind::out_of_bounds_write:
    case FaultKind::use_after_free:
    case FaultKind::misaligned:
      faults_->add(point, event);
      return;
    default:
      return;
  }
}

}  // namespace cpverify::sim
