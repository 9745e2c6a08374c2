#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "cpverify/data.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"

namespace cpverify {
namespace {

RequestSpec any_request(const std::vector<RequestSpec>& earlier) {
  RequestSpec request;
  request.id = fmt::format("r{}", earlier.size());
  request.arrival_step = *rc::gen::inRange<std::int64_t>(0, 6);
  request.decode = *rc::gen::inRange<std::int64_t>(0, 4);
  const bool is_sharing = !earlier.empty() && *rc::gen::arbitrary<bool>();
  request.prompt = *rc::gen::inRange<std::int64_t>(is_sharing ? 1 : 0, 40);
  if (is_sharing) {
    const auto other =
        *rc::gen::inRange<std::uint32_t>(0, static_cast<std::uint32_t>(earlier.size()));
    const std::int64_t most = std::min(request.prompt, earlier[other].total_tokens());
    request.shared_prefix =
        SharedPrefix{RequestId{other}, *rc::gen::inRange<std::int64_t>(1, most + 1)};
  } else {
    request.cached_prefix = *rc::gen::inRange<std::int64_t>(0, 20);
  }
  if (request.cached_prefix + request.prompt == 0) request.prompt = 1;
  if (request.prompt + request.decode == 0) request.decode = 1;
  return request;
}

/// Any scenario that the reader would accept, as far as the scheduler looks at it.
Scenario any_scenario() {
  Scenario scenario;
  scenario.model = {AttentionKind::mha, 1, 1, 32, DType::f32, 0.2F};
  const auto count = *rc::gen::inRange<std::size_t>(1, 6);
  for (std::size_t i = 0; i < count; ++i) {
    RequestSpec request = any_request(scenario.requests);
    scenario.requests.push_back(std::move(request));
  }
  scenario.cache.block_size = *rc::gen::element<std::uint32_t>(1, 2, 3, 4, 16);
  if (*rc::gen::arbitrary<bool>())
    scenario.cache.shuffle_seed = *rc::gen::arbitrary<std::uint64_t>();
  scenario.scheduler.max_batched_tokens = *rc::gen::inRange<std::int64_t>(0, 12);
  return scenario;
}

/// Tokens of a request are scheduled in order, one after the other, up to the last one; what is
/// skipped at the start is its cached prefix, or whole shared blocks.
RC_GTEST_PROP(SchedulerProperty, ComputesEveryTokenExactlyOnce, ()) {
  const Scenario scenario = any_scenario();
  const Problem problem = make_problem(scenario);
  std::map<std::uint32_t, std::int64_t> next;
  for (const Step& step : problem.steps) {
    for (const StepRow& row : step.rows) {
      RC_ASSERT(row.scheduled >= 1);
      const auto [entry, is_first] = next.emplace(row.request.value(), row.computed);
      RC_ASSERT(entry->second == row.computed);
      const RequestSpec& request = scenario.requests.at(row.request.value());
      if (is_first) {
        const std::int64_t hit = row.computed - request.cached_prefix;
        RC_ASSERT(hit % scenario.cache.block_size == 0);
        RC_ASSERT(hit <= (request.shared_prefix ? request.shared_prefix->tokens : 0));
      }
      entry->second += row.scheduled;
    }
  }
  RC_ASSERT(next.size() == scenario.requests.size());
  for (const auto& [index, end] : next) {
    RC_ASSERT(end == scenario.requests.at(index).total_tokens());
  }
}

RC_GTEST_PROP(SchedulerProperty, StaysWithinTheBudgetAndNeverIdles, ()) {
  const Scenario scenario = any_scenario();
  const Problem problem = make_problem(scenario);
  const std::int64_t budget = scenario.scheduler.max_batched_tokens;
  for (std::size_t i = 0; i < problem.steps.size(); ++i) {
    const Step& step = problem.steps[i];
    RC_ASSERT(step.index == i);
    RC_ASSERT(!step.rows.empty());
    RC_ASSERT(budget == 0 || step.num_tokens() <= budget);
    RC_ASSERT(std::is_sorted(
        step.rows.begin(), step.rows.end(),
        [](const StepRow& one, const StepRow& other) { return one.request < other.request; }));
  }
}

RC_GTEST_PROP(SchedulerProperty, CallsARowDecodeWhenItsPromptIsComputed, ()) {
  const Problem problem = make_problem(any_scenario());
  for (const Step& step : problem.steps) {
    for (const StepRow& row : step.rows) {
      const RequestSpec& request = problem.scenario.requests.at(row.request.value());
      const std::int64_t prompt_end = request.cached_prefix + request.prompt;
      RC_ASSERT((row.state == RowState::decode) == (row.computed >= prompt_end));
      RC_ASSERT(row.state == RowState::prefill || row.scheduled == 1);
      RC_ASSERT(row.state == RowState::decode || row.computed + row.scheduled <= prompt_end);
    }
  }
}

/// A slot holds one token for the whole run. A second request may read it, at the same position
/// and with the same content, but nobody writes it twice.
RC_GTEST_PROP(SchedulerProperty, WritesEverySlotOnceAndSharesOnlyEqualTokens, ()) {
  const Problem problem = make_problem(any_scenario());
  const std::int64_t block_size = problem.scenario.cache.block_size;
  const std::vector<RequestData> data = make_data(problem, DataMode::random);
  std::map<std::int64_t, std::pair<std::uint32_t, std::int64_t>> owner;
  for (const CachedToken& token : problem.cached) {
    RC_ASSERT(owner.emplace(token.slot, std::pair{token.request.value(), token.position}).second);
  }
  for (const Step& step : problem.steps) {
    for (const StepRow& row : step.rows) {
      RC_ASSERT(static_cast<std::int64_t>(row.slots.size()) == row.scheduled);
      for (std::int64_t i = 0; i < row.scheduled; ++i) {
        const std::int64_t slot = row.slots[static_cast<std::size_t>(i)];
        RC_ASSERT(owner.emplace(slot, std::pair{row.request.value(), row.computed + i}).second);
      }
    }
    // Through its table every row finds its own tokens.
    for (const StepRow& row : step.rows) {
      const std::int64_t tokens = row.computed + row.scheduled;
      RC_ASSERT(static_cast<std::int64_t>(row.block_table.size()) ==
                (tokens + block_size - 1) / block_size);
      for (std::int64_t position = 0; position < tokens; ++position) {
        const std::int64_t block = row.block_table[static_cast<std::size_t>(position / block_size)];
        RC_ASSERT(block >= 1);
        RC_ASSERT(block < std::int64_t{problem.num_blocks});
        const auto [request, at] = owner.at(block * block_size + position % block_size);
        RC_ASSERT(at == position);
        const HostRows& mine = data.at(row.request.value()).k;
        const HostRows& theirs = data.at(request).k;
        const auto index = static_cast<std::size_t>(position);
        RC_ASSERT(std::equal(mine.row(index), mine.row(index) + mine.row_bytes, theirs.row(index)));
      }
    }
  }
}

RC_GTEST_PROP(SchedulerProperty, IsAFunctionOfTheScenario, ()) {
  const Scenario scenario = any_scenario();
  const Problem one = make_problem(scenario);
  const Problem other = make_problem(scenario);
  RC_ASSERT(one.num_blocks == other.num_blocks);
  RC_ASSERT(one.steps.size() == other.steps.size());
  for (std::size_t i = 0; i < one.steps.size(); ++i) {
    RC_ASSERT(one.steps[i].rows.size() == other.steps[i].rows.size());
    for (std::size_t row = 0; row < one.steps[i].rows.size(); ++row) {
      RC_ASSERT(one.steps[i].rows[row].slots == other.steps[i].rows[row].slots);
      RC_ASSERT(one.steps[i].rows[row].block_table == other.steps[i].rows[row].block_table);
    }
  }
}

/// Block ids are names: shuffling them changes no row.
RC_GTEST_PROP(SchedulerProperty, ShufflingRenamesBlocksAndNothingElse, ()) {
  Scenario scenario = any_scenario();
  scenario.cache.shuffle_seed.reset();
  const Problem plain = make_problem(scenario);
  scenario.cache.shuffle_seed = *rc::gen::arbitrary<std::uint64_t>();
  const Problem shuffled = make_problem(scenario);
  std::map<std::int32_t, std::int32_t> renamed;
  std::set<std::int32_t> used;
  RC_ASSERT(plain.steps.size() == shuffled.steps.size());
  for (std::size_t i = 0; i < plain.steps.size(); ++i) {
    RC_ASSERT(plain.steps[i].rows.size() == shuffled.steps[i].rows.size());
    for (std::size_t row = 0; row < plain.steps[i].rows.size(); ++row) {
      const StepRow& from = plain.steps[i].rows[row];
      const StepRow& to = shuffled.steps[i].rows[row];
      RC_ASSERT(from.computed == to.computed);
      RC_ASSERT(from.scheduled == to.scheduled);
      RC_ASSERT(from.block_table.size() == to.block_table.size());
      for (std::size_t block = 0; block < from.block_table.size(); ++block) {
        const auto [entry, is_new] =
            renamed.emplace(from.block_table[block], to.block_table[block]);
        RC_ASSERT(entry->second == to.block_table[block]);
        if (is_new) RC_ASSERT(used.insert(to.block_table[block]).second);
      }
    }
  }
}

}  // namespace
}  // namespace cpverify
