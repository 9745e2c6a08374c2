#include "sim/machine/async_notice.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpverify/fault.hpp"
#include "cpverify/observer.hpp"
#include "sim/isa/insn.hpp"
#include "sim/machine/async_copy.hpp"
#include "sim/machine/checked_bytes.hpp"
#include "sim/machine/cta.hpp"
#include "sim/machine/warp.hpp"

namespace cpverify::sim {

void notify_completed(const Warp& warp, const Insn* insn,
                      const std::vector<AsyncCopies::Copy>& copies) {
  const LaunchState& launch = *warp.cta->launch;
  const ExecutionPoint point = execution_point(warp, insn);
  for (const AsyncCopies::Copy& copy : copies) {
    std::array<std::uint64_t, kLanes> addresses{};
    std::copy(copy.target.begin(), copy.target.end(), addresses.begin());
    AccessEvent target;
    target.kind = AccessKind::async_write;
    target.space = MemorySpace::shared;
    target.rank = warp.cta->rank;
    target.lanes = copy.lanes;
    target.size_bytes = copy.size_bytes;
    target.addresses = addresses;
    target.object_bytes = warp.cta->shared.size();
    for (Observer* const observer : launch.access_observers) observer->on_completed(point, target);
    if (copy.source == nullptr) continue;
    AccessEvent source = target;
    source.kind = AccessKind::async_read;
    source.space = MemorySpace::global;
    source.base = copy.source_base;
    source.object_bytes = copy.source->size();
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      addresses[lane] = copy.source_base + copy.offsets[lane];
    }
    for (Observer* const observer : launch.access_observers) observer->on_completed(point, source);
  }
}

}  // namespace cpverify::sim
