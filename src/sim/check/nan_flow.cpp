#include "sim/check/nan_flow.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "cpverify/fault.hpp"
#include "sim/check/fault_table.hpp"
#include "sim/check/register_place.hpp"
#include "sim/check/special_values.hpp"
#include "sim/isa/insn.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/type.hpp"
#include "sim/machine/checked_bytes.hpp"
#include "sim/machine/cta.hpp"
#include "sim/machine/dataflow.hpp"
#include "sim/machine/flow.hpp"
#include "sim/machine/warp.hpp"

namespace cpverify::sim {
namespace {

constexpr std::uint32_t kWordBytes = 4;

std::uint64_t bits_of(const Warp& warp, const FlowOperand& operand, std::size_t lane) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, warp.registers + operand.row + lane * operand.width, operand.width);
  return bits;
}

/// Words of a register that can be marked.
std::uint32_t word_count(const FlowOperand& operand) {
  return operand.width == 8 ? 2 : 1;
}

/// Instructions that leave the bits of a float alone, or put them elsewhere.
bool is_move(Op op) {
  switch (op) {
    case Op::mov:
    case Op::selp:
    case Op::prmt:
    case Op::and_bits:
    case Op::or_bits:
    case Op::xor_bits:
    case Op::not_bits:
    case Op::lop3:
    case Op::shl:
    case Op::shr:
    case Op::shf:
    case Op::bfe:
    case Op::bfi:
    case Op::cvt_int:
    case Op::shfl:
    case Op::movmatrix:
      return true;
    default:
      return info(op).name.starts_with("pack") || info(op).name.starts_with("unpack");
  }
}

/// The floats that a matrix product multiplies; none for integers and floats of 8 bits.
Type factor_type(Op op) {
  const std::string_view name = info(op).name;
  if (name.starts_with("mma_bf16")) return Type::bf16;
  if (name.starts_with("mma_f16")) return Type::f16;
  if (name.starts_with("mma_tf32")) return Type::f32;
  return Type::none;
}

/// The sums of a matrix product: two halves in a register that is typed b32.
FloatShape sum_shape(const FlowStep& step, const FlowOperand& target) {
  if (step.flow->kind == FlowKind::matrix && factor_type(step.insn->op) == Type::f16 &&
      target.type == Type::b32) {
    return {Type::f16, 2};
  }
  return float_shape(target.type);
}

/// A wgmma: its sums are there when it is waited for, and its factors are not in registers.
bool is_delayed(Op op) {
  return info(op).name.starts_with("wgmma");
}

std::uint64_t element_bits(std::uint64_t bits, Type element, std::uint32_t index) {
  const std::uint32_t width = size_bytes(element);
  return width == 8 ? bits : (bits >> (8 * width * index)) & ((1ULL << (8 * width)) - 1);
}

/// Registers of a matrix product that are written: targets come first.
std::size_t sum_count(const FlowStep& step) {
  return static_cast<std::size_t>(
      std::count_if(step.flow->operands.begin(), step.flow->operands.end(),
                    [](const FlowOperand& operand) { return operand.role == Role::target; }));
}

bool has_float_target(const FlowStep& step) {
  return std::any_of(step.flow->operands.begin(), step.flow->operands.end(),
                     [&step](const FlowOperand& operand) {
                       return operand.role == Role::target && sum_shape(step, operand).count > 0;
                     });
}

std::string_view word_of(Op op) {
  const std::string_view syntax = info(op).syntax;
  return syntax.substr(0, syntax.find_first_of("{./"));
}

/// The lanes whose target is this source, in this order of sources.
std::uint32_t moved_lanes(const FlowStep& step, std::size_t nth) {
  if (step.insn->op != Op::selp) return step.lanes;
  const std::uint32_t chosen = step.warp->predicate(step.insn->r[3]) & step.lanes;
  return nth == 0 ? chosen : step.lanes & ~chosen;
}

/// The lane that a lane's value comes from.
std::size_t source_lane(const FlowStep& step, std::size_t lane) {
  return step.flow->kind == FlowKind::shuffle ? shuffle_source(step, lane) : lane;
}

}  // namespace

NanFlow::NanFlow(LaunchState& launch, SpecialValueMemory& memory)
    : launch_{&launch}, memory_{&memory}, origins_{*launch.code} {}

