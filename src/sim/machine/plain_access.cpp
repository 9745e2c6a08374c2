#include "sim/machine/plain_access.hpp"

#include "cpverify/observer.hpp"
#include "sim/machine/cta.hpp"
#include "sim/machine/launch.hpp"
#include "sim/machine/warp.hpp"

namespace cpverify::sim {

bool notify_plain(const Warp& warp, const PlainAccessEvent& event) noexcept {
  bool is_enough = true;
  for (Observer* const observer : warp.cta->launch->access_observers) {
    is_enough = observer->on_plain_access(event) && is_enough;
  }
  return is_enough;
}

bool notify_rows(const Warp& warp, const PlainRowsEvent& event) noexcept {
  bool is_enough = true;
  for (Observer* const observer : warp.cta->launch->access_observers) {
    is_enough = observer->on_plain_rows(event) && is_enough;
  }
  return is_enough;
}

}  // namespace cpverify::sim
