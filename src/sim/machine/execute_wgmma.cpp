#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "cpverify/fault.hpp"
#include "cpverify/observer.hpp"
#include "sim/isa/insn.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/machine/cta.hpp"
#include "sim/machine/lanes.hpp"
#include "sim/machine/warp.hpp"
#include "sim/machine/warpgroup.hpp"

/// wgmma and setmaxnreg: what one warp does. The rest happens when all four have come.
namespace cpverify::sim {
namespace {

void refuse(Warp& warp, const Insn* insn, std::uint32_t mask, std::string_view detail) {
  ViolationEvent event;
  event.kind = FaultKind::illegal_instruction;
  event.lanes = mask;
  event.detail = detail;
  report(warp, insn, event);
}

bool is_whole_warp(Warp& warp, const Insn* insn, std::uint32_t mask) {
  if (mask == kFullMask) return true;
  const std::string detail = fmt::format(
      "warpgroup instruction executed by lanes {:#010x} instead of the whole warp", mask);
  refuse(warp, insn, mask, detail);
  return false;
}

/// Waits for the other warps of the warpgroup.
const Insn* gather(Warp& warp, const Insn* insn, std::uint32_t mask) {
  if (!is_whole_warp(warp, insn, mask)) return nullptr;
  warp.state = WarpState::at_warpgroup;
  warp.next = insn + 1;
  return nullptr;
}

const Insn* fence(Warp& warp, const Insn* insn, std::uint32_t mask) {
  if (!is_whole_warp(warp, insn, mask)) return nullptr;
  warp.has_fenced_registers = true;
  if (!warp.cta->launch->access_observers.empty()) {
    warp.cta->warpgroups[warp.index / kGroupWarps].fence.remember(warp);
  }
  return insn + 1;
}

const Insn* commit(Warp& warp, const Insn* insn, std::uint32_t mask) {
  if (!is_whole_warp(warp, insn, mask)) return nullptr;
  commit_products(warp);
  return insn + 1;
}

const Insn* wait(Warp& warp, const Insn* insn, std::uint32_t mask) {
  if (!is_whole_warp(warp, insn, mask)) return nullptr;
  if (warp.in_flight.empty()) return insn + 1;
  wait_for_products(warp, warp.row<const std::uint32_t>(insn->r[0])[0]);
  if (!warp.in_flight.empty()) return insn + 1;
  // Ends the turn, and with it the watch over the registers.
  warp.next = insn + 1;
  return nullptr;
}

Handler select_multiply(const Form& form) {
  return find_multiply(form) != nullptr ? &gather : nullptr;
}

}  // namespace

template <>
Handler select<Op::wgmma_half>(const Form& form) {
  return select_multiply(form);
}
template <>
Handler select<Op::wgmma_half_registers>(const Form& form) {
  return select_multiply(form);
}
template <>
Handler select<Op::wgmma_half_f16>(const Form& form) {
  return select_multiply(form);
}
template <>
Handler select<Op::wgmma_half_f16_registers>(const Form& form) {
  return select_multiply(form);
}
template <>
Handler select<Op::wgmma_tf32>(const Form& form) {
  return select_multiply(form);
}
template <>
Handler select<Op::wgmma_tf32_registers>(const Form& form) {
  return select_multiply(form);
}
template <>
Handler select<Op::wgmma_f8>(const Form& form) {
  return select_multiply(form);
}
template <>
Handler select<Op::wgmma_f8_registers>(const Form& form) {
  return select_multiply(form);
}
template <>
Handler select<Op::wgmma_f8_f16>(const Form& form) {
  return select_multiply(form);
}
template <>
Handler select<Op::wgmma_f8_f16_registers>(const Form& form) {
  return select_multiply(form);
}
template <>
Handler select<Op::wgmma_int8>(const Form& form) {
  return select_multiply(form);
}
template <>
Handler select<Op::wgmma_int8_registers>(const Form& form) {
  return select_multiply(form);
}
template <>
Handler select<Op::set_registers_inc>(const Form& /*form*/) {
  return &gather;
}
template <>
Handler select<Op::set_registers_dec>(const Form& /*form*/) {
  return &gather;
}
template <>
Handler select<Op::wgmma_fence>(const Form& /*form*/) {
  return &fence;
}
template <>
Handler select<Op::wgmma_commit>(const Form& /*form*/) {
  return &commit;
}
template <>
Handler select<Op::wgmma_wait>(const Form& /*form*/) {
  return &wait;
}

}  // namespace cpverify::sim