void NanFlow::begin_cta(Cta& cta) {
  const auto forget = [this](const CheckedBytes& bytes) {
    near_.erase(near_.lower_bound({&bytes, 0}), near_.upper_bound({&bytes, ~0ULL}));
  };
  forget(cta.shared);
  for (Warp& warp : cta.warps) {
    forget(warp.local);
    if (!warp.special_values.has_room()) {
      warp.special_values.reset(static_cast<std::uint32_t>(launch_->flow->row_of_slot.size()));
    } else if (warp.special_values.is_live()) {
      warp.special_values.forget_lanes(kFullMask);
    }
  }
}

void NanFlow::before(const FlowStep& step) {
  sources_.clear();
  values_.clear();
  marks_.clear();
  if (is_move(step.insn->op)) {
    if (step.warp->special_values.is_live()) move(step);
    return;
  }
  const bool is_computing =
      step.flow->kind == FlowKind::compute || step.flow->kind == FlowKind::matrix;
  if (!is_computing || is_delayed(step.insn->op) || !has_float_target(step)) return;
  for (const FlowOperand& operand : step.flow->operands) {
    if (operand.role == Role::target || operand.role == Role::guard) continue;
    sources_.push_back(&operand);
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      values_.push_back(bits_of(*step.warp, operand, lane));
    }
  }
}

std::uint64_t NanFlow::input_bits(std::size_t source, std::size_t lane) const {
  return values_[source * kLanes + lane];
}

void NanFlow::add_input(const FlowStep& step, std::size_t source, std::size_t lane,
                        std::uint32_t element, Type type) {
  const FlowOperand& operand = *sources_[source];
  Input input{&operand, lane, element, FloatClass::finite, 0};
  input.kind = classify(type, element_bits(input_bits(source, lane), type, element));
  if (input.kind == FloatClass::finite) return;
  const RegisterShadow& shadow = step.warp->special_values;
  const std::uint32_t part = size_bytes(type) * element / kWordBytes;
  if (((shadow.mask(operand.slot, part) >> lane) & 1U) != 0) {
    input.node = shadow.origin(operand.slot, part, lane);
    // Loads do not know the format: the upper half of an infinity in f32 is a NaN in f16.
    if (input.kind != FloatClass::nan &&
        origins_.origin(input.node).fault.kind == FaultKind::nan_read) {
      input.node = 0;
    }
  }
  inputs_.push_back(input);
}

/// The NaNs and infinities that one element of a lane's result depends on.
void NanFlow::find_inputs(const FlowStep& step, const FlowOperand& target, std::size_t lane,
                          std::uint32_t element) {
  const FloatShape result = float_shape(target.type);
  const bool is_packing = result.count == 2 && info(step.insn->op).name.starts_with("cvt_");
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    const FloatShape shape = float_shape(sources_[i]->type);
    // cvt.rn.f16x2.f32 d, a, b: a becomes the upper half.
    if (is_packing && shape.count == 1 && i == element) continue;
    for (std::uint32_t e = 0; e < shape.count; ++e) {
      if (shape.count == result.count && e != element) continue;
      add_input(step, i, lane, e, shape.element);
    }
  }
}

/// Row r of A lies in lanes 4(r%8) to 4(r%8)+3, in the registers whose number is odd for r >= 8;
/// column n of B in lanes 4n to 4n+3; a sum beside its result. Source: PTX ISA, mma fragments.
void NanFlow::find_product_inputs(const FlowStep& step, std::size_t target, std::size_t lane,
                                  std::uint32_t element) {
  const Type type = factor_type(step.insn->op);
  const FlowOperand& operand = step.flow->operands[target];
  const FloatShape sum = sum_shape(step, operand);
  const std::size_t sums = sum_count(step);
  const std::size_t b_count = (sources_.size() - sums) / 3;
  const std::size_t a_count = 2 * b_count;
  add_input(step, a_count + b_count + target, lane, element, sum.element);
  if (type == Type::none) return;
  const std::uint32_t elements = type == Type::f32 ? 1 : 2;
  const std::size_t upper = sum.count == 2 ? target : target / 2;
  const std::size_t column = lane % 4 * 2 + (sum.count == 2 ? element : target % 2);
  for (std::size_t near = 0; near < 4; ++near) {
    for (std::uint32_t e = 0; e < elements; ++e) {
      for (std::size_t i = upper; i < a_count; i += 2) {
        add_input(step, i, lane / 4 * 4 + near, e, type);
      }
      for (std::size_t i = 0; i < b_count; ++i) {
        add_input(step, a_count + i, column * 4 + near, e, type);
      }
    }
  }
}

Fault NanFlow::make_fault(const FlowStep& step, std::size_t lane) {
  return fault_at(execution_point(*step.warp, step.insn), static_cast<std::uint32_t>(lane));
}

