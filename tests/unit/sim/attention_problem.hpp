#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cpverify/schedule.hpp"
#include "numerics/float16.hpp"
#include "support/rng.hpp"
#include "unit/sim/simulated_device.hpp"

namespace cpverify::sim {

inline std::vector<std::uint16_t> random_bf16(std::size_t count, std::uint64_t seed) {
  Rng rng{seed};
  std::vector<std::uint16_t> values(count);
  for (std::uint16_t& value : values) {
    // Multiples of 1/64 in [-2, 2): exact in bf16.
    value = numerics::f32_to_bf16(static_cast<float>(rng.below(256)) / 64.0F - 2.0F);
  }
  return values;
}

inline double value_of(std::uint16_t bf16) {
  return static_cast<double>(numerics::bf16_to_f32(bf16));
}

/// Causal paged attention of a few sequences, and its answer in double precision.
struct AttentionProblem {
  std::size_t head_dim = 64;
  std::size_t heads_q = 2;
  std::size_t heads_kv = 1;
  std::size_t page = 16;
  std::vector<std::int32_t> cu_q;
  std::vector<std::int32_t> kv_lens;
  std::vector<std::int32_t> tokens_to_sequence;
  std::vector<std::int32_t> block_table;
  std::size_t max_pages = 0;
  std::vector<std::uint16_t> q;
  std::vector<std::uint16_t> k_pool;
  std::vector<std::uint16_t> v_pool;

  AttentionProblem(std::size_t dim, const std::vector<std::int32_t>& q_lens,
                   const std::vector<std::int32_t>& k_lens)
      : head_dim{dim}, cu_q{0}, kv_lens{k_lens} {
    for (const std::int32_t length : q_lens) {
      const auto sequence = static_cast<std::int32_t>(cu_q.size() - 1);
      for (std::int32_t i = 0; i < length; ++i) tokens_to_sequence.push_back(sequence);
      cu_q.push_back(cu_q.back() + length);
    }
    for (const std::int32_t length : k_lens) {
      max_pages = std::max(max_pages, (static_cast<std::size_t>(length) + page - 1) / page);
    }
    // Pages are handed out from the last to the second: their order must not matter.
    auto next = static_cast<std::int32_t>(max_pages * k_lens.size());
    for (std::size_t i = 0; i < max_pages * k_lens.size(); ++i) block_table.push_back(next--);
    const std::size_t pool = (max_pages * k_lens.size() + 1) * page * heads_kv * head_dim;
    q = random_bf16(static_cast<std::size_t>(cu_q.back()) * heads_q * head_dim, 1);
    k_pool = random_bf16(pool, 2);
    v_pool = random_bf16(pool, 3);
  }

  [[nodiscard]] std::size_t tokens() const { return tokens_to_sequence.size(); }
  [[nodiscard]] float scale_log2() const {
    return static_cast<float>(1.4426950408889634 / std::sqrt(static_cast<double>(head_dim)));
  }
  [[nodiscard]] std::size_t pool_index(std::size_t sequence, std::size_t key) const {
    const auto block = static_cast<std::size_t>(block_table[sequence * max_pages + key / page]);
    return (block * page + key % page) * heads_kv * head_dim;
  }

