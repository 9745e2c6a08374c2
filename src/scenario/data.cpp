#include "cpverify/data.hpp"

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include "cpverify/dtype.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "numerics/convert.hpp"
#include "support/check.hpp"
#include "support/hash.hpp"
#include "support/rng.hpp"

// Every value is a function of (seed, request id, tensor, position, head, dimension), never of a
// sequence of draws: a token keeps its values whatever it is batched, chunked or sharded with.
//
// Scores, with x and y uniform in [-1, 1), u a fixed sign per dimension, D = head_dim:
//   q = 5/4 (x + 1/2 u) / (scale sqrt(D))      k = a y + 2 l / sqrt(D) u
//   scale q.k = 5/4 l + noise of standard deviation about 5/4 a sqrt(1/9 + 1/12) = 0.55 a
// l is constant over 8 neighbouring keys, so pages and shards weigh unequally for every query
// alike; a is 3 for one key in eight (a needle, which some queries find and others avoid), else 1.
// Scores span about -7 to 10: softmax is neither flat nor one-hot, and no key's weight vanishes.
namespace cpverify {
namespace {

constexpr std::int64_t kLevelTokens = 8;
constexpr std::array kLevels{-1.0F, 0.0F, 0.0F, 2.0F};
constexpr float kNeedleAmplitude = 3.0F;
constexpr std::array kValueAmplitudes{0.5F, 1.0F, 1.0F, 2.0F};

enum class Stream : std::uint64_t { q = 1, k, v, sign, level, amplitude, sink };

std::uint64_t combine(std::uint64_t key, std::uint64_t word) noexcept {
  return mix64(key ^ word);
}

/// Uniform in [-1, 1), a multiple of 2^-23.
float uniform(std::uint64_t random) noexcept {
  const auto top = static_cast<std::int32_t>(random >> 40);  // 24 bits
  return static_cast<float>(top - (1 << 23)) * 0x1p-23F;
}

/// Whose values a token has, by a hash of that request's id: adding or dropping another request of
/// the scenario changes nothing.
std::uint64_t content_id(const Scenario& scenario, std::size_t request, std::int64_t position) {
  const RequestSpec* owner = &scenario.requests[request];
  // Only earlier requests are shared with, so this ends.
  while (owner->shared_prefix && position < owner->shared_prefix->tokens) {
    owner = &scenario.requests[owner->shared_prefix->request.value()];
  }
  Fnv1a hash;
  hash.add(std::string_view{owner->id});
  return hash.value();
}

class TokenValues {
 public:
  TokenValues(const Scenario& scenario, DataMode mode)
      : seed_{mix64(scenario.data.seed)}, model_{scenario.model}, mode_{mode} {
    const float root = std::sqrt(static_cast<float>(model_.head_dim));
    query_amplitude_ = 1.25F / (model_.softmax_scale * root);
    level_step_ = 2.0F / root;
    CPVERIFY_CHECK(std::isfinite(query_amplitude_));
    for (std::uint32_t head = 0; head < model_.num_heads_kv; ++head) {
      for (std::uint32_t i = 0; i < model_.head_dim; ++i) {
        signs_.push_back(row_key(Stream::sign, 0, i, head) % 2 == 0 ? 1.0F : -1.0F);
      }
    }
  }

  /// [num_heads_q, head_dim]
  [[nodiscard]] std::vector<float> q(std::uint64_t content, std::int64_t position) const {
    std::vector<float> values;
    values.reserve(std::size_t{model_.num_heads_q} * model_.head_dim);
    const std::uint32_t group_size = model_.num_heads_q / model_.num_heads_kv;
    for (std::uint32_t head = 0; head < model_.num_heads_q; ++head) {
      const std::uint64_t key = row_key(Stream::q, content, position, head);
      for (std::uint32_t i = 0; i < model_.head_dim; ++i) {
        const float value = uniform(mix64(key + i)) + 0.5F * sign(head / group_size, i);
        values.push_back(mode_ == DataMode::count ? 0.0F : query_amplitude_ * value);
      }
    }
    return values;
  }

  /// [num_heads_kv, head_dim]
  [[nodiscard]] std::vector<float> k(std::uint64_t content, std::int64_t position) const {
    std::vector<float> values;
    values.reserve(std::size_t{model_.num_heads_kv} * model_.head_dim);
    for (std::uint32_t head = 0; head < model_.num_heads_kv; ++head) {
      const std::uint64_t key = row_key(Stream::k, content, position, head);
      const std::uint64_t level_key =
          row_key(Stream::level, content, position / kLevelTokens, head);
      const float shift = level_step_ * kLevels[level_key % kLevels.size()];
      const bool is_needle = row_key(Stream::amplitude, content, position, head) % 8 == 0;
      const float amplitude = is_needle ? kNeedleAmplitude : 1.0F;
      for (std::uint32_t i = 0; i < model_.head_dim; ++i) {
        values.push_back(amplitude * uniform(mix64(key + i)) + shift * sign(head, i));
      }
    }
    return values;
  }

