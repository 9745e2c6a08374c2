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
#include "sim/isa/kernel_info.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/register_file.hpp"
#include "sim/isa/special_register.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/machine/checked_bytes.hpp"
#include "sim/machine/cluster.hpp"
#include "sim/machine/flow.hpp"
#include "sim/machine/fragments.hpp"
#include "sim/machine/fresh_registers.hpp"
#include "sim/machine/launch.hpp"
#include "sim/machine/warp.hpp"
#include "sim/machine/warpgroup.hpp"

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

bool is_barrier_reduction(Op op) {
  return op == Op::bar_red || op == Op::bar_red_bool || op == Op::barrier_red ||
         op == Op::barrier_red_bool;
}

std::uint32_t thread_count(const LaunchRequest& request) {
  return request.block[0] * request.block[1] * request.block[2];
}

/// Component i of a register with x, y and z, the first of which is `x`.
std::size_t component(SpecialRegister which, SpecialRegister x) {
  return static_cast<std::size_t>(which) - static_cast<std::size_t>(x);
}

std::uint32_t cluster_value(SpecialRegister which, const Cta& cta) {
  const LaunchState& launch = *cta.launch;
  const auto& extent = launch.cluster;
  if (which >= SpecialRegister::nclusterid_x) {
    const std::size_t i = component(which, SpecialRegister::nclusterid_x);
    return launch.request->grid[i] / extent[i];
  }
  if (which >= SpecialRegister::clusterid_x) {
    const std::size_t i = component(which, SpecialRegister::clusterid_x);
    return cta.id[i] / extent[i];
  }
  if (which == SpecialRegister::cluster_nctarank) return extent[0] * extent[1] * extent[2];
  if (which == SpecialRegister::cluster_ctarank) return cta.rank;
  if (which >= SpecialRegister::cluster_nctaid_x) {
    return extent[component(which, SpecialRegister::cluster_nctaid_x)];
  }
  const std::size_t i = component(which, SpecialRegister::cluster_ctaid_x);
  return cta.id[i] % extent[i];
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
    case SpecialRegister::is_explicit_cluster: {
      constexpr std::array<std::uint32_t, 3> kNone{};
      const KernelInfo& info = warp.cta->launch->code->info;
      return request.cluster != kNone || info.required_cluster != kNone ? 1 : 0;
    }
    default:
      return cluster_value(which, *warp.cta);
  }
}

/// Registers that differ from CTA to CTA.
bool is_of_cta(SpecialRegister which) {
  return (which >= SpecialRegister::ctaid_x && which <= SpecialRegister::ctaid_z) ||
         (which >= SpecialRegister::cluster_ctaid_x && which <= SpecialRegister::cluster_ctaid_z) ||
         which == SpecialRegister::cluster_ctarank ||
         (which >= SpecialRegister::clusterid_x && which <= SpecialRegister::clusterid_z);
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
  cta_.warpgroups.resize((warp_count + kGroupWarps - 1) / kGroupWarps);
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
    std::memcpy(warp.registers, image_.data(), register_bytes_);
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

/// Special registers of every warp, as they are in CTA 0; see is_of_cta().
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
    if (is_of_cta(row.which)) {
      const std::uint32_t value = special_value(row.which, 0, warp);
      std::fill(values, values + kLanes, value);
    } else {
      std::copy(source, source + kLanes, values);
    }
    source += kLanes;
  }
}

namespace {

void begin_followed_cta(Cta& cta) {
  const FlowCheckers& checkers = cta.launch->flow_checkers;
  checkers.undefined->begin_cta(cta);
  if (checkers.special_values != nullptr) checkers.special_values->begin_cta(cta);
}

}  // namespace

void CtaRunner::reset_warp(Warp& warp) {
  for (const RegisterRange& range : launch_->refreshed) {
    std::memcpy(warp.registers + range.offset, image_.data() + range.offset, range.size_bytes);
  }
  fill_specials(warp);
  const std::uint32_t first = warp.index * kLanes;
  const std::uint32_t lanes = std::min(kLanes, threads_ - first);
  warp.active = lanes == kLanes ? kFullMask : (1U << lanes) - 1;
  warp.exited = ~warp.active;
  warp.state = WarpState::ready;
  warp.next = warp.code;
  warp.stack.clear();
  if (launch_->is_independent) start_fragments(warp);
  warp.has_polled = false;
  warp.awaited = kNoIndex;
  warp.async.reset();
  warp.in_flight.clear();
  warp.has_fenced_registers = false;
  warp.cluster_arrivals = 0;
  warp.cluster_waits = 0;
  warp.register_limit = launch_->code->info.registers;
  warp.local.reset();
  warp.wants_undefined = false;
}

void CtaRunner::reset(const std::array<std::uint32_t, 3>& id, Cluster& cluster,
                      std::uint32_t rank) {
  cta_.id = id;
  cta_.cluster = &cluster;
  cta_.rank = rank;
  cta_.shared.reset();
  cta_.arrivals = {};
  cta_.mbarriers.clear();
  cta_.async = {};
  cta_.clock = 0;
  for (Warpgroup& group : cta_.warpgroups) group.reset();
  for (Warp& warp : cta_.warps) reset_warp(warp);
  begin_followed_cta(cta_);
  for (Observer* const observer : launch_->access_observers) observer->on_cta(id);
}

