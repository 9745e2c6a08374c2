#include "sim/machine/cta.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <new>
#include <vector>

#include "cpverify/fault.hpp"
#include "cpverify/observer.hpp"
#include "sim/isa/code.hpp"
#include "sim/isa/insn.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/register_file.hpp"
#include "sim/isa/special_register.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/machine/checked_bytes.hpp"
#include "sim/machine/launch.hpp"
#include "sim/machine/warp.hpp"

namespace cpverify::sim {
namespace {

constexpr std::size_t kAlignBytes = 64;

template <class T>
void broadcast(std::byte* row, std::uint64_t bits) {
  const T value = static_cast<T>(bits);
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    std::memcpy(row + lane * sizeof value, &value, sizeof value);
  }
}

void broadcast(std::byte* row, RowWidth width, std::uint64_t bits) {
  switch (width) {
    case 0: {
      const auto mask = static_cast<std::uint32_t>(bits);
      std::memcpy(row, &mask, sizeof mask);
      return;
    }
    case 1:
      broadcast<std::uint8_t>(row, bits);
      return;
    case 2:
      broadcast<std::uint16_t>(row, bits);
      return;
    case 4:
      broadcast<std::uint32_t>(row, bits);
      return;
    default:
      broadcast<std::uint64_t>(row, bits);
  }
}

std::uint32_t thread_count(const LaunchRequest& request) {
  return request.block[0] * request.block[1] * request.block[2];
}

std::uint32_t special_value(SpecialRegister which, std::uint32_t lane, const Warp& warp) {
  const LaunchRequest& request = *warp.cta->launch->request;
  const std::uint32_t thread = warp.index * kLanes + lane;
  const auto& block = request.block;
  switch (which) {
    case SpecialRegister::tid_x:
      return thread % block[0];
    case SpecialRegister::tid_y:
      return thread / block[0] % block[1];
    case SpecialRegister::tid_z:
      return thread / block[0] / block[1];
    case SpecialRegister::ntid_x:
    case SpecialRegister::ntid_y:
    case SpecialRegister::ntid_z:
      return block[static_cast<std::size_t>(which) -
                   static_cast<std::size_t>(SpecialRegister::ntid_x)];
    case SpecialRegister::ctaid_x:
    case SpecialRegister::ctaid_y:
    case SpecialRegister::ctaid_z:
      return warp.cta->id[static_cast<std::size_t>(which) -
                          static_cast<std::size_t>(SpecialRegister::ctaid_x)];
    case SpecialRegister::nctaid_x:
    case SpecialRegister::nctaid_y:
    case SpecialRegister::nctaid_z:
      return request.grid[static_cast<std::size_t>(which) -
                          static_cast<std::size_t>(SpecialRegister::nctaid_x)];
    case SpecialRegister::laneid:
      return lane;
    case SpecialRegister::warpid:
      return warp.index;
    case SpecialRegister::nwarpid:
      return static_cast<std::uint32_t>(warp.cta->warps.size());
    case SpecialRegister::lanemask_eq:
      return 1U << lane;
    case SpecialRegister::lanemask_lt:
      return (1U << lane) - 1;
    case SpecialRegister::lanemask_le:
      return ((1U << lane) - 1) | (1U << lane);
    case SpecialRegister::lanemask_ge:
      return ~((1U << lane) - 1);
    case SpecialRegister::lanemask_gt:
      return ~(((1U << lane) - 1) | (1U << lane));
    case SpecialRegister::dynamic_smem_size:
      return request.shared_bytes;
  }
  return 0;
}

}  // namespace

void CtaRunner::AlignedDelete::operator()(std::byte* pointer) const noexcept {
  ::operator delete[](pointer, std::align_val_t{kAlignBytes});
}

