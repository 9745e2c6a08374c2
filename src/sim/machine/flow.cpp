#include "sim/machine/flow.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/isa/insn.hpp"
#include "sim/machine/cta.hpp"
#include "sim/machine/dataflow.hpp"
#include "sim/machine/warp.hpp"

namespace cpverify::sim {
namespace {

constexpr std::size_t kCheckersMax = 2;

/// Those that follow a warp now; null for none.
std::array<FlowChecker*, kCheckersMax> following(const Warp& warp) {
  const FlowCheckers& all = warp.cta->launch->flow_checkers;
  std::array<FlowChecker*, kCheckersMax> checkers{all.undefined, all.special_values};
  for (FlowChecker*& checker : checkers) {
    if (checker != nullptr && !checker->is_following(warp)) checker = nullptr;
  }
  return checkers;
}

/// True when the instruction reads what an active lane has never written.
bool reads_unwritten(const Warp& warp, const Dataflow& flow, std::uint32_t mask) {
  for (const FlowOperand& operand : flow.watched) {
    if (operand.role == Role::target) continue;
    const std::uint32_t lanes = operand.role == Role::guard ? warp.active : mask;
    for (std::uint32_t part = 0; part < part_count(operand); ++part) {
      if ((warp.undefined.mask(operand.slot, part) & lanes) != 0) return true;
    }
  }
  return false;
}

const Insn* watch(Warp& warp, const Insn* insn, std::uint32_t mask) {
  const Dataflow& flow = warp.cta->launch->flow->insns[static_cast<std::size_t>(insn - warp.code)];
  if (!warp.undefined.is_watched_live()) return flow.handler(warp, insn, mask);
  if (reads_unwritten(warp, flow, mask)) {
    warp.wants_undefined = true;
    warp.next = insn;
    return nullptr;
  }
  const Insn* const next = flow.handler(warp, insn, mask);
  if (warp.wants_undefined) return next;  // Refused: it has written nothing.
  for (const FlowOperand& operand : flow.watched) {
    if (operand.role != Role::target) continue;
    for (std::uint32_t part = 0; part < part_count(operand); ++part) {
      warp.undefined.set_mask(operand.slot, part, warp.undefined.mask(operand.slot, part) & ~mask);
    }
  }
  return next;
}

}  // namespace

void watch_first_uses(Code& code, const KernelFlow& flow) {
  for (std::size_t i = 0; i < code.insns.size(); ++i) {
    if (!flow.insns[i].watched.empty()) code.insns[i].handler = &watch;
  }
}

bool is_followed(const Warp& warp) noexcept {
  const FlowCheckers& all = warp.cta->launch->flow_checkers;
  return warp.undefined.is_live() || warp.wants_undefined || all.special_values != nullptr;
}

const Insn* step_followed(Warp& warp, const Insn* insn, std::uint32_t mask) {
  std::vector<TracedAccess> accesses;
  FlowStep step{&warp,
                insn,
                mask,
                &warp.cta->launch->flow->insns[static_cast<std::size_t>(insn - warp.code)],
                {}};
  const std::array<FlowChecker*, kCheckersMax> checkers = following(warp);
  for (FlowChecker* const checker : checkers) {
    if (checker != nullptr) checker->before(step);
  }
  warp.trace = &accesses;
  const Handler handler = checkers[0] != nullptr ? step.flow->handler : insn->handler;
  const Insn* const next = mask != 0 ? handler(warp, insn, mask) : insn + 1;
  warp.trace = nullptr;
  if (warp.cta->launch->is_aborted) return nullptr;
  const bool is_refused = next == nullptr && warp.wants_undefined && checkers[0] == nullptr;
  if (is_refused) return step_followed(warp, insn, mask);
  step.accesses = accesses;
  for (FlowChecker* const checker : checkers) {
    if (checker != nullptr) checker->after(step);
  }
  return next;
}

}  // namespace cpverify::sim