/// A barrier for all threads counts warps that have exited as arrived, as the hardware does.
BarrierCount count_barrier(const Cta& cta, std::uint32_t barrier) {
  std::uint32_t living = 0;
  std::uint32_t threads = kFullMask;
  BarrierCount count;
  for (const Warp& warp : cta.warps) {
    if (warp.state == WarpState::done) continue;
    living += kLanes;
    if (warp.state != WarpState::at_barrier || warp.barrier != barrier) continue;
    count.waiting += kLanes;
    threads = std::min(threads, warp.barrier_threads);
  }
  const BarrierArrivals& arrivals = cta.arrivals[barrier];
  if (arrivals.threads > 0) threads = std::min(threads, arrivals.expected);
  count.arrived = count.waiting + arrivals.threads;
  count.is_for_all = threads == kFullMask;
  count.expected = count.is_for_all ? living : threads;
  return count;
}

/// bar.red: the number of threads of the waiting warps whose predicate is true, and whether all or
/// any are.
void CtaRunner::reduce_at_barrier(std::uint32_t barrier) {
  const auto source_row = [](const Insn& insn) { return insn.r[3]; };
  std::uint32_t count = 0;
  std::uint32_t threads = 0;
  const auto for_each_reducing = [&](auto visit) {
    for (Warp& warp : cta_.warps) {
      if (warp.state != WarpState::at_barrier || warp.barrier != barrier) continue;
      const Insn& insn = *(warp.next - 1);
      if (is_barrier_reduction(insn.op)) visit(warp, insn);
    }
  };
  for_each_reducing([&](const Warp& warp, const Insn& insn) {
    const std::uint32_t lanes = ~warp.exited;
    threads += static_cast<std::uint32_t>(std::popcount(lanes));
    count += static_cast<std::uint32_t>(std::popcount(warp.predicate(source_row(insn)) & lanes));
  });
  for_each_reducing([&](const Warp& warp, const Insn& insn) {
    const std::uint32_t lanes = ~warp.exited;
    if (insn.op == Op::bar_red || insn.op == Op::barrier_red) {
      auto* const target = warp.row<std::uint32_t>(insn.r[0]);
      for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
        target[lane] = ((lanes >> lane) & 1U) != 0 ? count : target[lane];
      }
      return;
    }
    const Form& form = launch_->code->forms[static_cast<std::size_t>(&insn - warp.code)];
    const bool is_true = form.modifiers.bool_op == BoolOp::and_op ? count == threads : count > 0;
    std::uint32_t& predicate = warp.predicate(insn.r[0]);
    predicate = (predicate & ~lanes) | (is_true ? lanes : 0U);
  });
}

/// Warps that have exited take part in a barrier for all threads, as in count_barrier(). One that
/// only arrived counts as ordered up to now: what it did since may hide a race, never invent one.
void CtaRunner::notify_ordered(std::uint32_t barrier) const {
  std::uint32_t arrived = cta_.arrivals[barrier].warps;
  std::uint32_t exited = 0;
  bool is_for_all = true;
  for (const Warp& warp : cta_.warps) {
    if (warp.state == WarpState::done) {
      exited |= 1U << warp.index;
    } else if (warp.state == WarpState::at_barrier && warp.barrier == barrier) {
      arrived |= 1U << warp.index;
      is_for_all = is_for_all && warp.barrier_threads == kFullMask;
    }
  }
  const std::uint32_t ordered = is_for_all ? arrived | exited : arrived;
  for (Observer* const observer : launch_->access_observers) {
    observer->on_ordered(cta_.rank, ordered);
  };
}

void CtaRunner::open_barrier(std::uint32_t barrier) {
  if (!launch_->access_observers.empty()) notify_ordered(barrier);
  reduce_at_barrier(barrier);
  cta_.arrivals[barrier] = {};
  for (Warp& warp : cta_.warps) {
    if (warp.state != WarpState::at_barrier || warp.barrier != barrier) continue;
    warp.state = WarpState::ready;
    const ExecutionPoint point = execution_point(warp, warp.next - 1);
    for (Observer* const observer : launch_->observers) {
      observer->on_barrier(point, barrier, BarrierEvent::release);
    }
  }
}

bool CtaRunner::open_barriers() {
  bool has_opened = open_warpgroups(cta_);
  std::uint32_t in_use = 0;
  for (const Warp& warp : cta_.warps) {
    if (warp.state == WarpState::at_barrier) in_use |= 1U << warp.barrier;
  }
  for (std::uint32_t barrier = 0; barrier < kBarrierCount; ++barrier) {
    if (((in_use >> barrier) & 1U) == 0 && cta_.arrivals[barrier].threads == 0) continue;
    const BarrierCount count = count_barrier(cta_, barrier);
    if (!count.is_complete()) continue;
    has_opened = has_opened || count.waiting > 0;
    open_barrier(barrier);
  }
  return has_opened;
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
  point.rank = warp.cta->rank;
  point.block = launch.request->block;
  point.warp = warp.index;
  return point;
}

void report(Warp& warp, const Insn* insn, const ViolationEvent& event) {
  LaunchState& launch = *warp.cta->launch;
  const ExecutionPoint point = execution_point(warp, insn);
  for (Observer* const observer : launch.observers) observer->on_violation(point, event);
  if (event.kind != FaultKind::uninitialised_read && event.kind != FaultKind::unfinished_copy) {
    launch.is_aborted = true;
  }
}

}  // namespace cpverify::sim