CtaRunner::CtaRunner(LaunchState& launch)
    : launch_{&launch},
      threads_{thread_count(*launch.request)},
      register_bytes_{launch.code->registers.size_bytes()} {
  const std::size_t warp_count = (threads_ + kLanes - 1) / kLanes;
  cta_.launch = launch_;
  cta_.shared = CheckedBytes{std::size_t{launch.code->info.static_shared_bytes} +
                             launch.request->shared_bytes};
  cta_.warps.resize(warp_count);
  registers_.reset(static_cast<std::byte*>(
      ::operator new[](warp_count * register_bytes_, std::align_val_t{kAlignBytes})));
  make_image();
  for (std::size_t i = 0; i < warp_count; ++i) {
    Warp& warp = cta_.warps[i];
    warp.index = static_cast<std::uint32_t>(i);
    warp.cta = &cta_;
    warp.code = launch.code->insns.data();
    warp.wide = launch.code->wide.data();
    warp.registers = registers_.get() + i * register_bytes_;
    warp.local = CheckedBytes{std::size_t{launch.code->info.local_bytes} * kLanes};
  }
  make_specials();
}

/// Registers start as all ones: what a kernel makes of one that it has not written is the same in
/// every run, and a NaN.
void CtaRunner::make_image() {
  const RegisterFile& file = launch_->code->registers;
  image_.assign(register_bytes_, std::byte{0xFF});
  for (const ConstantRow& row : file.constants()) {
    broadcast(image_.data() + row.offset, row.width, row.bits);
  }
  for (const ParameterRow& row : file.parameters()) {
    std::uint64_t bits = 0;
    std::memcpy(&bits, launch_->request->parameters.data() + row.parameter_offset, row.width);
    broadcast(image_.data() + row.offset, row.width, bits);
  }
}

/// Special registers of every warp, as they are in CTA 0; only %ctaid changes from CTA to CTA.
void CtaRunner::make_specials() {
  const std::vector<SpecialRow>& rows = launch_->code->registers.specials();
  specials_.resize(cta_.warps.size() * rows.size() * kLanes);
  std::size_t at = 0;
  for (const Warp& warp : cta_.warps) {
    for (const SpecialRow& row : rows) {
      for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
        specials_[at++] = special_value(row.which, lane, warp);
      }
    }
  }
}

void CtaRunner::fill_specials(Warp& warp) {
  const std::vector<SpecialRow>& rows = launch_->code->registers.specials();
  const std::uint32_t* source = specials_.data() + warp.index * rows.size() * kLanes;
  for (const SpecialRow& row : rows) {
    auto* const values = warp.row<std::uint32_t>(row.offset);
    if (row.which >= SpecialRegister::ctaid_x && row.which <= SpecialRegister::ctaid_z) {
      const std::uint32_t value = special_value(row.which, 0, warp);
      std::fill(values, values + kLanes, value);
    } else {
      std::copy(source, source + kLanes, values);
    }
    source += kLanes;
  }
}

void CtaRunner::reset_warp(Warp& warp) {
  std::memcpy(warp.registers, image_.data(), register_bytes_);
  fill_specials(warp);
  const std::uint32_t first = warp.index * kLanes;
  const std::uint32_t lanes = std::min(kLanes, threads_ - first);
  warp.active = lanes == kLanes ? kFullMask : (1U << lanes) - 1;
  warp.exited = ~warp.active;
  warp.state = WarpState::ready;
  warp.next = warp.code;
  warp.stack.clear();
  warp.async.reset();
  warp.local.reset();
}

void CtaRunner::reset(const std::array<std::uint32_t, 3>& id) {
  cta_.id = id;
  cta_.shared.reset();
  for (Warp& warp : cta_.warps) reset_warp(warp);
}

/// A barrier for all threads counts warps that have exited as arrived, as the hardware does.
BarrierCount count_barrier(const Cta& cta, std::uint32_t barrier) {
  std::uint32_t living = 0;
  std::uint32_t threads = kFullMask;
  BarrierCount count;
  for (const Warp& warp : cta.warps) {
    if (warp.state == WarpState::done) continue;
    ++living;
    if (warp.state != WarpState::at_barrier || warp.barrier != barrier) continue;
    ++count.arrived;
    threads = std::min(threads, warp.barrier_threads);
  }
  count.expected = threads == kFullMask ? living : threads / kLanes;
  return count;
}