/// The operands a, b, c of the element that inputs_ begins with; of a matrix product the sum only.
std::string NanFlow::inputs_text(const FlowStep& step) const {
  const std::size_t lane = inputs_.front().lane;
  if (step.flow->kind == FlowKind::matrix) {
    const FlowOperand& target = *inputs_.front().operand;
    const auto number = static_cast<std::size_t>(&target - step.flow->operands.data());
    const Type type = sum_shape(step, target).element;
    const std::uint64_t bits = input_bits(sources_.size() - sum_count(step) + number, lane);
    return fmt::format("products and c = {}",
                       float_text(type, element_bits(bits, type, inputs_.front().element)));
  }
  std::string text;
  char letter = 'a';
  for (std::size_t i = 0; i < sources_.size(); ++i) {
    const FloatShape shape = float_shape(sources_[i]->type);
    const std::uint32_t element = shape.count == 2 ? inputs_.front().element : 0;
    const std::uint64_t bits = input_bits(i, lane);
    text += fmt::format("{}{} = ", text.empty() ? "" : ", ", letter++);
    text += shape.count > 0 ? float_text(shape.element, element_bits(bits, shape.element, element))
                            : fmt::format("{:#x}", bits);
  }
  return text;
}

/// inputs_ begins with the result, so that lane and element are known.
std::uint32_t NanFlow::made_here(const FlowStep& step, std::size_t lane, FloatClass result) {
  const char* const name = result == FloatClass::nan                 ? "NaN"
                           : result == FloatClass::positive_infinity ? "+inf"
                                                                     : "-inf";
  SpecialOrigin origin;
  origin.fault = make_fault(step, lane);
  origin.fault.kind =
      result == FloatClass::nan ? FaultKind::nan_produced : FaultKind::infinity_produced;
  origin.is_reported = result != FloatClass::negative_infinity;
  origin.fault.detail =
      fmt::format("{} of {} is {}", word_of(step.insn->op), inputs_text(step), name);
  for (std::size_t i = 1; i < inputs_.size(); ++i) {
    const Input& input = inputs_[i];
    if (input.kind == FloatClass::finite || input.node == 0) continue;
    const Fault& earlier = origins_.origin(input.node).fault;
    origin.fault.detail += fmt::format(", with an infinity since {}:{}, PTX line {}",
                                       earlier.source_file, earlier.source_line, earlier.ptx_line);
    break;
  }
  return origins_.add(static_cast<std::uint32_t>(step.insn - step.warp->code), origin);
}

/// Where the result of a lane, a NaN or an infinity, comes from; 0 for an infinity that is meant.
std::uint32_t NanFlow::node_of(const FlowStep& step, std::size_t lane, FloatClass result) {
  const auto instruction = static_cast<std::uint32_t>(step.insn - step.warp->code);
  const bool is_nan = result == FloatClass::nan;
  bool is_given = false;
  for (std::size_t i = 1; i < inputs_.size(); ++i) {
    const Input& input = inputs_[i];
    if ((input.kind == FloatClass::nan) != is_nan) continue;
    if (input.node != 0) return origins_.extend(input.node, instruction);
    is_given = true;
  }
  if (is_given && !is_nan) return 0;
  if (is_given) {
    SpecialOrigin origin;
    origin.fault = make_fault(step, lane);
    origin.fault.kind = FaultKind::nan_read;
    origin.fault.space = MemorySpace::registers;
    origin.fault.detail = "a NaN operand that no instruction has made of numbers";
    return origins_.extend(origins_.add(kNoIndex, origin), instruction);
  }
  for (std::size_t i = 1; i < inputs_.size(); ++i) {
    const Input& input = inputs_[i];
    if (input.kind != FloatClass::finite && input.node != 0 &&
        origins_.origin(input.node).is_reported) {
      return origins_.extend(input.node, instruction);
    }
  }
  return made_here(step, lane, result);
}

/// The origin of a lane's result, when it is special and not meant to be.
std::uint32_t NanFlow::result_node(const FlowStep& step, std::size_t target, std::size_t lane) {
  const FlowOperand& operand = step.flow->operands[target];
  const FloatShape shape = sum_shape(step, operand);
  const std::uint64_t bits = bits_of(*step.warp, operand, lane);
  std::uint32_t node = 0;
  for (std::uint32_t element = 0; element < shape.count; ++element) {
    const FloatClass result = classify(shape.element, element_bits(bits, shape.element, element));
    if (result == FloatClass::finite) continue;
    inputs_.assign(1, {&operand, lane, element, FloatClass::finite, 0});
    if (step.flow->kind == FlowKind::matrix) {
      find_product_inputs(step, target, lane, element);
    } else {
      find_inputs(step, operand, lane, element);
    }
    const std::uint32_t found = node_of(step, lane, result);
    if (node == 0) node = found;
  }
  return node;
}