  /// Plain softmax over the visible keys; lse in natural log.
  void answer(std::size_t token, std::size_t head, std::vector<double>& out, double& lse) const {
    const auto sequence = static_cast<std::size_t>(tokens_to_sequence[token]);
    const auto row = static_cast<std::int32_t>(token) - cu_q[sequence];
    const std::int32_t q_len = cu_q[sequence + 1] - cu_q[sequence];
    const std::int32_t visible = kv_lens[sequence] - q_len + row + 1;
    std::vector<double> scores;
    double maximum = -std::numeric_limits<double>::infinity();
    for (std::int32_t key = 0; key < visible; ++key) {
      const std::size_t base = pool_index(sequence, static_cast<std::size_t>(key));
      double score = 0.0;
      for (std::size_t i = 0; i < head_dim; ++i) {
        score += value_of(q[(token * heads_q + head) * head_dim + i]) * value_of(k_pool[base + i]);
      }
      scores.push_back(score / std::sqrt(static_cast<double>(head_dim)));
      maximum = std::max(maximum, scores.back());
    }
    double sum = 0.0;
    out.assign(head_dim, 0.0);
    for (std::size_t key = 0; key < scores.size(); ++key) {
      const double weight = std::exp(scores[key] - maximum);
      sum += weight;
      const std::size_t base = pool_index(sequence, key);
      for (std::size_t i = 0; i < head_dim; ++i) out[i] += weight * value_of(v_pool[base + i]);
    }
    for (double& value : out) value /= sum;
    lse = maximum + std::log(sum);
  }
};

/// What must not change the results.
struct AttentionConditions {
  ScheduleSpec schedule;
  VectorWidth width = widest_vectors();
};

/// Runs paged_attn (head_dim 128) or mma_attn (64) of the test kernels.
class AttentionRun {
 public:
  AttentionRun(const AttentionProblem& problem, const std::string& ptx, bool is_mma,
               bool is_race_checked = false, const AttentionConditions& conditions = {})
      : problem_{&problem}, device_{conditions.width} {
    device_.load(ptx);
    const std::uint64_t q = device_.upload(problem.q);
    const std::uint64_t k = device_.upload(problem.k_pool);
    const std::uint64_t v = device_.upload(problem.v_pool);
    const std::uint64_t cu_q = device_.upload(problem.cu_q);
    const std::uint64_t lens = device_.upload(problem.kv_lens);
    const std::uint64_t owner = device_.upload(problem.tokens_to_sequence);
    const std::uint64_t table = device_.upload(problem.block_table);
    const std::size_t rows = problem.tokens() * problem.heads_q;
    out_ = device_.allocate(rows * problem.head_dim * 2);
    lse_ = device_.allocate(rows * 4);
    const auto pages = static_cast<std::int32_t>(problem.max_pages);
    const auto heads_q = static_cast<std::int32_t>(problem.heads_q);
    const auto heads_kv = static_cast<std::int32_t>(problem.heads_kv);
    const auto heads = static_cast<std::uint32_t>(problem.heads_q);
    if (is_mma) {
      std::uint32_t tiles = 0;
      for (std::size_t i = 0; i + 1 < problem.cu_q.size(); ++i) {
        const std::int32_t length = problem.cu_q[i + 1] - problem.cu_q[i];
        tiles = std::max(tiles, (static_cast<std::uint32_t>(length) + 63) / 64);
      }
      // Q, and two stages of K and V: 5 tiles of 64 x 64 bf16.
      LaunchRequest request =
          shape({tiles, heads, static_cast<std::uint32_t>(problem.kv_lens.size())}, {128, 1, 1},
                5 * 64 * 64 * 2);
      request.is_race_checked = is_race_checked;
      request.schedule = conditions.schedule;
      result = device_.run("mma_attn", request,
                           Parameters{q, k, v, cu_q, lens, table, pages, heads_q, heads_kv,
                                      problem.scale_log2(), out_, lse_});
    } else {
      LaunchRequest request =
          shape({static_cast<std::uint32_t>(problem.tokens()), heads, 1}, {128, 1, 1});
      request.is_race_checked = is_race_checked;
      request.schedule = conditions.schedule;
      result = device_.run("paged_attn", request,
                           Parameters{q, k, v, cu_q, lens, owner, table, pages, heads_q, heads_kv,
                                      problem.scale_log2(), std::int32_t{1}, out_, lse_});
    }
  }

  /// Every output as it is in memory.
  std::vector<std::uint8_t> output_bytes() {
    const std::size_t rows = problem_->tokens() * problem_->heads_q;
    auto bytes = device_.download<std::uint8_t>(out_, rows * problem_->head_dim * 2);
    const auto lse = device_.download<std::uint8_t>(lse_, rows * 4);
    bytes.insert(bytes.end(), lse.begin(), lse.end());
    return bytes;
  }

  /// Outputs within the rounding to bf16 of values below 2 and of P (mma only), LSE within f32's.
  void expect_correct() {
    const std::size_t rows = problem_->tokens() * problem_->heads_q;
    const auto out = device_.download<std::uint16_t>(out_, rows * problem_->head_dim);
    const auto lse = device_.download<float>(lse_, rows);
    for (std::size_t row = 0; row < rows; ++row) {
      std::vector<double> want;
      double want_lse = 0.0;
      problem_->answer(row / problem_->heads_q, row % problem_->heads_q, want, want_lse);
      ASSERT_NEAR(static_cast<double>(lse[row]), want_lse, 4e-6) << "row " << row;
      for (std::size_t i = 0; i < problem_->head_dim; ++i) {
        // Half a unit of bf16 is 2^-9 of the value; |v| <= 2 and P is rounded to bf16 too.
        ASSERT_NEAR(value_of(out[row * problem_->head_dim + i]), want[i], 0.016)
            << "row " << row << " element " << i;
      }
    }
  }

  /// Output and LSE, byte by byte.
  [[nodiscard]] std::vector<std::uint8_t> output() {
    const std::size_t rows = problem_->tokens() * problem_->heads_q;
    auto bytes = device_.download<std::uint8_t>(out_, rows * problem_->head_dim * 2);
    const auto lse = device_.download<std::uint8_t>(lse_, rows * 4);
    bytes.insert(bytes.end(), lse.begin(), lse.end());
    return bytes;
  }

  LaunchResult result;

 private:
  const AttentionProblem* problem_;
  SimulatedDevice device_;
  std::uint64_t out_ = 0;
  std::uint64_t lse_ = 0;
};

}  // namespace cpverify::sim
