#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

#include <fmt/format.h>

#include "cpverify/fault.hpp"
#include "numerics/float32.hpp"
#include "numerics/float8.hpp"
#include "sim/check/fault_table.hpp"
#include "sim/check/nan_flow.hpp"
#include "sim/check/special_values.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/isa/type.hpp"
#include "sim/machine/cta.hpp"
#include "sim/machine/dataflow.hpp"
#include "sim/machine/register_shadow.hpp"
#include "sim/machine/warp.hpp"
#include "sim/machine/warpgroup.hpp"

/// NaNs and infinities that wgmma makes. Its operands are looked at as a whole: one that holds a
/// NaN or an infinity anywhere is taken for the reason of all that come out.
namespace cpverify::sim {
namespace {

constexpr std::size_t kChunkBytes = 16;

/// What the table leaves to the row: halves, or tf32.
Type element_of(Op op, Type given) {
  if (given != Type::none) return given;
  return info(op).name.starts_with("wgmma_tf32") ? Type::tf32 : Type::f16;
}

FloatClass classify_element(Type type, const std::byte* bytes) {
  if (type == Type::e4m3 || type == Type::e5m2) {
    const auto code = std::to_integer<std::uint8_t>(*bytes);
    const float value = type == Type::e4m3 ? numerics::f8_to_f32<numerics::E4M3>(code)
                                           : numerics::f8_to_f32<numerics::E5M2>(code);
    return classify(Type::f32, numerics::to_bits(value));
  }
  std::uint64_t bits = 0;
  // No matrix element is wider; the compiler does not know.
  std::memcpy(&bits, bytes, std::min<std::size_t>(size_bytes(type), sizeof bits));
  return classify(type == Type::tf32 ? Type::f32 : type, bits);
}

bool is_finite(Type type, const std::byte* chunk) {
  for (std::size_t at = 0; at < kChunkBytes; at += size_bytes(type)) {
    if (classify_element(type, chunk + at) != FloatClass::finite) return false;
  }
  return true;
}

bool are_registers_finite(Type type, const Warp& warp, const GroupProduct& product) {
  return std::all_of(product.a_rows.begin(), product.a_rows.end(), [&](std::uint32_t row) {
    const std::byte* const words = warp.registers + row;
    for (std::size_t at = 0; at < kLanes * sizeof(std::uint32_t); at += kChunkBytes) {
      if (!is_finite(type, words + at)) return false;
    }
    return true;
  });
}

bool are_operands_finite(const Cta& cta, std::size_t first, const GroupProduct& product,
                         const Modifiers& modifiers) {
  const Type a = element_of(product.insn->op, modifiers.a_element);
  const Type b = element_of(product.insn->op, modifiers.b_element);
  bool is_good = true;
  visit_operands(product, [&](bool is_a, std::uint32_t address) {
    is_good = is_good && is_finite(is_a ? a : b, cta.shared.data() + address);
  });
  for (std::size_t i = 0; i < kGroupWarps; ++i) {
    is_good = is_good && are_registers_finite(a, cta.warps[first + i], product);
  }
  return is_good;
}

std::string_view name_of(FloatClass value) {
  return value == FloatClass::nan                 ? "NaN"
         : value == FloatClass::positive_infinity ? "+inf"
                                                  : "-inf";
}

}  // namespace

void NanFlow::before_product(const Cta& cta, std::size_t first, const GroupProduct& product) {
  sums_before_.assign(kGroupWarps * product.d_rows.size() * kLanes, 0);
  if (!product.accumulates) return;
  auto place = sums_before_.begin();
  for (std::size_t i = 0; i < kGroupWarps; ++i) {
    for (const std::uint32_t row : product.d_rows) {
      place = std::copy_n(cta.warps[first + i].row<const std::uint32_t>(row), kLanes, place);
    }
  }
}

void NanFlow::after_product(Cta& cta, std::size_t first, const GroupProduct& product) {
  const std::string_view name = info(product.insn->op).name;
  if (name.starts_with("wgmma_int8")) return;
  const auto index = static_cast<std::size_t>(product.insn - cta.warps[first].code);
  ProductSum sum;
  sum.product = &product;
  sum.is_made_here =
      are_operands_finite(cta, first, product, launch_->code->forms[index].modifiers);
  if (name.find("_f16") != std::string_view::npos) sum.shape = {Type::f16, 2};
  sum.before = sums_before_.data();
  for (std::size_t i = 0; i < kGroupWarps; ++i) {
    sum.warp = &cta.warps[first + i];
    for (std::size_t d = 0; d < product.d_rows.size(); ++d) {
      sum.operand = &launch_->flow->insns[index].operands[d];
      mark_sum(sum);
      sum.before += kLanes;
    }
  }
}

/// A mark that the sum had stays while it is a NaN or an infinity.
void NanFlow::mark_sum(const ProductSum& sum) {
  RegisterShadow& shadow = sum.warp->special_values;
  const FlowOperand& operand = *sum.operand;
  const auto* const values = sum.warp->row<const std::uint32_t>(operand.row);
  std::uint32_t marked = shadow.mask(operand.slot, 0);
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    std::uint32_t node = 0;
    bool is_special = false;
    for (std::uint32_t element = 0; element < sum.shape.count; ++element) {
      const std::uint32_t shift = 16 * element;
      const FloatClass result = classify(sum.shape.element, std::uint64_t{values[lane]} >> shift);
      const std::uint64_t before = std::uint64_t{sum.before[lane]} >> shift;
      if (result == FloatClass::finite) continue;
      is_special = true;
      if (node != 0 || !sum.is_made_here) continue;
      if (classify(sum.shape.element, before) == FloatClass::finite) {
        node = made_by_product(sum, lane, result, before);
      }
    }
    if (!is_special) marked &= ~(1U << lane);
    if (node == 0) continue;
    marked |= 1U << lane;
    shadow.set_origin(operand.slot, 0, lane, node);
  }
  shadow.set_mask(operand.slot, 0, marked);
}

std::uint32_t NanFlow::made_by_product(const ProductSum& sum, std::size_t lane, FloatClass result,
                                       std::uint64_t before) {
  SpecialOrigin origin;
  origin.fault =
      fault_at(execution_point(*sum.warp, sum.product->insn), static_cast<std::uint32_t>(lane));
  origin.fault.kind =
      result == FloatClass::nan ? FaultKind::nan_produced : FaultKind::infinity_produced;
  origin.is_reported = result != FloatClass::negative_infinity;
  origin.fault.detail = fmt::format("wgmma of products and c = {} is {}",
                                    float_text(sum.shape.element, before), name_of(result));
  return origins_.add(static_cast<std::uint32_t>(sum.product->insn - sum.warp->code), origin);
}

}  // namespace cpverify::sim