void NanFlow::compute(const FlowStep& step) {
  for (std::size_t t = 0; t < step.flow->operands.size(); ++t) {
    const FlowOperand& target = step.flow->operands[t];
    if (target.role != Role::target || sum_shape(step, target).count == 0) continue;
    Mark mark{&target, 0, 0, {}};
    for (std::uint32_t left = step.lanes; left != 0; left &= left - 1) {
      const auto lane = static_cast<std::size_t>(std::countr_zero(left));
      mark.nodes[lane] = result_node(step, t, lane);
      if (mark.nodes[lane] != 0) mark.lanes |= 1U << lane;
    }
    if (mark.lanes == 0) continue;
    marks_.push_back(mark);
    mark.part = 1;
    if (word_count(target) == 2) marks_.push_back(mark);
  }
}

void NanFlow::take_marks(const FlowStep& step, const FlowOperand& source, std::uint32_t from,
                         std::uint32_t lanes, Mark& mark) const {
  const RegisterShadow& shadow = step.warp->special_values;
  const std::uint32_t marked = shadow.mask(source.slot, from);
  if (marked == 0) return;
  for (std::uint32_t left = lanes & ~mark.lanes; left != 0; left &= left - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(left));
    std::size_t there = source_lane(step, lane);
    // Halves change lanes when a matrix is transposed; any of its marks stands for all.
    if (step.flow->kind == FlowKind::transpose) {
      there = static_cast<std::size_t>(std::countr_zero(marked));
    }
    if (((marked >> there) & 1U) == 0) continue;
    mark.lanes |= 1U << lane;
    mark.nodes[lane] = shadow.origin(source.slot, from, there);
  }
}

/// A word of the target takes over the mark of the word of the source that becomes it; where that
/// is not clear, of any: what is stored is looked at again.
void NanFlow::move(const FlowStep& step) {
  for (const FlowOperand& target : step.flow->operands) {
    if (target.role != Role::target || target.width == 0) continue;
    for (std::uint32_t part = 0; part < word_count(target); ++part) {
      Mark mark{&target, part, 0, {}};
      std::size_t nth = 0;
      for (const FlowOperand& source : step.flow->operands) {
        if (source.role != Role::value || source.width == 0) continue;
        const std::size_t number = nth++;
        if (step.insn->op == Op::pack_b64 && number != part) continue;
        for (std::uint32_t from = 0; from < word_count(source); ++from) {
          if (word_count(source) == word_count(target) && from != part) continue;
          take_marks(step, source, from, moved_lanes(step, number), mark);
        }
      }
      marks_.push_back(mark);
    }
  }
}

void NanFlow::write_marks(const FlowStep& step) {
  RegisterShadow& shadow = step.warp->special_values;
  if (shadow.is_live()) {
    for (const FlowOperand& target : step.flow->operands) {
      if (target.role != Role::target || target.width == 0) continue;
      for (std::uint32_t part = 0; part < word_count(target); ++part) {
        shadow.set_mask(target.slot, part, shadow.mask(target.slot, part) & ~step.lanes);
      }
    }
  }
  for (const Mark& mark : marks_) {
    const std::uint32_t lanes = mark.lanes & step.lanes;
    for (std::uint32_t left = lanes; left != 0; left &= left - 1) {
      const auto lane = static_cast<std::size_t>(std::countr_zero(left));
      shadow.set_origin(mark.target->slot, mark.part, lane, mark.nodes[lane]);
    }
    shadow.set_mask(mark.target->slot, mark.part,
                    shadow.mask(mark.target->slot, mark.part) | lanes);
  }
}

void NanFlow::after(const FlowStep& step) {
  // Its registers change when it is computed.
  if (is_delayed(step.insn->op)) return;
  switch (step.flow->kind) {
    case FlowKind::compute:
    case FlowKind::matrix:
      if (!is_move(step.insn->op)) compute(step);
      break;
    case FlowKind::load:
      load(step);
      break;
    case FlowKind::store:
    case FlowKind::atomic:
      for (const TracedAccess& traced : step.accesses) store(step, traced);
      break;
    case FlowKind::copy:
      copy_asynchronously(step);
      break;
    default:
      break;
  }
  write_marks(step);
}

}  // namespace cpverify::sim
