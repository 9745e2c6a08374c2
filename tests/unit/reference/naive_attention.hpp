#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpverify/plan.hpp"
#include "cpverify/step.hpp"
#include "reference/attention.hpp"
#include "unit/reference/attention_case.hpp"

namespace cpverify::reference {

/// Attention of one query and head, straight from the definition, in long double.
struct NaiveRow {
  std::vector<double> out;
  std::vector<double> abs_mass;
  double lse = 0.0;
  double max_abs_score = 0.0;
  double max_abs_value = 0.0;
};

/// Keys first_key .. num_keys - 1; `sink`: the head's, or null.
inline NaiveRow naive_row(const ModelSpec& model, const ElementValue& value, ElementIndex query,
                          std::size_t num_keys, std::size_t first_key = 0,
                          const float* sink = nullptr) {
  const std::size_t kv_head = query.head / (model.num_heads_q / model.num_heads_kv);
  const auto element = [&](TensorKind tensor, std::size_t key, std::size_t dim) {
    return static_cast<long double>(value({query.request, tensor, key, kv_head, dim}));
  };
  NaiveRow result;
  std::vector<long double> scores;
  for (std::size_t key = first_key; key < num_keys; ++key) {
    long double score = 0.0L;
    long double magnitude = 0.0L;
    for (query.dim = 0; query.dim < model.head_dim; ++query.dim) {
      const long double product =
          static_cast<long double>(value(query)) * element(TensorKind::k, key, query.dim);
      score += product;
      magnitude += std::abs(product);
    }
    score *= static_cast<long double>(model.softmax_scale);
    const auto cap = static_cast<long double>(model.soft_cap);
    scores.push_back(cap > 0.0L ? cap * std::tanh(score / cap) : score);
    result.max_abs_score =
        std::max(result.max_abs_score,
                 static_cast<double>(magnitude * static_cast<long double>(model.softmax_scale)));
  }
  long double largest = *std::max_element(scores.begin(), scores.end());
  if (sink != nullptr) {
    largest = std::max(largest, static_cast<long double>(*sink));
    result.max_abs_score = std::max(result.max_abs_score, std::abs(static_cast<double>(*sink)));
  }
  long double sum = sink == nullptr ? 0.0L : std::exp(static_cast<long double>(*sink) - largest);
  for (const long double score : scores) sum += std::exp(score - largest);
  result.lse = static_cast<double>(largest + std::log(sum));
  for (std::size_t dim = 0; dim < model.head_dim; ++dim) {
    long double out = 0.0L;
    long double mass = 0.0L;
    for (std::size_t key = first_key; key < num_keys; ++key) {
      const long double weight = std::exp(scores[key - first_key] - largest) / sum;
      const long double v = element(TensorKind::v, key, dim);
      out += weight * v;
      mass += weight * std::abs(v);
      result.max_abs_value = std::max(result.max_abs_value, static_cast<double>(std::abs(v)));
    }
    result.out.push_back(static_cast<double>(out));
    result.abs_mass.push_back(static_cast<double>(mass));
  }
  return result;
}

}  // namespace cpverify::reference
