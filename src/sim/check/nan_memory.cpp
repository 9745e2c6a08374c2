#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cpverify/fault.hpp"
#include "cpverify/observer.hpp"
#include "sim/check/nan_flow.hpp"
#include "sim/check/register_place.hpp"
#include "sim/check/source_text.hpp"
#include "sim/check/special_values.hpp"
#include "sim/isa/type.hpp"
#include "sim/machine/cta.hpp"
#include "sim/machine/dataflow.hpp"
#include "sim/machine/flow.hpp"
#include "sim/machine/register_shadow.hpp"
#include "sim/machine/warp.hpp"

/// The part of nancheck that knows memory: where marked values are stored, and loaded again.
namespace cpverify::sim {
namespace {

constexpr std::uint32_t kHalfBytes = 2;
constexpr std::uint32_t kWordBytes = 4;
constexpr std::uint32_t kDoubleBytes = 8;

/// A half of memory and the larger units that it lies in. Nobody knows which float, if any, is
/// there.
struct Unit {
  std::uint64_t half = 0;
  std::uint64_t word = 0;
  std::uint32_t width = kWordBytes;
};

Unit unit_at(std::uint64_t bits, std::uint32_t width, std::uint32_t at) {
  return {(bits >> (8 * at)) & 0xffffU,
          (bits >> (8 * (at / kWordBytes * kWordBytes))) & 0xffffffffU, width};
}

template <class Test>
bool is_any(const Unit& unit, Test test) {
  return test(classify(Type::bf16, unit.half)) || test(classify(Type::f16, unit.half)) ||
         (unit.width >= kWordBytes && test(classify(Type::f32, unit.word)));
}

bool is_special(const Unit& unit) {
  return is_any(unit, [](FloatClass kind) { return kind != FloatClass::finite; });
}

bool is_nan(const Unit& unit) {
  return is_any(unit, [](FloatClass kind) { return kind == FloatClass::nan; });
}

std::uint64_t register_bits(const Warp& warp, const FlowOperand& operand, std::size_t lane) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, warp.registers + operand.row + lane * operand.width, operand.width);
  return bits;
}

/// Registers that a load writes, or that a store or atomic puts into memory.
std::vector<const FlowOperand*> memory_registers(const FlowStep& step) {
  const Role role = step.flow->kind == FlowKind::load    ? Role::target
                    : step.flow->kind == FlowKind::store ? Role::value
                                                         : Role::consumed;
  std::vector<const FlowOperand*> registers;
  for (const FlowOperand& operand : step.flow->operands) {
    if (operand.role == role && operand.width > 0) registers.push_back(&operand);
  }
  return registers;
}

/// Both halves of a double are looked at as one.
bool is_special_double(const FlowOperand& operand, std::uint64_t bits) {
  return operand.width == kDoubleBytes && classify(Type::f64, bits) != FloatClass::finite;
}

}  // namespace

/// A NaN that was there when the kernel came. One for each load and place.
std::uint32_t NanFlow::read_node(const FlowStep& step, const TracedAccess& traced, std::size_t lane,
                                 std::uint32_t byte) {
  SpecialOrigin origin;
  origin.fault = make_fault(step, lane);
  origin.fault.kind = FaultKind::nan_read;
  origin.fault.space = traced.space;
  origin.fault.address = traced.addresses[lane] + byte;
  origin.fault.size_bytes = traced.size_bytes;
  origin.fault.allocation = traced.allocation;
  if (traced.allocation != 0) origin.fault.allocation_bytes = traced.access.bytes->size();
  origin.fault.detail = "a NaN that no kernel has made, and that is computed with";
  return origins_.add(static_cast<std::uint32_t>(step.insn - step.warp->code), origin);
}

/// The origin of a half of memory; 0 when nothing is known of it.
std::uint32_t NanFlow::memory_node(const TracedAccess& traced, std::size_t lane,
                                   std::uint32_t byte) {
  const auto found = near_.find(
      {traced.access.bytes, traced.access.offsets[lane] / kHalfBytes + byte / kHalfBytes});
  if (found != near_.end()) return found->second;
  if (traced.space != MemorySpace::global) return 0;
  const SpecialValueMemory::Pointer known = memory_->find(traced.addresses[lane] + byte);
  return known == nullptr ? 0 : origins_.import(known);
}

void NanFlow::load(const FlowStep& step) {
  const std::vector<const FlowOperand*> targets = memory_registers(step);
  for (const FlowOperand* const target : targets) {
    marks_.push_back({target, 0, 0, {}});
    marks_.push_back({target, 1, 0, {}});
  }
  for (const TracedAccess& traced : step.accesses) {
    for (std::uint32_t left = traced.access.lanes; left != 0; left &= left - 1) {
      load_lane(step, traced, targets, static_cast<std::size_t>(std::countr_zero(left)));
    }
  }
  std::erase_if(marks_, [](const Mark& mark) { return mark.lanes == 0; });
}

