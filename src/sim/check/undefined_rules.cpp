#include "sim/check/undefined_rules.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "sim/check/register_place.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/isa/type.hpp"
#include "sim/machine/cta.hpp"
#include "sim/machine/dataflow.hpp"
#include "sim/machine/flow.hpp"
#include "sim/machine/warp.hpp"

namespace cpverify::sim {
namespace {

constexpr std::uint32_t kByteBits = 8;

std::uint64_t value_of(const Warp& warp, const FlowOperand& operand, std::size_t lane) {
  std::uint64_t value = 0;
  std::memcpy(&value, warp.registers + operand.row + lane * operand.width, operand.width);
  return value;
}

/// One instruction, its sources apart.
struct Rule {
  explicit Rule(const FlowStep& the_step, UndefinedResult& the_result)
      : step{&the_step}, result{&the_result}, shadow{&the_step.warp->undefined} {
    for (const FlowOperand& operand : the_step.flow->operands) {
      if (operand.role != Role::target && operand.role != Role::guard) sources.push_back(&operand);
    }
  }
  [[nodiscard]] const Modifiers& modifiers() const {
    const Warp& warp = *step->warp;
    return warp.cta->launch->code->forms[static_cast<std::size_t>(step->insn - warp.code)]
        .modifiers;
  }
  /// Lanes in which any byte of a source is undefined.
  [[nodiscard]] std::uint32_t undefined(const FlowOperand& source) const {
    std::uint32_t lanes = 0;
    for (std::uint32_t part = 0; part < part_count(source); ++part) {
      lanes |= shadow->mask(source.slot, part);
    }
    return lanes;
  }
  void compute() const {
    for (const FlowOperand* const source : sources) result->take_all(*source);
  }
  /// Byte by byte, from all of the sources.
  void bytewise() const {
    for (const FlowOperand* const source : sources) {
      const std::uint32_t parts = part_count(result->target(0));
      for (std::uint32_t part = 0; part < parts && part < part_count(*source); ++part) {
        result->take(0, part, *source, part);
      }
    }
  }

