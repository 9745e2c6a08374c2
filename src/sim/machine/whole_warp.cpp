#include "sim/machine/whole_warp.hpp"

#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "cpverify/fault.hpp"
#include "cpverify/observer.hpp"
#include "sim/isa/insn.hpp"
#include "sim/machine/cta.hpp"
#include "sim/machine/warp.hpp"

namespace cpverify::sim {

bool is_whole_warp(Warp& warp, const Insn* insn, std::uint32_t mask) {
  if (mask == kFullMask) return true;
  const std::string detail =
      fmt::format("matrix instruction executed by lanes {:#010x} instead of the whole warp", mask);
  ViolationEvent event;
  event.kind = FaultKind::warp_divergence;
  event.lanes = mask;
  event.detail = detail;
  report(warp, insn, event);
  return false;
}

}  // namespace cpverify::sim
