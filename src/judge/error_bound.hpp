#pragma once

#include <cstdint>

#include "cpverify/dtype.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"

/// The only place with tolerances. Derivation of every term: docs/numerics.md.
namespace cpverify::judge {

/// Unit roundoff of f32, round to nearest: half an ulp of 1.
inline constexpr double kUnitF32 = 0x1p-24;
/// Relative error of ex2.approx.f32, and error of lg2.approx.f32 (absolute on (1/2, 2), relative
/// elsewhere). Source: PTX ISA, ex2 and lg2; the simulator's own are tested to be within it.
inline constexpr double kApproxError = 0x1p-22;
/// Smallest normal f32: what flushing to zero can lose of one term.
inline constexpr double kSmallestNormalF32 = 0x1p-126;
/// Half the smallest subnormal f16: what rounding to f16 can lose of a tiny number.
inline constexpr double kHalfSubnormalF16 = 0x1p-25;

/// Absolute error of tanh worked out from ex2.approx, in units of f32. Source: docs/numerics.md,
/// "Soft-cap".
inline constexpr double kTanhError = 10.0 * kUnitF32;

/// True iff found is within bound of expected. NaN on either side is never within; an infinity is
/// within any bound of itself only.
[[nodiscard]] bool within(double found, double expected, double bound) noexcept;

/// |found - expected| / bound: at most 1 iff within. 0 when both are equal, +inf when one is NaN,
/// one only is infinite, or they differ and the bound is 0.
[[nodiscard]] double error_ratio(double found, double expected, double bound) noexcept;

/// Half an ulp of 1 in a dtype: 2^-24, 2^-11, 2^-8. The loss of one cast to it, relative.
[[nodiscard]] double unit_roundoff(DType dtype) noexcept;

/// How a kernel computes.
struct Arithmetic {
  std::uint32_t head_dim = 0;
  DType out_dtype = DType::f32;
  AttentionNumerics numerics;
  double soft_cap = 0.0;    ///< 0: none.
  bool has_window = false;  ///< A row's first key may lie anywhere in a tile.
};

/// How the attention of a plan for a model computes.
[[nodiscard]] Arithmetic arithmetic_of(const ModelSpec& model,
                                       const AttentionNumerics& numerics) noexcept;

/// What the reference knows of one (query, head).
struct RowMagnitudes {
  std::int64_t num_keys = 0;
  double lse = 0.0;            ///< Natural log.
  double max_abs_score = 0.0;  ///< G = max_j scale * sum_k |q_k||k_jk|, |sink| if that is larger.
  double max_abs_value = 0.0;  ///< max_jd |v_jd|.
  bool has_sink = false;       ///< One more term of the sum, with a value of 0.
};

/// Forward error bounds of one (query, head): no correct kernel of this arithmetic exceeds them,
/// whatever its tiling over at least kv_tile keys and its order of additions.
class RowBound {
 public:
  RowBound(const Arithmetic& arithmetic, const RowMagnitudes& row) noexcept;

  /// On |LSE - expected|; 0 for a row without keys and sink.
  [[nodiscard]] double lse() const noexcept { return lse_; }

  /// On |out - expected| of one element. `abs_mass` is A_d = sum_j p_j |v_jd|.
  [[nodiscard]] double output(double abs_mass, double expected) const noexcept;

 private:
  /// What merging adds: docs/numerics.md, "Merged partials".
  struct Merge {
    bool is_on = false;
    double relative = 0.0;      ///< Of A_d.
    double absolute = 0.0;      ///< Underflow of casts.
    double unit_partial = 0.0;  ///< Loss of a partial's cast.
  };

  void add_merge(const Arithmetic& arithmetic, const RowMagnitudes& row) noexcept;
  [[nodiscard]] double before_cast(double abs_mass, double magnitude) const noexcept;

  Merge merge_;
  double lse_ = 0.0;
  double numerator_ = 0.0;    ///< Relative error of each term of sum_j w_j v_jd.
  double denominator_ = 0.0;  ///< Relative error of l = sum_j w_j.
  double absolute_ = 0.0;     ///< Underflow of P and of the output cast.
  double unit_out_ = 0.0;
};

}  // namespace cpverify::judge