  const FlowStep* step;
  UndefinedResult* result;
  const RegisterShadow* shadow;
  std::vector<const FlowOperand*> sources;
};

/// Lanes in which byte `part` of a source is defined and has this value; for a predicate, 0 or 1.
std::uint32_t lanes_with(const Rule& rule, const FlowOperand& source, std::uint32_t part,
                         std::uint8_t value) {
  const Warp& warp = *rule.step->warp;
  std::uint32_t lanes = 0;
  if (source.width == 0) {
    lanes = warp.predicate(source.row) ^ (value == 0 ? kFullMask : 0U);
  } else {
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      const auto byte =
          static_cast<std::uint8_t>(value_of(warp, source, lane) >> (kByteBits * part));
      lanes |= static_cast<std::uint32_t>(byte == value) << lane;
    }
  }
  return lanes & ~rule.shadow->mask(source.slot, part);
}

/// and with 0, or with ones: the other side does not matter.
void deciding(const Rule& rule, std::uint8_t decides) {
  for (std::size_t i = 0; i < 2; ++i) {
    const FlowOperand& source = *rule.sources[i];
    const FlowOperand& other = *rule.sources[1 - i];
    for (std::uint32_t part = 0; part < part_count(source); ++part) {
      if (rule.shadow->mask(source.slot, part) == 0) continue;
      rule.result->take(0, part, source, part, ~lanes_with(rule, other, part, decides));
    }
  }
}

/// A product with a defined zero is zero.
void product(const Rule& rule) {
  for (std::size_t i = 0; i < rule.sources.size(); ++i) {
    const FlowOperand& source = *rule.sources[i];
    const std::uint32_t lanes = rule.undefined(source);
    if (lanes == 0) continue;
    std::uint32_t zero = 0;
    if (i < 2) {
      const FlowOperand& other = *rule.sources[1 - i];
      for (std::size_t lane = 0; lane < kLanes; ++lane) {
        zero |= static_cast<std::uint32_t>(value_of(*rule.step->warp, other, lane) == 0) << lane;
      }
      zero &= ~rule.undefined(other);
    }
    rule.result->take_all(source, ~zero);
  }
}

/// selp d, a, b, p.
void select_side(const Rule& rule) {
  const std::uint32_t chosen = rule.step->warp->predicate(rule.sources[2]->row);
  for (std::uint32_t part = 0; part < part_count(rule.result->target(0)); ++part) {
    rule.result->take(0, part, *rule.sources[0], part, chosen);
    rule.result->take(0, part, *rule.sources[1], part, ~chosen);
  }
  rule.result->take_all(*rule.sources[2]);
}

/// The sources one after the other make the targets one after the other.
void concatenate(const Rule& rule) {
  std::size_t target = 0;
  std::uint32_t part = 0;
  for (const FlowOperand* const source : rule.sources) {
    for (std::uint32_t from = 0; from < source->width; ++from) {
      rule.result->take(target, part, *source, from);
      if (++part == rule.result->target(target).width) {
        part = 0;
        ++target;
      }
    }
  }
}

/// Conversions of integers keep the low bytes; a sign fills up with the highest.
void convert(const Rule& rule) {
  const FlowOperand& source = *rule.sources[0];
  const std::uint32_t width = rule.result->target(0).width;
  if (rule.modifiers().is_sat) return rule.compute();
  for (std::uint32_t part = 0; part < width; ++part) {
    if (part < source.width) {
      rule.result->take(0, part, source, part);
    } else if (is_signed(source.type)) {
      rule.result->take(0, part, source, source.width - 1U);
    }
  }
}

/// prmt d, a, b, c: each nibble of a defined c names one byte of a and b.
void permute(const Rule& rule) {
  const FlowOperand& selector = *rule.sources[2];
  rule.result->take_all(selector);
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    const std::uint64_t value = value_of(*rule.step->warp, selector, lane);
    for (std::uint32_t part = 0; part < 4; ++part) {
      const auto byte = static_cast<std::uint32_t>(value >> (4 * part)) & 7U;
      rule.result->take(0, part, *rule.sources[byte / 4], byte % 4, 1U << lane);
    }
  }
}

/// The undefined bits of a lane.
std::uint64_t undefined_bits(const Rule& rule, const FlowOperand& source, std::size_t lane) {
  std::uint64_t bits = 0;
  for (std::uint32_t part = 0; part < source.width; ++part) {
    const std::uint64_t is_undefined = (rule.shadow->mask(source.slot, part) >> lane) & 1U;
    bits |= (is_undefined * 0xffU) << (kByteBits * part);
  }
  return bits;
}

/// Marks the bytes of a lane that have a bit in `bits`.
void mark_bits(const Rule& rule, const FlowOperand& source, std::size_t lane, std::uint64_t bits) {
  std::uint32_t origin = 0;
  for (std::uint32_t part = 0; part < source.width; ++part) {
    if (((rule.shadow->mask(source.slot, part) >> lane) & 1U) == 0) continue;
    origin = rule.shadow->origin(source.slot, part, lane);
    break;
  }
  for (std::uint32_t part = 0; part < rule.result->target(0).width; ++part) {
    if (((bits >> (kByteBits * part)) & 0xffU) != 0) rule.result->mark(0, part, lane, origin);
  }
}

/// Moves of bits by a defined distance: shl, shr and bfe.
void shift(const Rule& rule) {
  const FlowOperand& source = *rule.sources[0];
  const Op op = rule.step->insn->op;
  for (std::size_t i = 1; i < rule.sources.size(); ++i) rule.result->take_all(*rule.sources[i]);
  const std::uint32_t width = kByteBits * source.width;
  const bool has_sign = is_signed(source.type);
  for (std::uint32_t left = rule.undefined(source); left != 0; left &= left - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(left));
    const std::uint64_t bits = undefined_bits(rule, source, lane);
    const auto distance =
        static_cast<std::uint32_t>(value_of(*rule.step->warp, *rule.sources[1], lane));
    const std::uint32_t by = op == Op::bfe ? distance & 0xffU : distance;
    std::uint64_t moved = by >= width ? 0 : op == Op::shl ? bits << by : bits >> by;
    // What a sign fills up with comes from the top; a field of a signed type has its own.
    if (op != Op::shl && has_sign && (op == Op::bfe || (bits >> (width - 1)) != 0)) moved = ~0ULL;
    if (op == Op::bfe && !has_sign) {
      const std::uint64_t length = value_of(*rule.step->warp, *rule.sources[2], lane) & 0xffU;
      if (length < 64) moved &= (1ULL << length) - 1;
    }
    mark_bits(rule, source, lane, moved);
  }
}

