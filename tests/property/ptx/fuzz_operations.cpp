#include "property/ptx/fuzz_operations.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string_view>
#include <vector>

namespace cpverify::sim::fuzz {
namespace {

using U = std::uint64_t;

float as_f(U bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
}
U from_f(float value) {
  return std::isnan(value) ? 0x7fffffffU : U{std::bit_cast<std::uint32_t>(value)};
}
std::int64_t as_s32(U bits) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(bits));
}
U from_s(std::int64_t value) {
  return static_cast<std::uint32_t>(value);
}
U low32(U value) {
  return value & 0xffffffffU;
}

/// A 16-bit float as its value: `mantissa_bits` and the largest exponent say which.
struct HalfKind {
  int mantissa_bits;
  int exponent_bits;
};
constexpr HalfKind kF16{10, 5};
constexpr HalfKind kBf16{7, 8};

double half_value(HalfKind kind, U bits) {
  const int bias = (1 << (kind.exponent_bits - 1)) - 1;
  const auto mantissa = static_cast<int>(bits & ((1U << kind.mantissa_bits) - 1));
  const auto exponent =
      static_cast<int>((bits >> kind.mantissa_bits) & ((1U << kind.exponent_bits) - 1));
  const double sign = (bits & 0x8000U) != 0 ? -1.0 : 1.0;
  if (exponent == (1 << kind.exponent_bits) - 1) {
    return mantissa != 0 ? std::numeric_limits<double>::quiet_NaN()
                         : sign * std::numeric_limits<double>::infinity();
  }
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - kind.mantissa_bits);
  return sign *
         std::ldexp(mantissa + (1 << kind.mantissa_bits), exponent - bias - kind.mantissa_bits);
}

/// To nearest even, by counting units in the last place.
U half_bits(HalfKind kind, double value) {
  if (std::isnan(value)) return 0x7fff;
  const int bias = (1 << (kind.exponent_bits - 1)) - 1;
  const U sign = std::signbit(value) ? 0x8000U : 0U;
  const U infinity = ((U{1} << kind.exponent_bits) - 1) << kind.mantissa_bits;
  const double magnitude = std::fabs(value);
  if (std::isinf(magnitude)) return sign | infinity;
  if (magnitude == 0.0) return sign;
  const int exponent = std::max(std::ilogb(magnitude), 1 - bias);
  const double units = std::nearbyint(std::ldexp(magnitude, kind.mantissa_bits - exponent));
  const auto code =
      static_cast<U>(units) + (static_cast<U>(exponent + bias - 1) << kind.mantissa_bits);
  return sign | std::min(code, infinity);
}

template <class T>
U divide(T a, T b) {
  return b == 0 ? ~U{0} : static_cast<U>(a / b);
}

U minimum(float a, float b) {
  if (std::isnan(a)) return from_f(b);
  if (std::isnan(b)) return from_f(a);
  if (a == b) return from_f(std::signbit(a) ? a : b);
  return from_f(a < b ? a : b);
}
U maximum(float a, float b) {
  if (std::isnan(a)) return from_f(b);
  if (std::isnan(b)) return from_f(a);
  if (a == b) return from_f(std::signbit(a) ? b : a);
  return from_f(a > b ? a : b);
}

/// prmt in its default mode: four nibbles choose bytes of b:a, with the sign bit alone when their
/// top bit is set.
U permute(U a, U b, U c) {
  const U both = low32(a) | low32(b) << 32;
  U result = 0;
  for (U i = 0; i < 4; ++i) {
    const U choice = (c >> (4 * i)) & 15U;
    const U byte = (both >> (8 * (choice & 7U))) & 0xffU;
    const U value = choice < 8 ? byte : (byte >= 128 ? 0xffU : 0U);
    result |= value << (8 * i);
  }
  return result;
}

U count_bits(U value) {
  U count = 0;
  for (; value != 0; value >>= 1) count += value & 1U;
  return count;
}
U reverse(U value) {
  U result = 0;
  for (U i = 0; i < 32; ++i) result = result * 2 + ((value >> i) & 1U);
  return result;
}
U leading_zeros(U value) {
  U count = 0;
  while (count < 32 && ((value >> (31 - count)) & 1U) == 0) ++count;
  return count;
}
U to_s32(float value) {
  if (std::isnan(value)) return 0;
  const double whole = std::trunc(static_cast<double>(value));
  return from_s(static_cast<std::int64_t>(std::clamp(whole, -2147483648.0, 2147483647.0)));
}
U sum_of_products(U a, U b, U c) {
  std::int64_t sum = as_s32(c);
  for (int i = 0; i < 32; i += 8) {
    sum += std::int64_t{static_cast<std::int8_t>(a >> i)} * static_cast<std::int8_t>(b >> i);
  }
  return from_s(sum);
}

