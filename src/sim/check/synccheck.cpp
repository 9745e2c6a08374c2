#include "sim/check/synccheck.hpp"

#include "cpverify/fault.hpp"
#include "cpverify/observer.hpp"

namespace cpverify::sim {

void Synccheck::on_violation(const ExecutionPoint& point, const ViolationEvent& event) noexcept {
  if (is_of_synchronisation(event.kind)) faults_->add(point, event);
}

}  // namespace cpverify::sim