bool CtaRunner::open_barriers() {
  bool has_opened = false;
  for (std::uint32_t barrier = 0; barrier < kBarrierCount; ++barrier) {
    if (!count_barrier(cta_, barrier).is_complete()) continue;
    has_opened = true;
    for (Warp& warp : cta_.warps) {
      if (warp.state != WarpState::at_barrier || warp.barrier != barrier) continue;
      warp.state = WarpState::ready;
      const ExecutionPoint point = execution_point(warp, warp.next - 1);
      for (Observer* const observer : launch_->observers) {
        observer->on_barrier(point, barrier, BarrierEvent::release);
      }
    }
  }
  return has_opened;
}

namespace {

/// A warp's turn has ended at `insn`, null when it has stopped.
void account(Warp& warp, const Insn* insn, std::uint64_t executed, std::uint64_t threads) {
  LaunchState& launch = *warp.cta->launch;
  if (insn != nullptr) warp.next = insn;
  launch.budget_left -= executed;
  launch.warp_instructions += executed;
  launch.thread_instructions += threads;
  if (launch.budget_left > 0 || launch.is_aborted || insn == nullptr) return;
  ViolationEvent event;
  event.kind = FaultKind::deadlock;
  event.lanes = warp.active;
  event.detail = "the launch has used up its instruction budget";
  report(warp, insn, event);
}

/// Where the order of warps may matter.
bool is_point(const Insn& insn) {
  if (insn.space == Space::local || insn.space == Space::param) return false;
  const Effect effect = info(insn.op).effect;
  return effect == Effect::memory || effect == Effect::barrier || insn.op == Op::membar ||
         insn.op == Op::fence || insn.op == Op::bar_warp;
}

}  // namespace

void run_warp(Warp& warp, std::uint64_t slice) {
  const std::uint64_t limit = std::min(slice, warp.cta->launch->budget_left);
  std::uint64_t executed = 0;
  std::uint64_t threads = 0;
  const Insn* insn = warp.next;
  while (insn != nullptr && executed < limit) {
    ++executed;
    const std::uint32_t mask = warp.active & (warp.predicate(insn->guard) ^ insn->guard_flip);
    threads += static_cast<std::uint64_t>(std::popcount(mask));
    insn = mask != 0 ? insn->handler(warp, insn, mask) : insn + 1;
  }
  account(warp, insn, executed, threads);
}

void run_warp_to_point(Warp& warp, std::uint64_t slice, std::uint32_t points) {
  const std::uint64_t limit = std::min(slice, warp.cta->launch->budget_left);
  std::uint64_t executed = 0;
  std::uint64_t threads = 0;
  std::uint32_t passed = 0;
  const Insn* insn = warp.next;
  while (insn != nullptr && executed < limit) {
    if (is_point(*insn)) {
      if (passed == points) break;
      ++passed;
    }
    ++executed;
    const std::uint32_t mask = warp.active & (warp.predicate(insn->guard) ^ insn->guard_flip);
    threads += static_cast<std::uint64_t>(std::popcount(mask));
    insn = mask != 0 ? insn->handler(warp, insn, mask) : insn + 1;
  }
  account(warp, insn, executed, threads);
}

ExecutionPoint execution_point(const Warp& warp, const Insn* insn) {
  const LaunchState& launch = *warp.cta->launch;
  const Code& code = *launch.code;
  ExecutionPoint point;
  point.instruction = static_cast<std::uint32_t>(insn - warp.code);
  const SourceLine& line = code.lines[point.instruction];
  point.kernel = code.info.name;
  point.source_file = code.files[line.file];
  point.source_line = line.line;
  point.ptx_line = line.ptx_line;
  point.device = launch.device;
  point.cta = warp.cta->id;
  point.block = launch.request->block;
  point.warp = warp.index;
  return point;
}

void report(Warp& warp, const Insn* insn, const ViolationEvent& event) {
  LaunchState& launch = *warp.cta->launch;
  const ExecutionPoint point = execution_point(warp, insn);
  for (Observer* const observer : launch.observers) observer->on_violation(point, event);
  if (event.kind != FaultKind::uninitialised_read) launch.is_aborted = true;
}

}  // namespace cpverify::sim
