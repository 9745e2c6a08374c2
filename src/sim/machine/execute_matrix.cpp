#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include <fmt/format.h>

#include "cpverify/fault.hpp"
#include "cpverify/observer.hpp"
#include "numerics/float16.hpp"
#include "numerics/float32.hpp"
#include "sim/isa/insn.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/machine/cta.hpp"
#include "sim/machine/lanes.hpp"
#include "sim/machine/warp.hpp"

/// mma.sync. The manual leaves order and rounding of the accumulation open; ours is a chain of f32
/// fma over ascending k, from c. NaN results are canonical.
///
/// Fragments, source: PTX ISA, "Matrix Fragments for mma.m16n8k16". A register of A or B holds,
/// over its 32 lanes, an 8x8 block of 16-bit elements row by row (of B: column by column); one of C
/// or D holds every second element of an 8x8 block of f32.
namespace cpverify::sim {
namespace {

constexpr std::size_t kRows = 16;
constexpr std::size_t kColumns = 8;
constexpr std::size_t kBlock = 8;  ///< Rows and columns of a 16-bit block.

struct FromBf16 {
  static float apply(std::uint16_t bits) { return numerics::bf16_to_f32(bits); }
};
struct FromF16 {
  static float apply(std::uint16_t bits) { return numerics::f16_to_f32(bits); }
};

/// The 64 elements of a register as f32, in block order.
template <class Convert>
void widen(const std::uint32_t* __restrict source, float* __restrict target) {
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    target[2 * lane] = Convert::apply(static_cast<std::uint16_t>(source[lane]));
    target[2 * lane + 1] = Convert::apply(static_cast<std::uint16_t>(source[lane] >> 16));
  }
}

/// accumulator[row] += a[row][k] * b[k], one column per vector element.
inline void accumulate(float* __restrict accumulator, const float* __restrict a,
                       const float* __restrict b) {
  for (std::size_t row = 0; row < kBlock; ++row) {
    std::array<float, kColumns> sum;
    for (std::size_t column = 0; column < kColumns; ++column) {
      sum[column] = accumulator[row * kColumns + column];
    }
    for (std::size_t k = 0; k < kBlock; ++k) {
      const float factor = a[row * kBlock + k];
      for (std::size_t column = 0; column < kColumns; ++column) {
        sum[column] = __builtin_fmaf(factor, b[k * kColumns + column], sum[column]);
      }
    }
    for (std::size_t column = 0; column < kColumns; ++column) {
      accumulator[row * kColumns + column] = sum[column];
    }
  }
}

bool is_whole_warp(Warp& warp, const Insn* insn, std::uint32_t mask) {
  if (mask == kFullMask) return true;
  const std::string detail =
      fmt::format("matrix instruction executed by lanes {:#010x} instead of the whole warp", mask);
  ViolationEvent event;
  event.kind = FaultKind::illegal_instruction;
  event.lanes = mask;
  event.detail = detail;
  report(warp, insn, event);
  return false;
}

/// k_blocks is k / 8. Operands: d0-d3, then 2 * k_blocks registers of A, k_blocks of B, c0-c3.
template <class Convert, std::size_t k_blocks>
const Insn* multiply(Warp& warp, const Insn* insn, std::uint32_t mask) {
  if (!is_whole_warp(warp, insn, mask)) return nullptr;
  const std::uint32_t* const rows = warp.wide + insn->target;
  const std::uint32_t* const a_rows = rows + 4;
  const std::uint32_t* const b_rows = a_rows + 2 * k_blocks;
  const std::uint32_t* const c_rows = b_rows + k_blocks;

  alignas(64) std::array<float, kRows * kColumns> sum;
  for (std::size_t half = 0; half < 2; ++half) {
    const float* const even = warp.row<const float>(c_rows[2 * half]);
    const float* const odd = warp.row<const float>(c_rows[2 * half + 1]);
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      sum[half * 2 * kLanes + 2 * lane] = even[lane];
      sum[half * 2 * kLanes + 2 * lane + 1] = odd[lane];
    }
  }
  for (std::size_t block = 0; block < k_blocks; ++block) {
    alignas(64) std::array<float, kBlock * kBlock> transposed;
    alignas(64) std::array<float, kBlock * kBlock> b;
    alignas(64) std::array<float, kBlock * kBlock> a;
    widen<Convert>(warp.row<const std::uint32_t>(b_rows[block]), transposed.data());
    for (std::size_t column = 0; column < kColumns; ++column) {
      for (std::size_t k = 0; k < kBlock; ++k) {
        b[k * kColumns + column] = transposed[column * kBlock + k];
      }
    }
    for (std::size_t half = 0; half < 2; ++half) {
      widen<Convert>(warp.row<const std::uint32_t>(a_rows[2 * block + half]), a.data());
      accumulate(sum.data() + half * kBlock * kColumns, a.data(), b.data());
    }
  }
  for (std::size_t half = 0; half < 2; ++half) {
    float* const even = warp.row<float>(rows[2 * half]);
    float* const odd = warp.row<float>(rows[2 * half + 1]);
    for (std::size_t lane = 0; lane < kLanes; ++lane) {
      even[lane] = numerics::canonical(sum[half * 2 * kLanes + 2 * lane]);
      odd[lane] = numerics::canonical(sum[half * 2 * kLanes + 2 * lane + 1]);
    }
  }
  return insn + 1;
}

}  // namespace

template <>
Handler select<Op::mma_bf16>(const Form& /*form*/) {
  return &multiply<FromBf16, 2>;
}
template <>
Handler select<Op::mma_f16>(const Form& /*form*/) {
  return &multiply<FromF16, 2>;
}
template <>
Handler select<Op::mma_bf16_k8>(const Form& /*form*/) {
  return &multiply<FromBf16, 1>;
}
template <>
Handler select<Op::mma_f16_k8>(const Form& /*form*/) {
  return &multiply<FromF16, 1>;
}

}  // namespace cpverify::sim