const std::vector<Operation> kOperations{
    {"add.u32", "rrr", [](U a, U b, U) { return low32(a + b); }},
    {"sub.s32", "rrr", [](U a, U b, U) { return low32(a - b); }},
    {"mul.lo.s32", "rrr", [](U a, U b, U) { return low32(a * b); }},
    {"mul.hi.u32", "rrr", [](U a, U b, U) { return (a * b) >> 32; }},
    {"mul.hi.s32", "rrr", [](U a, U b, U) { return from_s((as_s32(a) * as_s32(b)) >> 32); }},
    {"mad.lo.u32", "rrrr", [](U a, U b, U c) { return low32(a * b + c); }},
    {"mad.hi.s32", "rrrr",
     [](U a, U b, U c) { return from_s(((as_s32(a) * as_s32(b)) >> 32) + as_s32(c)); }},
    {"mul24.lo.u32", "rrr", [](U a, U b, U) { return low32((a % (1U << 24)) * (b % (1U << 24))); }},
    {"sad.u32", "rrrr", [](U a, U b, U c) { return low32(c + (a > b ? a - b : b - a)); }},
    {"dp4a.s32.s32", "rrrr", sum_of_products},
    {"div.u32", "rrr", [](U a, U b, U) { return low32(divide(a, b)); }},
    {"div.s32", "rrr", [](U a, U b, U) { return low32(divide(as_s32(a), as_s32(b))); }},
    {"rem.u32", "rrr", [](U a, U b, U) { return b == 0 ? a : a % b; }},
    {"min.s32", "rrr", [](U a, U b, U) { return from_s(std::min(as_s32(a), as_s32(b))); }},
    {"max.u32", "rrr", [](U a, U b, U) { return std::max(a, b); }},
    {"abs.s32", "rr", [](U a, U, U) { return from_s(std::abs(as_s32(a))); }},
    {"neg.s32", "rr", [](U a, U, U) { return from_s(-as_s32(a)); }},
    {"popc.b32", "rr", [](U a, U, U) { return count_bits(a); }},
    {"clz.b32", "rr", [](U a, U, U) { return leading_zeros(a); }},
    {"brev.b32", "rr", [](U a, U, U) { return reverse(a); }},
    {"bfind.u32", "rr", [](U a, U, U) { return low32(31 - leading_zeros(a)); }},
    {"and.b32", "rrr", [](U a, U b, U) { return a & b; }},
    {"or.b32", "rrr", [](U a, U b, U) { return a | b; }},
    {"xor.b32", "rrr", [](U a, U b, U) { return a ^ b; }},
    {"not.b32", "rr", [](U a, U, U) { return low32(~a); }},
    {"shl.b32", "rrr", [](U a, U b, U) { return b > 31 ? 0 : low32(a << b); }},
    {"shr.u32", "rrr", [](U a, U b, U) { return b > 31 ? 0 : a >> b; }},
    {"shr.s32", "rrr", [](U a, U b, U) { return from_s(as_s32(a) >> std::min(b, U{31})); }},
    {"shf.l.wrap.b32", "rrrr",
     [](U a, U b, U c) { return low32((b << 32 | a) << (c % 32) >> 32); }},
    {"shf.r.clamp.b32", "rrrr",
     [](U a, U b, U c) { return low32((b << 32 | a) >> std::min(c, U{32})); }},
    {"prmt.b32", "rrrr", permute},
    {"mul.wide.u32", "drr", [](U a, U b, U) { return a * b; }},
    {"mul.wide.s32", "drr", [](U a, U b, U) { return static_cast<U>(as_s32(a) * as_s32(b)); }},
    {"add.u64", "ddd", [](U a, U b, U) { return a + b; }},
    {"mad.lo.u64", "dddd", [](U a, U b, U c) { return a * b + c; }},
    {"shl.b64", "ddr", [](U a, U b, U) { return b > 63 ? 0 : a << b; }},
    {"cvt.u32.u64", "rd", [](U a, U, U) { return low32(a); }},
    {"cvt.s64.s32", "dr", [](U a, U, U) { return static_cast<U>(as_s32(a)); }},
    {"cvt.u16.u32", "hr", [](U a, U, U) { return a & 0xffffU; }},
    {"cvt.s32.s16", "rh", [](U a, U, U) { return from_s(static_cast<std::int16_t>(a)); }},
    {"cvt.sat.s8.s32", "hr",
     [](U a, U, U) {
       return static_cast<U>(std::clamp<std::int64_t>(as_s32(a), -128, 127)) & 0xffffU;
     }},
    {"add.f32", "fff", [](U a, U b, U) { return from_f(as_f(a) + as_f(b)); }},
    {"sub.f32", "fff", [](U a, U b, U) { return from_f(as_f(a) - as_f(b)); }},
    {"mul.f32", "fff", [](U a, U b, U) { return from_f(as_f(a) * as_f(b)); }},
    {"fma.rn.f32", "ffff",
     [](U a, U b, U c) { return from_f(std::fma(as_f(a), as_f(b), as_f(c))); }},
    {"div.rn.f32", "fff", [](U a, U b, U) { return from_f(as_f(a) / as_f(b)); }},
    {"sqrt.rn.f32", "ff", [](U a, U, U) { return from_f(std::sqrt(as_f(a))); }},
    {"min.f32", "fff", [](U a, U b, U) { return minimum(as_f(a), as_f(b)); }},
    {"max.f32", "fff", [](U a, U b, U) { return maximum(as_f(a), as_f(b)); }},
    {"copysign.f32", "fff", [](U a, U b, U) { return (a & 0x80000000U) + (b & 0x7fffffffU); }},
    {"cvt.rn.f32.s32", "fr", [](U a, U, U) { return from_f(static_cast<float>(as_s32(a))); }},
    {"cvt.rzi.s32.f32", "rf", [](U a, U, U) { return to_s32(as_f(a)); }},
    {"mov.b32", "rf", [](U a, U, U) { return a; }},
    {"cvt.rn.f16.f32", "hf",
     [](U a, U, U) { return half_bits(kF16, static_cast<double>(as_f(a))); }},
    {"add.f16", "hhh",
     [](U a, U b, U) { return half_bits(kF16, half_value(kF16, a) + half_value(kF16, b)); }},
    {"mul.f16", "hhh",
     [](U a, U b, U) { return half_bits(kF16, half_value(kF16, a) * half_value(kF16, b)); }},
    {"sub.bf16", "hhh",
     [](U a, U b, U) { return half_bits(kBf16, half_value(kBf16, a) - half_value(kBf16, b)); }},
    {"mul.bf16", "hhh",
     [](U a, U b, U) { return half_bits(kBf16, half_value(kBf16, a) * half_value(kBf16, b)); }},
    {"setp.lt.s32", "prr", [](U a, U b, U) { return U{as_s32(a) < as_s32(b)}; }},
    {"setp.hs.u32", "prr", [](U a, U b, U) { return U{a >= b}; }},
    {"setp.eq.b32", "prr", [](U a, U b, U) { return U{a == b}; }},
    {"setp.ge.f32", "pff", [](U a, U b, U) { return U{as_f(a) >= as_f(b)}; }},
    {"setp.neu.f32", "pff", [](U a, U b, U) { return U{!(as_f(a) == as_f(b))}; }},
    {"setp.lt.f16", "phh",
     [](U a, U b, U) { return U{half_value(kF16, a) < half_value(kF16, b)}; }},
    {"testp.normal.f32", "pf",
     [](U a, U, U) { return U{std::isnormal(as_f(a)) || as_f(a) == 0.0F}; }},
    {"and.pred", "ppp", [](U a, U b, U) { return a & b; }},
    {"xor.pred", "ppp", [](U a, U b, U) { return a ^ b; }},
    {"not.pred", "pp", [](U a, U, U) { return a ^ 1U; }},
    {"selp.b32", "rrrp", [](U a, U b, U c) { return c != 0 ? a : b; }},
    {"selp.f32", "fffp", [](U a, U b, U c) { return c != 0 ? a : b; }},
};

}  // namespace

const std::vector<Operation>& operations() {
  return kOperations;
}

}  // namespace cpverify::sim::fuzz
