#include "judge/error_bound.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <numbers>

#include "cpverify/dtype.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"

namespace cpverify::judge {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
/// Integers up to here, and their sums, are exact in f32.
constexpr std::int64_t kExactIntegersF32 = std::int64_t{1} << 24;
/// Products that one mma.sync m16n8k16 adds at once.
constexpr double kMmaDepth = 16.0;

/// gamma_k = k u / (1 - k u): k roundings of one term. Source: Higham, "Accuracy and Stability of
/// Numerical Algorithms", 2nd ed., lemma 3.1.
double gamma(double count, double unit) noexcept {
  const double product = count * unit;
  return product < 1.0 ? product / (1.0 - product) : kInfinity;
}

/// (1 + a)(1 + b) - 1.
double compose(double a, double b) noexcept {
  return a + b + a * b;
}

/// e^x - 1 <= x / (1 - x) for 0 <= x < 1.
double exp_minus_one(double x) noexcept {
  return x < 1.0 ? x / (1.0 - x) : kInfinity;
}

}  // namespace

bool within(double found, double expected, double bound) noexcept {
  if (found == expected) return true;
  // An infinity differs from everything else by infinity, which no bound, not even +inf, excuses.
  if (!std::isfinite(found) || !std::isfinite(expected)) return false;
  return std::abs(found - expected) <= bound;
}

double error_ratio(double found, double expected, double bound) noexcept {
  if (found == expected) return 0.0;
  if (!std::isfinite(found) || !std::isfinite(expected) || !(bound > 0.0)) return kInfinity;
  const double ratio = std::abs(found - expected) / bound;
  // The division may round across 1; the verdict is within()'s.
  if (within(found, expected, bound)) return std::min(ratio, 1.0);
  return std::max(ratio, std::nextafter(1.0, 2.0));
}

double unit_roundoff(DType dtype) noexcept {
  switch (dtype) {
    case DType::f32:
      return kUnitF32;
    case DType::f16:
      return 0x1p-11;
    case DType::bf16:
      return 0x1p-8;
    default:
      return kInfinity;
  }
}

Arithmetic arithmetic_of(const ModelSpec& model, const AttentionNumerics& numerics) noexcept {
  return {.head_dim = model.head_dim,
          .out_dtype = model.dtype,
          .numerics = numerics,
          .soft_cap = static_cast<double>(model.soft_cap),
          .has_window = model.sliding_window > 0};
}

RowBound::RowBound(const Arithmetic& arithmetic, const RowMagnitudes& row) noexcept
    : unit_out_{unit_roundoff(arithmetic.out_dtype)} {
  const std::int64_t terms = row.num_keys + (row.has_sink ? 1 : 0);
  if (terms == 0) return;
  const auto keys = static_cast<double>(terms);
  const AttentionNumerics& numerics = arithmetic.numerics;
  // A tensor core may truncate instead of rounding: twice the unit.
  const double unit_acc = numerics.is_tensor_core ? 2.0 * kUnitF32 : kUnitF32;
  const std::int64_t tile = std::max<std::int64_t>(numerics.kv_tile, 1);
  // A window may begin and end within tiles; a sink is there before the first of them.
  const std::int64_t tiles_before_last =
      (terms - 1) / tile + (arithmetic.has_window ? 1 : 0) + (row.has_sink ? 1 : 0);
  const auto rescales = static_cast<double>(tiles_before_last);
  const double depth = numerics.is_tensor_core ? keys + kMmaDepth : keys;

  // With q = 0 every score is 0, every exponential exactly 1 and l a sum of ones.
  const bool is_exact = row.max_abs_score == 0.0 && terms <= kExactIntegersF32;
  const double score = (arithmetic.head_dim + 2.0) * unit_acc * row.max_abs_score +
                       3.0 * kUnitF32 * row.max_abs_score +
                       (kTanhError + 2.0 * kUnitF32) * arithmetic.soft_cap;
  const double weight =
      is_exact ? 0.0 : compose(exp_minus_one(score), gamma(rescales + 1.0, kApproxError));
  const double cast =
      is_exact || numerics.p_dtype == DType::f32 ? 0.0 : unit_roundoff(numerics.p_dtype);
  const double sum = is_exact ? 0.0 : gamma(keys + rescales, unit_acc);

  numerator_ = compose(compose(weight, cast), gamma(depth + rescales, unit_acc));
  denominator_ = compose(weight, sum);

  const double flushed = kSmallestNormalF32 * (keys * row.max_abs_value + 1.0);
  const double p_underflow =
      numerics.p_dtype == DType::f16 ? kHalfSubnormalF16 * keys * row.max_abs_value : 0.0;
  const double out_underflow = arithmetic.out_dtype == DType::f16 ? kHalfSubnormalF16 : 0.0;
  absolute_ = flushed + p_underflow + out_underflow;

  const auto log2_keys = static_cast<double>(std::bit_width(static_cast<std::uint64_t>(terms)));
  const double logarithm = std::numbers::ln2 * kApproxError * log2_keys;
  const double before =
      (denominator_ < 1.0 ? denominator_ / (1.0 - denominator_) : kInfinity) + logarithm;
  // Of a partial only that it lies between -G and G + ln n is known.
  const bool is_merged = numerics.merge.partials > 1;
  const double lse_magnitude = is_merged ? row.max_abs_score + std::log(keys) : std::abs(row.lse);
  lse_ = before + 3.0 * kUnitF32 * (lse_magnitude + row.max_abs_score + before);
  if (is_merged) add_merge(arithmetic, row);
}

