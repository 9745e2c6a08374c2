#include "sim/check/undefined_flow.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cpverify/fault.hpp"
#include "cpverify/observer.hpp"
#include "sim/check/register_place.hpp"
#include "sim/check/source_text.hpp"
#include "sim/check/undefined_rules.hpp"
#include "sim/isa/code.hpp"
#include "sim/isa/insn.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/machine/checked_bytes.hpp"
#include "sim/machine/cta.hpp"
#include "sim/machine/dataflow.hpp"
#include "sim/machine/flow.hpp"
#include "sim/machine/global_memory.hpp"
#include "sim/machine/register_shadow.hpp"
#include "sim/machine/warp.hpp"

namespace cpverify::sim {
namespace {

/// Beyond it a load keeps the first place that it has read from: memory stays bounded.
constexpr std::size_t kOriginsMax = 1U << 16;
constexpr std::size_t kPlacesMax = 1U << 20;

std::uint32_t undefined_lanes(const RegisterShadow& shadow, const FlowOperand& operand) {
  std::uint32_t lanes = 0;
  for (std::uint32_t part = 0; part < part_count(operand); ++part) {
    lanes |= shadow.mask(operand.slot, part);
  }
  return lanes;
}

bool is_written(const TracedAccess& traced, std::size_t lane, std::uint32_t byte) {
  return traced.access.bytes->is_written(traced.access.offsets[lane] + byte, 1);
}

/// Whether a higher lane of the same store writes the same bytes, and so wins.
bool is_overwritten(const TracedAccess& traced, std::size_t lane) {
  for (std::size_t other = lane + 1; other < kLanes; ++other) {
    const bool is_active = ((traced.access.lanes >> other) & 1U) != 0;
    if (is_active && traced.access.offsets[other] == traced.access.offsets[lane]) return true;
  }
  return false;
}

}  // namespace

void UndefinedFlow::forget_places(const CheckedBytes& bytes) {
  places_.erase(places_.lower_bound({&bytes, 0}), places_.upper_bound({&bytes, ~0ULL}));
}

void UndefinedFlow::make_room(Warp& warp) const {
  warp.undefined.reset(static_cast<std::uint32_t>(launch_->flow->row_of_slot.size()));
  for (const FlowOperand& operand : launch_->flow->undefined_at_entry) {
    if (!is_watched(operand)) continue;
    for (std::uint32_t part = 0; part < part_count(operand); ++part) {
      warp.undefined.watch(operand.slot, part);
    }
  }
}

void UndefinedFlow::begin_cta(Cta& cta) {
  forget_places(cta.shared);
  const std::vector<FlowOperand>& registers = launch_->flow->undefined_at_entry;
  for (Warp& warp : cta.warps) {
    forget_places(warp.local);
    if (warp.undefined.is_live()) warp.undefined.forget_lanes(kFullMask);
    if (registers.empty()) continue;
    if (!warp.undefined.has_room()) make_room(warp);
    for (const FlowOperand& operand : registers) {
      for (std::uint32_t part = 0; part < part_count(operand); ++part) {
        warp.undefined.set_mask(operand.slot, part, warp.active);
        for (std::size_t lane = 0; lane < kLanes; ++lane) {
          warp.undefined.set_origin(operand.slot, part, lane, 0);
        }
      }
    }
  }
}

std::uint32_t UndefinedFlow::add_origin(const Origin& origin) {
  std::pair<std::uint32_t, std::uint64_t> key{origin.instruction, origin.address};
  if (origins_.size() >= kOriginsMax) key.second = 0;
  const auto [found, is_new] =
      origin_numbers_.try_emplace(key, static_cast<std::uint32_t>(origins_.size() + 1));
  if (is_new) origins_.push_back(origin);
  return found->second;
}

std::uint32_t UndefinedFlow::load_origin(const FlowStep& step, const TracedAccess& traced,
                                         std::size_t lane, std::uint64_t offset) {
  const auto stored = places_.find({traced.access.bytes, offset});
  if (stored != places_.end()) return stored->second;
  Origin origin;
  origin.instruction = static_cast<std::uint32_t>(step.insn - step.warp->code);
  origin.space = traced.space;
  origin.size_bytes = traced.size_bytes;
  origin.address = traced.addresses[lane] + (offset - traced.access.offsets[lane]);
  origin.allocation = traced.allocation;
  return add_origin(origin);
}

std::string_view UndefinedFlow::use_of(const FlowStep& step, const FlowOperand& operand) const {
  switch (operand.role) {
    case Role::address:
      return "an address";
    case Role::guard:
      return step.flow->kind == FlowKind::control ? "the condition of a branch" : "a guard";
    case Role::consumed:
      return step.flow->kind == FlowKind::atomic ? "an operand of an atomic"
                                                 : "an input of a matrix product";
    default:
      return "an operand that says which lanes, how much or how long";
  }
}

/// A value that is only computed with may be undefined; whoever depends on it may not. One report
/// is enough: afterwards the value counts as defined.
void UndefinedFlow::check_operand(const FlowStep& step, const FlowOperand& operand) {
  const bool is_value = operand.role == Role::target || operand.role == Role::value ||
                        (operand.role == Role::guard && step.flow->kind == FlowKind::compute);
  if (is_value) return;
  RegisterShadow& shadow = step.warp->undefined;
  const std::uint32_t executing = operand.role == Role::guard ? step.warp->active : step.lanes;
  const std::uint32_t lanes = undefined_lanes(shadow, operand) & executing;
  if (lanes == 0) return;
  const auto first = static_cast<std::size_t>(std::countr_zero(lanes));
  std::uint32_t origin = 0;
  for (std::uint32_t part = part_count(operand); part-- > 0;) {
    const std::uint32_t mask = shadow.mask(operand.slot, part);
    if (((mask >> first) & 1U) != 0) origin = shadow.origin(operand.slot, part, first);
    shadow.set_mask(operand.slot, part, mask & ~lanes);
  }
  report(step, lanes, origin, use_of(step, operand));
}

void UndefinedFlow::before(const FlowStep& step) {
  Warp& warp = *step.warp;
  if (!warp.undefined.has_room()) make_room(warp);
  for (const FlowOperand& operand : step.flow->operands) check_operand(step, operand);
  result_.reset(step);
  apply_undefined_rules(step, result_);
}

void UndefinedFlow::after(const FlowStep& step) {
  Warp& warp = *step.warp;
  warp.wants_undefined = false;
  if (step.flow->kind == FlowKind::load) load(step);
  if (step.flow->kind == FlowKind::store) {
    for (const TracedAccess& traced : step.accesses) store(step, traced);
  }
  write_targets(step);
  if (info(step.insn->op).effect == Effect::exit) warp.undefined.forget_lanes(warp.exited);
}

void UndefinedFlow::load(const FlowStep& step) {
  for (const TracedAccess& traced : step.accesses) {
    for (std::uint32_t left = traced.access.lanes; left != 0; left &= left - 1) {
      load_lane(step, traced, static_cast<std::size_t>(std::countr_zero(left)));
    }
  }
}

void UndefinedFlow::load_lane(const FlowStep& step, const TracedAccess& traced, std::size_t lane) {
  const std::uint64_t offset = traced.access.offsets[lane];
  if (traced.access.bytes->is_block_written(offset, traced.size_bytes)) return;
  const std::uint32_t width = result_.target(0).width;
  for (std::uint32_t byte = 0; byte < traced.size_bytes; ++byte) {
    if (is_written(traced, lane, byte)) continue;
    const RegisterPlace place = register_place(step, lane, byte, width);
    result_.mark(place.operand, place.part, place.lane,
                 load_origin(step, traced, lane, offset + byte));
  }
}

/// Shared and local memory take "undefined" along; global memory is where others see it.
void UndefinedFlow::store(const FlowStep& step, const TracedAccess& traced) {
  RegisterShadow& shadow = step.warp->undefined;
  std::vector<const FlowOperand*> values;
  for (const FlowOperand& operand : step.flow->operands) {
    if (operand.role == Role::value) values.push_back(&operand);
  }
  std::uint32_t reported = 0;
  std::uint32_t reported_origin = 0;
  for (std::uint32_t left = traced.access.lanes; left != 0; left &= left - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(left));
    for (std::uint32_t byte = 0; byte < traced.size_bytes; ++byte) {
      const RegisterPlace place = register_place(step, lane, byte, values[0]->width);
      const std::uint32_t slot = values[place.operand]->slot;
      const std::uint64_t offset = traced.access.offsets[lane] + byte;
      if (((shadow.mask(slot, place.part) >> place.lane) & 1U) == 0) continue;
      const std::uint32_t origin = shadow.origin(slot, place.part, place.lane);
      if (traced.space == MemorySpace::global) {
        if (reported == 0) reported_origin = origin;
        reported |= 1U << lane;
      } else if (!is_overwritten(traced, lane)) {
        traced.access.bytes->forget(offset, 1);
        if (places_.size() < kPlacesMax) places_[{traced.access.bytes, offset}] = origin;
      }
    }
  }
  if (reported != 0) report(step, reported, reported_origin, "a value stored to global memory");
}

