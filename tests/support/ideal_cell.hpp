#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "cpverify/data.hpp"
#include "cpverify/dtype.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "judge/judge.hpp"
#include "numerics/convert.hpp"
#include "reference/attention.hpp"
#include "run/runner.hpp"

namespace cpverify::test {

/// Two requests on cp 2 in f32: "long" starts with 3 cached tokens and prefills 13 (CP on, one pad
/// row), "short" prefills 4; then each decodes one token (CP off, one batch of two rows of which
/// two are pads). Blocks of 4 tokens, so chunks end inside pages.
inline constexpr const char* kSmallScenario = R"(
model: {attention: gqa, num_heads_q: 4, num_heads_kv: 2, head_dim: 32, dtype: f32}
topology: {cp: 2, tp: 1}
cache: {block_size: 4, shuffle_seed: 3}
padding: {token_multiple: 4}
requests:
  - {id: long, cached_prefix: 3, prompt: 13, decode: 1}
  - {id: short, prompt: 4, decode: 1}
)";

/// A cell in which everything is right: outputs are the reference rounded once, pools hold what was
/// written. Tests spoil one thing and look at what the judge says.
class IdealCell {
 public:
  IdealCell(const Problem& given, StrategyKind strategy, DataMode mode)
      : problem{given}, strategy_{strategy}, mode_{mode} {
    data = make_data(problem, mode);
    for (const Step& step : problem.steps) {
      plans.push_back(make_plan(problem, step.index, strategy));
      reference.push_back(reference::step_reference(problem, step.index, data, 1,
                                                    sink_logits(problem.scenario, mode)));
    }
    fill_run();
  }
  IdealCell(const IdealCell&) = delete;
  IdealCell& operator=(const IdealCell&) = delete;

  [[nodiscard]] judge::CellEvidence evidence() const {
    judge::CellEvidence evidence;
    evidence.problem = &problem;
    evidence.strategy = strategy_;
    evidence.mode = mode_;
    evidence.data = &data;
    evidence.plans = &plans;
    evidence.reference = &reference;
    evidence.run = &run;
    return evidence;
  }
  [[nodiscard]] CellVerdict judge() const { return judge::judge_cell(evidence()); }

  /// Bytes of a captured output.
  std::vector<std::byte>& output(std::size_t step, std::size_t rank, const std::string& buffer) {
    return run.steps.at(step).ranks.at(rank).outputs.at(buffer);
  }
  /// A buffer of the plan; fails the test (std::out_of_range) when there is none.
  Buffer& buffer(std::size_t step, std::size_t rank, const std::string& name) {
    std::vector<Buffer>& buffers = plans.at(step).ranks.at(rank).buffers;
    const auto found = std::find_if(buffers.begin(), buffers.end(),
                                    [&](const Buffer& buffer) { return buffer.name == name; });
    return buffers.at(static_cast<std::size_t>(found - buffers.begin()));
  }

  Problem problem;
  std::vector<RequestData> data;
  std::vector<Plan> plans;
  std::vector<reference::StepReference> reference;
  run::RunCapture run;

 private:
  static constexpr std::byte kCanary{0xc5};

  [[nodiscard]] std::vector<std::byte> ideal_output(
      const Buffer& buffer, const reference::StepReference& expected) const {
    const OutputClaim& claim = *buffer.output;
    const std::size_t dims = claim.kind == OutputKind::lse ? 1 : expected.head_dim;
    std::vector<float> values;
    for (const std::int64_t token : claim.row_tokens) {
      for (std::uint32_t h = 0; h < claim.heads.count; ++h) {
        for (std::size_t d = 0; d < dims; ++d) {
          if (token < 0) {
            values.push_back(claim.kind == OutputKind::lse ? -std::numeric_limits<float>::infinity()
                                                           : 0.0F);
            continue;
          }
          const std::size_t row =
              static_cast<std::size_t>(token) * expected.num_heads_q + claim.heads.first + h;
          values.push_back(static_cast<float>(
              claim.kind == OutputKind::lse ? expected.lse[row] : expected.out[row * dims + d]));
        }
      }
    }
    return numerics::narrow(buffer.dtype, values);
  }

  void write_token(run::RankCapture& pools, const RankPlan& rank, RequestId request,
                   std::pair<std::int64_t, std::int64_t> position_and_slot) const {
    const ModelSpec& model = problem.scenario.model;
    const std::size_t head_bytes = model.head_dim * size_bytes(model.dtype);
    const std::size_t size = rank.heads_kv.count * head_bytes;
    const auto position = static_cast<std::size_t>(position_and_slot.first);
    const std::size_t offset = static_cast<std::size_t>(position_and_slot.second) * size;
    const RequestData& rows = data[request.value()];
    std::memcpy(pools.k_pool.data() + offset,
                rows.k.row(position) + rank.heads_kv.first * head_bytes, size);
    std::memcpy(pools.v_pool.data() + offset,
                rows.v.row(position) + rank.heads_kv.first * head_bytes, size);
  }

  void fill_run() {
    const ModelSpec& model = problem.scenario.model;
    for (const RankPlan& rank : plans.front().ranks) {
      run::RankCapture pools;
      const std::size_t size = std::size_t{problem.num_blocks} * problem.scenario.cache.block_size *
                               rank.heads_kv.count * model.head_dim * size_bytes(model.dtype);
      pools.k_pool.assign(size, kCanary);
      pools.v_pool.assign(size, kCanary);
      for (const CachedToken& token : problem.cached)
        write_token(pools, rank, token.request, {token.position, token.slot});
      run.initial.push_back(pools);
    }
    std::vector<run::RankCapture> pools = run.initial;
    for (std::size_t step = 0; step < plans.size(); ++step) {
      run::StepCapture capture;
      capture.is_complete = true;
      for (std::size_t r = 0; r < plans[step].ranks.size(); ++r) {
        const RankPlan& rank = plans[step].ranks[r];
        for (const StepRow& row : problem.steps[step].rows) {
          for (std::size_t i = 0; i < row.slots.size(); ++i)
            write_token(pools[r], rank, row.request,
                        {row.computed + static_cast<std::int64_t>(i), row.slots[i]});
        }
        run::RankCapture held = pools[r];
        for (const Buffer& buffer : rank.buffers) {
          if (buffer.role == BufferRole::output)
            held.outputs[buffer.name] = ideal_output(buffer, reference[step]);
        }
        capture.ranks.push_back(std::move(held));
      }
      run.steps.push_back(std::move(capture));
    }
    run.digest = 0x1234;
  }

  StrategyKind strategy_;
  DataMode mode_;
};

inline Problem small_problem(const std::string& extra = {}) {
  return make_problem(parse_scenario(kSmallScenario + extra, "small.yaml"));
}

/// A 32-bit element of a captured buffer, as a float.
inline float load_f32(const std::vector<std::byte>& bytes, std::size_t element) {
  float value = 0.0F;
  std::memcpy(&value, bytes.data() + element * sizeof value, sizeof value);
  return value;
}

inline void store_f32(std::vector<std::byte>& bytes, std::size_t element, float value) {
  std::memcpy(bytes.data() + element * sizeof value, &value, sizeof value);
}

}  // namespace cpverify::test
