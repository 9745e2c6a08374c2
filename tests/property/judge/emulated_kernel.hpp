#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include "cpverify/dtype.hpp"
#include "judge/error_bound.hpp"
#include "numerics/approximations.hpp"
#include "numerics/convert.hpp"

namespace cpverify::test {

/// One query row: scores by q [d] and k [n, d], values v [n, d]; already rounded to `dtype`.
struct RowProblem {
  DType dtype = DType::f32;
  bool is_tensor_core = false;
  float softmax_scale = 1.0F;
  float soft_cap = 0.0F;        ///< 0: none.
  std::optional<float> sink;    ///< Logit of a term without a value.
  std::size_t keys_before = 0;  ///< Of the first tile, which a window hides.
  std::vector<float> q;
  std::vector<float> k;
  std::vector<float> v;

  [[nodiscard]] std::size_t head_dim() const { return q.size(); }
  [[nodiscard]] std::size_t num_keys() const { return k.size() / q.size(); }
};

struct RowResult {
  double lse = 0.0;
  std::vector<double> out;
};

inline float rounded_to(DType dtype, float value) {
  const float one[] = {value};
  return numerics::widen(dtype, numerics::narrow(dtype, one)).front();
}

/// An f32 addition as the machine does it: rounded, or cut towards zero as a tensor core may. The
/// product of the operands is exact in double for every dtype.
class Accumulator {
 public:
  explicit Accumulator(bool is_truncating) : is_truncating_{is_truncating} {}

  [[nodiscard]] float add_product(float sum, float a, float b) const {
    const double product = static_cast<double>(a) * static_cast<double>(b);
    if (!is_truncating_) return std::fma(a, b, sum);
    const double exact = static_cast<double>(sum) + product;
    const auto nearest = static_cast<float>(exact);
    const bool is_beyond = std::abs(static_cast<double>(nearest)) > std::abs(exact);
    return is_beyond ? std::nextafter(nearest, 0.0F) : nearest;
  }

 private:
  bool is_truncating_;
};

/// A score in base 2, capped as kernels/attention_policy.cuh does it.
inline float scaled_score(const RowProblem& row, float score) {
  const auto scale = static_cast<double>(row.softmax_scale);
  constexpr double kLog2E = 1.4426950408889634;
  if (row.soft_cap == 0.0F) return score * static_cast<float>(scale * kLog2E);
  const auto cap = static_cast<double>(row.soft_cap);
  const float argument = score * static_cast<float>(scale / cap) * (2.0F * 1.442695041F);
  const float capped = 1.0F - 2.0F / (numerics::exp2_approx(argument) + 1.0F);
  return capped * static_cast<float>(cap * kLog2E);
}

/// Online softmax in f32, tiles of 32 keys: what a correct kernel computes.
inline RowResult emulate(const RowProblem& row) {
  const std::size_t dims = row.head_dim();
  const Accumulator mma{row.is_tensor_core};
  float maximum = row.sink ? *row.sink * 1.442695041F : -INFINITY;
  float sum = row.sink ? 1.0F : 0.0F;
  std::vector<float> out(dims, 0.0F);
  std::size_t tile = 32 - row.keys_before;
  for (std::size_t first = 0; first < row.num_keys(); first += std::exchange(tile, 32)) {
    const std::size_t last = std::min(first + tile, row.num_keys());
    std::vector<float> scores;
    float tile_maximum = maximum;
    for (std::size_t key = first; key < last; ++key) {
      float score = 0.0F;
      for (std::size_t d = 0; d < dims; ++d)
        score = mma.add_product(score, row.q[d], row.k[key * dims + d]);
      scores.push_back(scaled_score(row, score));
      tile_maximum = std::max(tile_maximum, scores.back());
    }
    const float rescale = numerics::exp2_approx(maximum - tile_maximum);
    maximum = tile_maximum;
    sum *= rescale;
    for (float& value : out) value *= rescale;
    for (std::size_t key = first; key < last; ++key) {
      const float weight = numerics::exp2_approx(scores[key - first] - maximum);
      sum += weight;
      const float p = row.is_tensor_core ? rounded_to(row.dtype, weight) : weight;
      for (std::size_t d = 0; d < dims; ++d)
        out[d] = mma.add_product(out[d], p, row.v[key * dims + d]);
    }
  }
  RowResult result;
  result.lse = static_cast<double>((maximum + numerics::log2_approx(sum)) * 0.693147181F);
  for (const float value : out)
    result.out.push_back(static_cast<double>(rounded_to(row.dtype, value / sum)));
  return result;
}

/// The same in fp64, with what the bound needs.
struct ExactRow {
  RowResult result;
  std::vector<double> abs_mass;
  judge::RowMagnitudes magnitudes;
};

inline ExactRow exact(const RowProblem& row) {
  const std::size_t dims = row.head_dim();
  ExactRow exact;
  exact.magnitudes.num_keys = static_cast<std::int64_t>(row.num_keys());
  std::vector<double> scores;
  for (std::size_t key = 0; key < row.num_keys(); ++key) {
    double score = 0.0;
    double magnitude = 0.0;
    for (std::size_t d = 0; d < dims; ++d) {
      const double product =
          static_cast<double>(row.q[d]) * static_cast<double>(row.k[key * dims + d]);
      score += product;
      magnitude += std::abs(product);
    }
    const auto scale = static_cast<double>(row.softmax_scale);
    const auto cap = static_cast<double>(row.soft_cap);
    score *= scale;
    scores.push_back(row.soft_cap > 0.0F ? cap * std::tanh(score / cap) : score);
    exact.magnitudes.max_abs_score = std::max(exact.magnitudes.max_abs_score, scale * magnitude);
  }
  double maximum = row.sink ? static_cast<double>(*row.sink) : scores.front();
  for (const double score : scores) maximum = std::max(maximum, score);
  double sum = 0.0;
  if (row.sink) {
    const auto sink = static_cast<double>(*row.sink);
    exact.magnitudes.has_sink = true;
    exact.magnitudes.max_abs_score = std::max(exact.magnitudes.max_abs_score, std::abs(sink));
    sum = std::exp(sink - maximum);
  }
  exact.result.out.assign(dims, 0.0);
  exact.abs_mass.assign(dims, 0.0);
  for (std::size_t key = 0; key < row.num_keys(); ++key) {
    const double weight = std::exp(scores[key] - maximum);
    sum += weight;
    for (std::size_t d = 0; d < dims; ++d) {
      const auto value = static_cast<double>(row.v[key * dims + d]);
      exact.result.out[d] += weight * value;
      exact.abs_mass[d] += weight * std::abs(value);
      exact.magnitudes.max_abs_value = std::max(exact.magnitudes.max_abs_value, std::abs(value));
    }
  }
  for (std::size_t d = 0; d < dims; ++d) {
    exact.result.out[d] /= sum;
    exact.abs_mass[d] /= sum;
  }
  exact.result.lse = maximum + std::log(sum);
  exact.magnitudes.lse = exact.result.lse;
  return exact;
}

}  // namespace cpverify::test
