#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <vector>

#include "cpverify/dtype.hpp"
#include "numerics/approximations.hpp"
#include "property/judge/emulated_kernel.hpp"

namespace cpverify::test {

/// The rows that see parts of a row's keys: part i the keys from cuts[i] up to cuts[i + 1].
inline std::vector<RowProblem> split_keys(const RowProblem& row,
                                          const std::vector<std::size_t>& cuts) {
  std::vector<RowProblem> parts;
  const auto dims = static_cast<std::ptrdiff_t>(row.head_dim());
  for (std::size_t i = 0; i + 1 < cuts.size(); ++i) {
    const std::ptrdiff_t first = static_cast<std::ptrdiff_t>(cuts[i]) * dims;
    const std::ptrdiff_t last = static_cast<std::ptrdiff_t>(cuts[i + 1]) * dims;
    RowProblem part = row;
    part.k.assign(row.k.begin() + first, row.k.begin() + last);
    part.v.assign(row.v.begin() + first, row.v.begin() + last);
    parts.push_back(part);
  }
  return parts;
}

/// Partial results; one without keys is 0 with an LSE of -inf.
inline std::vector<RowResult> emulate_parts(const std::vector<RowProblem>& parts) {
  std::vector<RowResult> results;
  for (const RowProblem& part : parts) {
    RowResult empty;
    empty.lse = -INFINITY;
    empty.out.assign(part.head_dim(), 0.0);
    results.push_back(part.num_keys() == 0 ? empty : emulate(part));
  }
  return results;
}

inline float exp_f32(float x) {
  return numerics::exp2_approx(x * 1.44269504F);
}

inline float log_f32(float x) {
  return numerics::log2_approx(x) * 0.693147181F;
}

inline float merged_lse(const std::vector<RowResult>& parts) {
  float maximum = -INFINITY;
  for (const RowResult& part : parts) maximum = std::max(maximum, static_cast<float>(part.lse));
  if (std::isinf(maximum)) return maximum;
  float sum = 0.0F;
  for (const RowResult& part : parts) sum += exp_f32(static_cast<float>(part.lse) - maximum);
  return maximum + log_f32(sum);
}

/// All at once in f32, divided by the sum of the weights, rounded once.
inline RowResult merge_at_once(const std::vector<RowResult>& parts, DType dtype) {
  RowResult merged;
  const float lse = merged_lse(parts);
  float maximum = -INFINITY;
  for (const RowResult& part : parts) maximum = std::max(maximum, static_cast<float>(part.lse));
  merged.lse = static_cast<double>(lse);
  for (std::size_t d = 0; d < parts.front().out.size(); ++d) {
    float sum = 0.0F;
    float weights = 0.0F;
    for (const RowResult& part : parts) {
      const float weight = exp_f32(static_cast<float>(part.lse) - maximum);
      sum = std::fma(weight, static_cast<float>(part.out[d]), sum);
      weights += weight;
    }
    merged.out.push_back(static_cast<double>(rounded_to(dtype, sum / weights)));
  }
  return merged;
}

/// Weighted by exp(l - L), rounded to the type, and added up in it: all-gather of the LSE and
/// reduce-scatter of the outputs.
inline RowResult merge_scaled(const std::vector<RowResult>& parts, DType dtype) {
  RowResult merged;
  const float lse = merged_lse(parts);
  merged.lse = static_cast<double>(lse);
  for (std::size_t d = 0; d < parts.front().out.size(); ++d) {
    float sum = 0.0F;
    for (const RowResult& part : parts) {
      const float weight = exp_f32(static_cast<float>(part.lse) - lse);
      const float scaled = rounded_to(dtype, weight * static_cast<float>(part.out[d]));
      sum = rounded_to(dtype, sum + scaled);
    }
    merged.out.push_back(static_cast<double>(sum));
  }
  return merged;
}

/// One after the other, the running result in the type of the outputs: a ring.
inline RowResult merge_in_turn(const std::vector<RowResult>& parts, DType dtype) {
  RowResult running = parts.front();
  for (std::size_t i = 1; i < parts.size(); ++i) {
    if (std::isinf(parts[i].lse)) continue;
    running = std::isinf(running.lse) ? parts[i] : merge_at_once({running, parts[i]}, dtype);
  }
  return running;
}

}  // namespace cpverify::test
