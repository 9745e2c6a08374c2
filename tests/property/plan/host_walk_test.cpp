#include "property/plan/host_walk.hpp"

#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cpverify/dtype.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "mutants/defects.hpp"
#include "support/hand_made_problem.hpp"

namespace cpverify {
namespace {

using test::HandMadeStep;

/// [7,7,7] with a prefix of 5 on the first, two ranks, then a decode step: every defect of a plan
/// has a place in it.
Problem defect_problem() {
  Scenario scenario;
  scenario.topology = {2, 2};
  scenario.model.num_heads_q = 4;
  scenario.model.num_heads_kv = 2;
  scenario.model.head_dim = 32;
  scenario.model.dtype = DType::f32;
  scenario.cache.block_size = 4;
  scenario.padding.token_multiple = 8;
  Problem problem =
      test::hand_made_problem(scenario, {{{5, 7}, {0, 7}, {0, 7}}, {{12, 1, RowState::decode}}});
  for (std::int64_t token = 0; token < 5; ++token) {
    problem.cached.push_back({RequestId{0}, token, 4 + token});
  }
  return problem;
}

/// Prefills of 7 after 5 and 7 fresh, decodes after 3 and 4, on two ranks that share the cache in
/// blocks of 8 tokens; then a step of decodes.
Problem shared_cache_problem() {
  Scenario scenario;
  scenario.topology = {2, 2};
  scenario.topology.kv_sharding = KvSharding::pcp_dcp;
  scenario.model.num_heads_q = 4;
  scenario.model.num_heads_kv = 2;
  scenario.model.head_dim = 32;
  scenario.model.dtype = DType::bf16;
  scenario.cache.block_size = 4;
  const HandMadeStep first{{5, 7}, {0, 7}, {3, 1, RowState::decode}, {4, 1, RowState::decode}};
  Problem problem = test::hand_made_problem(scenario, {first, {{12, 1, RowState::decode}}});
  for (const StepRow& row : problem.steps.front().rows) {
    for (std::int64_t token = 0; token < row.computed; ++token) {
      problem.cached.push_back(
          {row.request, token, std::int64_t{row.block_table.front()} * 8 + token});
    }
  }
  return problem;
}

std::vector<std::string> complaints(const Problem& problem, StrategyKind strategy,
                                    const std::string& defect) {
  std::vector<Plan> plans;
  plans.reserve(problem.steps.size());
  for (std::uint32_t step = 0; step < problem.steps.size(); ++step) {
    plans.push_back(make_plan(problem, step, strategy));
  }
  if (!defect.empty()) {
    InjectSpec inject;
    inject.defect = defect;
    mutants::inject(inject, problem, plans);
  }
  test::HostWalk walk{problem};
  for (const Plan& plan : plans) {
    walk.run(plan);
  }
  return walk.complaints();
}

TEST(HostWalk, AcceptsAPlanWithoutDefects) {
  EXPECT_TRUE(complaints(defect_problem(), StrategyKind::zigzag, "").empty());
  EXPECT_TRUE(complaints(shared_cache_problem(), StrategyKind::pcp_head_tail, "").empty());
}

class HostWalkWithDefect : public testing::TestWithParam<std::string> {};

// The walk that the property tests rely on sees each defect that changes what is computed.
TEST_P(HostWalkWithDefect, Complains) {
  EXPECT_FALSE(complaints(defect_problem(), StrategyKind::zigzag, GetParam()).empty());
}

INSTANTIATE_TEST_SUITE_P(All, HostWalkWithDefect,
                         testing::Values("kv_len_without_prefix", "reorder_ranks_swapped",
                                         "stale_metadata", "pad_row_attended", "row_dropped",
                                         "wrong_slot", "gather_buffer_ceil",
                                         "page_table_too_narrow", "late_offset_lost",
                                         "collective_count_differs", "tp_head_shift"),
                         [](const auto& test_case) { return test_case.param; });

class HostWalkWithHeadTailDefect : public testing::TestWithParam<std::string> {};

TEST_P(HostWalkWithHeadTailDefect, Complains) {
  EXPECT_FALSE(complaints(shared_cache_problem(), StrategyKind::pcp_head_tail, GetParam()).empty());
}

INSTANTIATE_TEST_SUITE_P(All, HostWalkWithHeadTailDefect,
                         testing::Values("head_tail_not_restored", "head_tail_swapped",
                                         "head_tail_pads_merged", "head_tail_unmasked",
                                         "head_tail_context_twice", "head_tail_context_dropped",
                                         "head_tail_empty_weighs", "head_tail_decode_slots",
                                         "head_tail_decode_blind"),
                         [](const auto& test_case) { return test_case.param; });

}  // namespace
}  // namespace cpverify
