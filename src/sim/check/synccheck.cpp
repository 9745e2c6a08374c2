#include "sim/check/synccheck.hpp"

#include "cpverify/fault.hpp"
#include "cpverify/observer.hpp"

namespace cpverify::sim {

void Synccheck::on_violation(const ExecutionPoint& point, const ViolationEvent& event) noexcept {
  switch (event.kind) {
    case FaultKind::deadlock:
    case FaultKind::barrier_divergence:
    case FaultKind::barrier_mismatch:
    case FaultKind::invalid_barrier:
    case FaultKind::warp_divergence:
    case FaultKind::invalid_membermask:
    case FaultKind::mbarrier_misuse:
    case FaultKind::unfinished_copy:
      faults_->add(point, event);
      return;
    default:
      return;
  }
}

}  // namespace cpverify::sim
