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

inline NaiveRow naive_row(const ModelSpec& model, const ElementValue& value, ElementIndex query,
                          std::size_t num_keys) {
  const std::size_t kv_head = query.head / (model.num_heads_q / model.num_heads_kv);
  const auto element = [&](TensorKind tensor, std::size_t key, std::size_t dim) {
    return static_cast<long double>(value({query.request, tensor, key, kv_head, dim}));
  };
  NaiveRow result;
  std::vector<long double> scores;
  for (std::size_t key = 0; key < num_keys; ++key) {
    long double score = 0.0L;
    long double magnitude = 0.0L;
    for (query.dim = 0; query.dim < model.head_dim; ++query.dim) {
      const long double product =
          static_cast<long double>(value(query)) * element(TensorKind::k, key, query.dim);
      score += product;
      magnitude += std::abs(product);
    }
    scores.push_back(score * static_cast<long double>(model.softmax_scale));
    result.max_abs_score =
        std::max(result.max_abs_score,
                 static_cast<double>(magnitude * static_cast<long double>(model.softmax_scale)));
  }
  const long double largest = *std::max_element(scores.begin(), scores.end());
  long double sum = 0.0L;
  for (const long double score : scores) sum += std::exp(score - largest);
  result.lse = static_cast<double>(largest + std::log(sum));
  for (std::size_t dim = 0; dim < model.head_dim; ++dim) {
    long double out = 0.0L;
    long double mass = 0.0L;
    for (std::size_t key = 0; key < num_keys; ++key) {
      const long double weight = std::exp(scores[key] - largest) / sum;
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
