#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cpverify/fault.hpp"
#include "cpverify/observer.hpp"
#include "sim/isa/insn.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/machine/access.hpp"
#include "sim/machine/async_copy.hpp"
#include "sim/machine/async_notice.hpp"
#include "sim/machine/cta.hpp"
#include "sim/machine/lanes.hpp"
#include "sim/machine/warp.hpp"

/// cp.async and its groups. Operands of cp.async: target, source, bytes written, bytes read (all
/// ones when not given).
namespace cpverify::sim {
namespace {

void report_size(Warp& warp, const Insn* insn, std::uint32_t lanes, std::uint32_t size,
                 std::uint32_t read) {
  const std::string detail = fmt::format("cp.async of {} bytes reads {} bytes", size, read);
  ViolationEvent event;
  event.kind = FaultKind::illegal_instruction;
  event.lanes = lanes;
  event.detail = detail;
  report(warp, insn, event);
}

/// Checks the source of the lanes that read and issues their copies.
bool issue_reading(Warp& warp, const Insn* insn, std::uint32_t lanes, AsyncCopies::Copy& copy) {
  const AddressOperand source{insn->r[1], 8, Space::global, insn->immediate};
  Access access;
  for (std::uint32_t left = lanes; left != 0; left &= ~access.lanes) {
    if (!begin_access(warp, insn, left, {source, {AccessKind::async_read, copy.size_bytes}},
                      access)) {
      return false;
    }
    copy.lanes = access.lanes;
    copy.source = access.bytes;
    copy.offsets = access.offsets;
    const auto first = static_cast<std::size_t>(std::countr_zero(access.lanes));
    copy.source_base = warp.row<const std::uint64_t>(source.row)[first] +
                       static_cast<std::uint64_t>(source.offset) - access.offsets[first];
    warp.async.issue(copy, warp.cta->shared);
  }
  return true;
}

/// .cg copies 16 bytes, .ca 4, 8 or 16.
template <bool is_cg>
const Insn* issue(Warp& warp, const Insn* insn, std::uint32_t mask) {
  const auto first = static_cast<std::size_t>(std::countr_zero(mask));
  AsyncCopies::Copy copy;
  copy.size_bytes = warp.row<const std::uint32_t>(insn->r[2])[first];
  const auto* const read_row = warp.row<const std::uint32_t>(insn->r[3]);
  const bool is_size_good =
      copy.size_bytes == 16 || (!is_cg && (copy.size_bytes == 4 || copy.size_bytes == 8));
  std::uint32_t readers = 0;
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    const std::uint32_t read = read_row[lane] == kFullMask ? copy.size_bytes : read_row[lane];
    copy.copied_bytes[lane] = read;
    if (((mask >> lane) & 1U) == 0) continue;
    if (!is_size_good || read > copy.size_bytes) {
      report_size(warp, insn, 1U << lane, copy.size_bytes, read);
      return nullptr;
    }
    if (read > 0) readers |= 1U << lane;
  }
  Access target;
  const AddressOperand target_address{insn->r[0], insn->address_bytes, Space::shared, insn->offset};
  if (!begin_access(warp, insn, mask, {target_address, {AccessKind::async_write, copy.size_bytes}},
                    target)) {
    return nullptr;
  }
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    copy.target[lane] = static_cast<std::uint32_t>(target.offsets[lane]);
  }
  if (!issue_reading(warp, insn, readers, copy)) return nullptr;
  if (mask != readers) {
    copy.lanes = mask & ~readers;
    copy.source = nullptr;
    warp.async.issue(copy, warp.cta->shared);
  }
  return insn + 1;
}

const Insn* commit(Warp& warp, const Insn* insn, std::uint32_t mask) {
  warp.async.commit(mask);
  return insn + 1;
}

/// Calls wait(done), where done collects the finished copies if an observer wants them.
template <class Wait>
const Insn* wait_and_notify(Warp& warp, const Insn* insn, Wait wait) {
  if (warp.cta->launch->access_observers.empty()) {
    wait(nullptr);
    return insn + 1;
  }
  std::vector<AsyncCopies::Copy> done;
  wait(&done);
  notify_completed(warp, insn, done);
  return insn + 1;
}

const Insn* wait_group(Warp& warp, const Insn* insn, std::uint32_t mask) {
  const auto first = static_cast<std::size_t>(std::countr_zero(mask));
  const std::uint32_t pending = warp.row<const std::uint32_t>(insn->r[0])[first];
  return wait_and_notify(warp, insn, [&](std::vector<AsyncCopies::Copy>* done) {
    warp.async.wait(mask, pending, warp.cta->shared, done);
  });
}

const Insn* wait_all(Warp& warp, const Insn* insn, std::uint32_t mask) {
  return wait_and_notify(warp, insn, [&](std::vector<AsyncCopies::Copy>* done) {
    warp.async.wait_all(mask, warp.cta->shared, done);
  });
}

}  // namespace

template <>
Handler select<Op::cp_async>(const Form& form) {
  if (form.modifiers.cache == CacheOp::cg) return &issue<true>;
  return form.modifiers.cache == CacheOp::ca ? &issue<false> : nullptr;
}
template <>
Handler select<Op::cp_commit>(const Form& /*form*/) {
  return &commit;
}
template <>
Handler select<Op::cp_wait>(const Form& /*form*/) {
  return &wait_group;
}
template <>
Handler select<Op::cp_wait_all>(const Form& /*form*/) {
  return &wait_all;
}

}  // namespace cpverify::sim