  /// [num_heads_kv, head_dim]
  [[nodiscard]] std::vector<float> v(std::uint64_t content, std::int64_t position) const {
    std::vector<float> values;
    values.reserve(std::size_t{model_.num_heads_kv} * model_.head_dim);
    for (std::uint32_t head = 0; head < model_.num_heads_kv; ++head) {
      const std::uint64_t key = row_key(Stream::v, content, position, head);
      const float amplitude = kValueAmplitudes[mix64(key) % kValueAmplitudes.size()];
      for (std::uint32_t i = 0; i < model_.head_dim; ++i) {
        values.push_back(amplitude * uniform(mix64(key + 1 + i)));
      }
    }
    return values;
  }

 private:
  [[nodiscard]] std::uint64_t row_key(Stream stream, std::uint64_t content, std::int64_t position,
                                      std::uint32_t head) const noexcept {
    const std::uint64_t tensor = combine(combine(seed_, static_cast<std::uint64_t>(stream)), head);
    return combine(combine(tensor, content), static_cast<std::uint64_t>(position));
  }

  /// u of a KV head: +1 or -1.
  [[nodiscard]] float sign(std::uint32_t head, std::uint32_t dimension) const {
    return signs_[std::size_t{head} * model_.head_dim + dimension];
  }

  std::uint64_t seed_ = 0;
  ModelSpec model_;
  DataMode mode_ = DataMode::random;
  float query_amplitude_ = 0.0F;
  float level_step_ = 0.0F;
  std::vector<float> signs_;  ///< [num_heads_kv, head_dim]
};

void append(HostRows& rows, DType dtype, const std::vector<float>& values) {
  const std::vector<std::byte> bytes = numerics::narrow(dtype, values);
  CPVERIFY_CHECK(bytes.size() == rows.row_bytes);
  rows.bytes.insert(rows.bytes.end(), bytes.begin(), bytes.end());
}

HostRows empty_rows(const ModelSpec& model, std::uint32_t num_heads, std::int64_t tokens) {
  HostRows rows;
  rows.row_bytes = std::size_t{num_heads} * model.head_dim * size_bytes(model.dtype);
  rows.bytes.reserve(rows.row_bytes * static_cast<std::size_t>(tokens));
  return rows;
}

}  // namespace

std::vector<float> sink_logits(const Scenario& scenario, DataMode mode) {
  const ModelSpec& model = scenario.model;
  if (!model.has_sinks) return {};
  if (mode == DataMode::count) return std::vector<float>(model.num_heads_q, 0.0F);
  if (!model.sinks.empty()) return model.sinks;
  const std::uint64_t stream =
      combine(mix64(scenario.data.seed), static_cast<std::uint64_t>(Stream::sink));
  std::vector<float> logits;
  logits.reserve(model.num_heads_q);
  // In [0, 6): as much as a few keys weigh, or most of them.
  for (std::uint32_t head = 0; head < model.num_heads_q; ++head) {
    logits.push_back(3.0F + 3.0F * uniform(combine(stream, head)));
  }
  return logits;
}

std::vector<RequestData> make_data(const Problem& problem, DataMode mode) {
  const Scenario& scenario = problem.scenario;
  const ModelSpec& model = scenario.model;
  const TokenValues values{scenario, mode};
  std::vector<RequestData> data;
  for (std::size_t i = 0; i < scenario.requests.size(); ++i) {
    const std::int64_t tokens = scenario.requests[i].total_tokens();
    RequestData request{.q = empty_rows(model, model.num_heads_q, tokens),
                        .k = empty_rows(model, model.num_heads_kv, tokens),
                        .v = empty_rows(model, model.num_heads_kv, tokens)};
    for (std::int64_t position = 0; position < tokens; ++position) {
      const std::uint64_t content = content_id(scenario, i, position);
      append(request.q, model.dtype, values.q(content, position));
      append(request.k, model.dtype, values.k(content, position));
      append(request.v, model.dtype, values.v(content, position));
    }
    data.push_back(std::move(request));
  }
  return data;
}

}  // namespace cpverify
