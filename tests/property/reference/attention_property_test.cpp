#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "cpverify/dtype.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "reference/attention.hpp"
#include "unit/reference/attention_case.hpp"
#include "unit/reference/naive_attention.hpp"
#include "unit/reference/step_builder.hpp"

namespace cpverify::reference {
namespace {

Problem any_problem() {
  const auto row = [] {
    return RowSpec{.scheduled = *rc::gen::inRange<std::int64_t>(1, 41),
                   .computed = *rc::gen::inRange<std::int64_t>(0, 41)};
  };
  Problem problem =
      *rc::gen::inRange(0, 2) == 0 ? problem_of({row()}, 1) : problem_of({row(), row(), row()}, 1);
  ModelSpec& model = problem.scenario.model;
  model.num_heads_kv = *rc::gen::inRange(1U, 4U);
  model.num_heads_q = model.num_heads_kv * *rc::gen::inRange(1U, 5U);
  model.head_dim = *rc::gen::inRange(1U, 33U);
  model.dtype = *rc::gen::element(DType::f32, DType::bf16);
  model.softmax_scale = *rc::gen::element(0.125F, 0.35355338F, 1.0F);
  return problem;
}

/// Multiples of 1/32 with 8 significant bits, from -4 to 4: exact in bf16 and f32.
ElementValue any_values() {
  const auto seed = *rc::gen::arbitrary<std::uint32_t>();
  return [seed](const ElementIndex& index) {
    std::uint64_t x = seed;
    for (const std::uint64_t part :
         {std::uint64_t{index.request}, static_cast<std::uint64_t>(index.tensor),
          std::uint64_t{index.position}, std::uint64_t{index.head}, std::uint64_t{index.dim}}) {
      x = (x ^ part) * 0x9E3779B97F4A7C15U;
      x ^= x >> 29U;
    }
    return static_cast<float>(static_cast<int>(x % 257U) - 128) / 32.0F;
  };
}

/// Relative to `scale`; fp64 sums of at most 81 keys and 32 dimensions err by less than 1e-13 of
/// it.
void assert_close(double got, double want, double scale) {
  RC_ASSERT(std::abs(got - want) <= 1e-12 * scale + 1e-300);
}

void assert_row(const StepReference& got, std::size_t row, const NaiveRow& want) {
  const std::size_t dim_count = got.head_dim;
  const double magnitude = 1.0 + want.max_abs_score;
  assert_close(got.lse[row], want.lse, magnitude);
  assert_close(got.max_abs_score[row], want.max_abs_score, want.max_abs_score);
  RC_ASSERT(got.max_abs_value[row] == want.max_abs_value);
  for (std::size_t dim = 0; dim < dim_count; ++dim) {
    const std::size_t i = row * dim_count + dim;
    assert_close(got.out[i], want.out[dim], want.abs_mass[dim] * magnitude);
    assert_close(got.abs_mass[i], want.abs_mass[dim], want.abs_mass[dim] * magnitude);
  }
}

/// All heads of one token.
void assert_token(const StepReference& got, std::size_t token, ElementIndex query,
                  const ModelSpec& model, const ElementValue& value) {
  const std::size_t num_keys = query.position + 1;
  const auto window = static_cast<std::size_t>(model.sliding_window);
  const std::size_t first_key = window > 0 && num_keys > window ? num_keys - window : 0;
  RC_ASSERT(got.num_keys[token] == static_cast<std::int64_t>(num_keys - first_key));
  for (query.head = 0; query.head < got.num_heads_q; ++query.head) {
    const float* const sink = model.sinks.empty() ? nullptr : &model.sinks[query.head];
    assert_row(got, token * got.num_heads_q + query.head,
               naive_row(model, value, query, num_keys, first_key, sink));
  }
}

void assert_step(const Problem& problem, const ElementValue& value) {
  const StepReference got =
      step_reference(problem, 0, data_of(problem, value), 0, problem.scenario.model.sinks);
  std::size_t token = 0;
  for (const StepRow& row : problem.steps[0].rows) {
    for (std::int64_t index = 0; index < row.scheduled; ++index) {
      const auto position = static_cast<std::size_t>(row.computed + index);
      assert_token(got, token++, {row.request.value(), TensorKind::q, position, 0, 0},
                   problem.scenario.model, value);
    }
  }
  RC_ASSERT(got.num_tokens == static_cast<std::int64_t>(token));
}

TEST(ReferenceAttentionProperty, AgreesWithATripleLoop) {
  RC_ASSERT(rc::check([] {
    const Problem problem = any_problem();
    assert_step(problem, any_values());
  }));
}

TEST(ReferenceAttentionProperty, AgreesWithATripleLoopOnCapsSinksAndWindows) {
  RC_ASSERT(rc::check([] {
    Problem problem = any_problem();
    ModelSpec& model = problem.scenario.model;
    model.soft_cap = *rc::gen::element(0.0F, 0.25F, 3.0F, 50.0F, 1000.0F);
    model.sliding_window = *rc::gen::element<std::int64_t>(0, 1, 2, 7, 16, 40, 200);
    model.has_sinks = *rc::gen::arbitrary<bool>();
    for (std::uint32_t head = 0; model.has_sinks && head < model.num_heads_q; ++head) {
      model.sinks.push_back(*rc::gen::element(-80.0F, -1.0F, 0.0F, 2.5F, 60.0F));
    }
    assert_step(problem, any_values());
  }));
}

}  // namespace
}  // namespace cpverify::reference