/// Two halves in a register, each for itself.
void halves(const Rule& rule) {
  constexpr std::uint32_t kHalf = 2;
  for (const FlowOperand* const source : rule.sources) {
    for (std::uint32_t part = 0; part < 2 * kHalf; ++part) {
      const std::uint32_t first = part / kHalf * kHalf;
      rule.result->take(0, part, *source, first);
      rule.result->take(0, part, *source, first + 1);
    }
  }
}

/// cvt.rn.f16x2.f32 d, a, b: a becomes the upper half.
void pack_converted(const Rule& rule) {
  for (std::uint32_t part = 0; part < 4; ++part) {
    const FlowOperand& source = *rule.sources[part < 2 ? 1 : 0];
    for (std::uint32_t from = 0; from < source.width; ++from) {
      rule.result->take(0, part, source, from);
    }
  }
}

bool is_pair(const FlowOperand& operand) {
  return operand.type == Type::f16x2 || operand.type == Type::bf16x2;
}

bool is_same_register(const Rule& rule) {
  return rule.sources.size() >= 2 && rule.sources[0]->row == rule.sources[1]->row;
}

/// Rows that are the same rule under many names.
bool is_move(Op op) {
  switch (op) {
    case Op::mov:
    case Op::mov_pred:
    case Op::not_bits:
    case Op::not_pred:
    case Op::lop3:
    case Op::cvta:
    case Op::cvta_to:
    case Op::xor_bits:
    case Op::xor_pred:
      return true;
    default:
      return false;
  }
}

bool is_packing(Op op) {
  return info(op).name.starts_with("pack") || info(op).name.starts_with("unpack");
}

bool is_product(Op op) {
  return op == Op::mul_lo || op == Op::mul_wide || op == Op::mul_hi || op == Op::mad_lo ||
         op == Op::mad_wide;
}

void apply_compute(const Rule& rule) {
  const Op op = rule.step->insn->op;
  const bool is_nothing = op == Op::xor_bits || op == Op::xor_pred || op == Op::sub_int;
  if (is_nothing && is_same_register(rule)) return;
  if (is_move(op)) return rule.bytewise();
  if (is_packing(op)) return concatenate(rule);
  if (is_product(op)) return product(rule);
  switch (op) {
    case Op::and_bits:
    case Op::and_pred:
      return deciding(rule, 0);
    case Op::or_bits:
      return deciding(rule, 0xff);
    case Op::or_pred:
      return deciding(rule, 1);
    case Op::selp:
      return select_side(rule);
    case Op::cvt_int:
      return convert(rule);
    case Op::prmt:
      return permute(rule);
    case Op::shl:
    case Op::shr:
    case Op::bfe:
      return shift(rule);
    case Op::cvt_f16x2:
    case Op::cvt_bf16x2:
    case Op::cvt_half2_f32:
      return pack_converted(rule);
    default:
      break;
  }
  bool is_all_pairs =
      !rule.sources.empty() && rule.result->target_count() == 1 && is_pair(rule.result->target(0));
  for (const FlowOperand* const source : rule.sources) {
    is_all_pairs = is_all_pairs && is_pair(*source);
  }
  return is_all_pairs ? halves(rule) : rule.compute();
}