void NanFlow::load_lane(const FlowStep& step, const TracedAccess& traced,
                        const std::vector<const FlowOperand*>& targets, std::size_t lane) {
  const std::uint32_t width = targets[0]->width;
  for (std::uint32_t byte = 0; byte < traced.size_bytes; byte += kHalfBytes) {
    const RegisterPlace place = register_place(step, lane, byte, width);
    const FlowOperand& target = *targets[place.operand];
    const std::uint64_t bits = register_bits(*step.warp, target, place.lane);
    const Unit unit = unit_at(bits, width, place.part);
    if (!is_special(unit) && !is_special_double(target, bits)) continue;
    Mark& mark = marks_[2 * place.operand + place.part / kWordBytes];
    if (((mark.lanes >> place.lane) & 1U) != 0) continue;
    std::uint32_t node = memory_node(traced, lane, byte);
    if (node == 0 && is_nan(unit)) node = read_node(step, traced, lane, byte);
    if (node == 0) continue;
    mark.lanes |= 1U << place.lane;
    mark.nodes[place.lane] = node;
  }
}

void NanFlow::remember(const TracedAccess& traced, std::size_t lane, std::uint32_t byte,
                       std::uint32_t node) {
  const std::pair place{static_cast<const CheckedBytes*>(traced.access.bytes),
                        traced.access.offsets[lane] / kHalfBytes + byte / kHalfBytes};
  if (node == 0) {
    near_.erase(place);
  } else {
    near_[place] = node;
  }
  if (traced.space != MemorySpace::global) return;
  const std::uint64_t address = traced.addresses[lane] + byte;
  if (node == 0) {
    memory_->forget(address, kHalfBytes);
  } else {
    memory_->set(address, origins_.share(node));
  }
}

void NanFlow::store(const FlowStep& step, const TracedAccess& traced) {
  const RegisterShadow& shadow = step.warp->special_values;
  if (!shadow.is_live() && near_.empty() && memory_->is_empty()) return;
  const std::vector<const FlowOperand*> values = memory_registers(step);
  if (values.empty()) return;
  for (std::uint32_t left = traced.access.lanes; left != 0; left &= left - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(left));
    std::uint32_t reported = 0;
    for (std::uint32_t byte = 0; byte < traced.size_bytes; byte += kHalfBytes) {
      const RegisterPlace place = register_place(step, lane, byte, values[0]->width);
      const FlowOperand& value = *values[place.operand];
      const std::uint64_t bits = register_bits(*step.warp, value, place.lane);
      const bool is_marked =
          ((shadow.mask(value.slot, place.part / kWordBytes) >> place.lane) & 1U) != 0 &&
          (is_special(unit_at(bits, value.width, place.part)) || is_special_double(value, bits));
      const std::uint32_t node =
          is_marked ? shadow.origin(value.slot, place.part / kWordBytes, place.lane) : 0;
      remember(traced, lane, byte, node);
      if (node == 0 || node == reported || traced.space != MemorySpace::global) continue;
      reported = node;
      report(step, traced, lane, byte, node);
    }
  }
}

/// cp.async brings what is in global memory to shared memory; only loads see it there.
void NanFlow::copy_asynchronously(const FlowStep& step) {
  const TracedAccess* target = nullptr;
  for (const TracedAccess& traced : step.accesses) {
    if (traced.kind == AccessKind::async_write) target = &traced;
  }
  if (target == nullptr) return;
  for (const TracedAccess& traced : step.accesses) {
    if (traced.kind != AccessKind::async_read || traced.size_bytes != target->size_bytes) continue;
    for (std::uint32_t left = traced.access.lanes; left != 0; left &= left - 1) {
      const auto lane = static_cast<std::size_t>(std::countr_zero(left));
      for (std::uint32_t byte = 0; byte < traced.size_bytes; byte += kHalfBytes) {
        std::uint64_t word = 0;
        const std::uint64_t offset = traced.access.offsets[lane] + byte / kWordBytes * kWordBytes;
        std::memcpy(&word, traced.access.bytes->data() + offset, kWordBytes);
        const Unit unit = unit_at(word, kWordBytes, byte % kWordBytes);
        std::uint32_t node = is_special(unit) ? memory_node(traced, lane, byte) : 0;
        if (node == 0 && is_nan(unit)) node = read_node(step, traced, lane, byte);
        remember(*target, lane, byte, node);
      }
    }
  }
}

void NanFlow::report(const FlowStep& step, const TracedAccess& traced, std::size_t lane,
                     std::uint32_t byte, std::uint32_t node) {
  const SpecialOrigin& origin = origins_.origin(node);
  const bool is_input = origin.fault.kind == FaultKind::nan_read;
  if (!origin.is_reported || (is_input && !origins_.is_computed(node))) return;
  const auto [found, is_new] = fault_of_.try_emplace(
      std::tuple{origin.fault.kernel, origin.fault.ptx_line, origin.fault.kind}, faults_.size());
  if (!is_new) {
    ++faults_[found->second].count;
    return;
  }
  Fault fault = origin.fault;
  const std::uint64_t address = traced.addresses[lane] + byte;
  if (!is_input) {
    fault.space = traced.space;
    fault.address = address;
    fault.size_bytes = traced.size_bytes;
    fault.allocation = traced.allocation;
    fault.allocation_bytes = traced.access.bytes->size();
  }
  const auto instruction = static_cast<std::uint32_t>(step.insn - step.warp->code);
  const std::string& kernel = launch_->code->info.name;
  fault.detail += fmt::format("{}; stored{}{}", origins_.path_text(node),
                              kernel == fault.kernel ? "" : fmt::format(" by '{}'", kernel),
                              source_text(*launch_->code, instruction));
  faults_.push_back(fault);
}

}  // namespace cpverify::sim