/// Lanes whose guard is undefined may hold the old value or the new one.
void UndefinedFlow::write_targets(const FlowStep& step) {
  RegisterShadow& shadow = step.warp->undefined;
  std::uint32_t doubtful = 0;
  const FlowOperand& last =
      step.flow->operands.empty() ? FlowOperand{} : step.flow->operands.back();
  if (step.flow->is_guarded) doubtful = shadow.mask(last.slot, 0) & step.warp->active;
  for (std::size_t i = 0; i < result_.target_count(); ++i) {
    const FlowOperand& target = result_.target(i);
    for (std::uint32_t part = 0; part < part_count(target); ++part) {
      const std::uint32_t fresh = result_.mask(i, part) & step.lanes;
      const std::uint32_t mask = shadow.mask(target.slot, part);
      for (std::uint32_t left = fresh; left != 0; left &= left - 1) {
        const auto lane = static_cast<std::size_t>(std::countr_zero(left));
        shadow.set_origin(target.slot, part, lane, result_.origin(i, part, lane));
      }
      for (std::uint32_t left = doubtful & ~fresh; left != 0; left &= left - 1) {
        const auto lane = static_cast<std::size_t>(std::countr_zero(left));
        shadow.set_origin(target.slot, part, lane, shadow.origin(last.slot, 0, lane));
      }
      shadow.set_mask(target.slot, part, (mask & ~step.lanes) | fresh | doubtful);
    }
  }
}

void UndefinedFlow::report(const FlowStep& step, std::uint32_t lanes, std::uint32_t origin,
                           std::string_view use) {
  const bool is_register = (origin & RegisterShadow::kOwnOrigin) != 0;
  const Origin from = is_register ? Origin{} : origins_[origin - 1];
  const std::uint32_t slot = origin & ~RegisterShadow::kOwnOrigin;
  const std::string source =
      is_register ? fmt::format("register {} has never been written",
                                launch_->code->registers.name(launch_->flow->row_of_slot[slot]))
                  : fmt::format("loaded{}", source_text(*launch_->code, from.instruction));
  const std::string detail = fmt::format("used as {}; {}", use, source);
  ViolationEvent event;
  event.kind = FaultKind::uninitialised_read;
  event.space = from.space;
  event.lanes = lanes;
  event.size_bytes = from.size_bytes;
  event.address = from.address;
  event.allocation = from.allocation;
  if (from.space == MemorySpace::global) {
    if (const Allocation* const holder = launch_->memory->find(from.address)) {
      event.allocation_bytes = holder->size_bytes;
    }
  }
  event.detail = detail;
  sim::report(*step.warp, step.insn, event);
}

}  // namespace cpverify::sim