void apply_shuffle(const Rule& rule) {
  const FlowOperand& source = *rule.sources[0];
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    const std::size_t from = shuffle_source(*rule.step, lane);
    if (((rule.step->lanes >> from) & 1U) == 0) continue;
    for (std::uint32_t part = 0; part < source.width; ++part) {
      if (((rule.shadow->mask(source.slot, part) >> from) & 1U) == 0) continue;
      rule.result->mark(0, part, lane, rule.shadow->origin(source.slot, part, from));
    }
  }
}

/// Lane l holds elements 2(l%4) and 2(l%4)+1 of row l/4 of 8 by 8 halves; rows become columns.
void apply_transpose(const Rule& rule) {
  const FlowOperand& source = *rule.sources[0];
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    for (std::uint32_t part = 0; part < 4; ++part) {
      const std::uint32_t row = lane / 4;
      const std::uint32_t column = lane % 4 * 2 + part / 2;
      const std::size_t from = std::size_t{column} * 4 + row / 2;
      const std::uint32_t from_part = row % 2 * 2 + part % 2;
      if (((rule.shadow->mask(source.slot, from_part) >> from) & 1U) == 0) continue;
      rule.result->mark(0, part, lane, rule.shadow->origin(source.slot, from_part, from));
    }
  }
}

/// One undefined lane makes the result of all undefined.
void apply_vote(const Rule& rule) {
  const FlowOperand& source = *rule.sources[0];
  for (std::uint32_t part = 0; part < part_count(source); ++part) {
    const std::uint32_t lanes = rule.shadow->mask(source.slot, part) & rule.step->lanes;
    if (lanes == 0) continue;
    const std::uint32_t origin =
        rule.shadow->origin(source.slot, part, static_cast<std::size_t>(std::countr_zero(lanes)));
    for (std::size_t target = 0; target < rule.result->target_count(); ++target) {
      for (std::uint32_t to = 0; to < part_count(rule.result->target(target)); ++to) {
        for (std::size_t lane = 0; lane < kLanes; ++lane) {
          rule.result->mark(target, to, lane, origin);
        }
      }
    }
  }
}

}  // namespace

void UndefinedResult::reset(const FlowStep& step) {
  shadow_ = &step.warp->undefined;
  targets_.clear();
  for (const FlowOperand& operand : step.flow->operands) {
    if (operand.role == Role::target) targets_.push_back(&operand);
  }
  masks_.assign(targets_.size() * kRegisterBytesMax, 0);
  origins_.resize(masks_.size() * kLanes);
}

void UndefinedResult::mark(std::size_t target, std::uint32_t part, std::size_t lane,
                           std::uint32_t origin) {
  std::uint32_t& mask = masks_[target * kRegisterBytesMax + part];
  if (((mask >> lane) & 1U) != 0) return;
  mask |= 1U << lane;
  origins_[(target * kRegisterBytesMax + part) * kLanes + lane] = origin;
}

void UndefinedResult::take(std::size_t target, std::uint32_t part, const FlowOperand& source,
                           std::uint32_t from, std::uint32_t lanes) {
  for (std::uint32_t left = shadow_->mask(source.slot, from) & lanes; left != 0; left &= left - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(left));
    mark(target, part, lane, shadow_->origin(source.slot, from, lane));
  }
}

void UndefinedResult::take_all(const FlowOperand& source, std::uint32_t lanes) {
  for (std::uint32_t from = 0; from < part_count(source); ++from) {
    if ((shadow_->mask(source.slot, from) & lanes) == 0) continue;
    for (std::size_t target = 0; target < targets_.size(); ++target) {
      for (std::uint32_t part = 0; part < part_count(*targets_[target]); ++part) {
        take(target, part, source, from, lanes);
      }
    }
  }
}

void apply_undefined_rules(const FlowStep& step, UndefinedResult& result) {
  const Rule rule{step, result};
  switch (step.flow->kind) {
    case FlowKind::compute:
      return apply_compute(rule);
    case FlowKind::shuffle:
      return apply_shuffle(rule);
    case FlowKind::transpose:
      return apply_transpose(rule);
    case FlowKind::vote:
      return apply_vote(rule);
    default:
      // Loads come from memory; the others have had their inputs reported.
      return;
  }
}

}  // namespace cpverify::sim