void RowBound::add_merge(const Arithmetic& arithmetic, const RowMagnitudes& row) noexcept {
  const MergeNumerics& merge = arithmetic.numerics.merge;
  const auto partials = static_cast<double>(merge.partials);
  const auto depth = static_cast<double>(merge.depth);
  const double lse_magnitude =
      row.max_abs_score +
      std::log(static_cast<double>(row.num_keys + (row.has_sink ? 1 : 0)) * partials);
  // One merge: exponents from two LSEs, a sum of `partials` exponentials, a logarithm.
  const double step = gamma(partials + 4.0, kUnitF32) + kApproxError * (4.0 + std::log2(partials)) +
                      8.0 * kUnitF32 * lse_magnitude;
  lse_ += depth * step;

  const double weight = exp_minus_one(lse_ + step);
  const double running = depth - 1.0;
  merge_.is_on = true;
  merge_.unit_partial = unit_roundoff(merge.partial_dtype);
  merge_.relative =
      depth * (2.0 * weight + gamma(partials + 4.0, kUnitF32)) + running * merge_.unit_partial;
  if (merge.sum_dtype != DType::f32) {
    merge_.relative += gamma(partials, unit_roundoff(merge.sum_dtype));
  }
  const bool has_f16 = merge.partial_dtype == DType::f16 || merge.sum_dtype == DType::f16;
  merge_.absolute = depth * partials *
                    (kSmallestNormalF32 * row.max_abs_value + (has_f16 ? kHalfSubnormalF16 : 0.0));
}

double RowBound::before_cast(double abs_mass, double magnitude) const noexcept {
  const double sums = (numerator_ * abs_mass + denominator_ * magnitude) / (1.0 - denominator_);
  return sums + 4.0 * kUnitF32 * (magnitude + sums);
}

double RowBound::output(double abs_mass, double expected) const noexcept {
  const double magnitude = std::abs(expected);
  if (!(denominator_ < 1.0)) return kInfinity;
  if (!merge_.is_on) {
    const double divided = before_cast(abs_mass, magnitude);
    return divided + unit_out_ * (magnitude + divided) + absolute_;
  }
  // The weighted sum of the partials' |o_c| is A_d at most.
  const double divided = before_cast(abs_mass, abs_mass);
  const double partials = divided + merge_.unit_partial * (abs_mass + divided);
  const double merged = partials + merge_.relative * (abs_mass + partials) + merge_.absolute;
  return merged + unit_out_ * (magnitude + merged) + absolute_;
}

}  // namespace cpverify::judge
