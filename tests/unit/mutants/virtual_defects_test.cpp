// What each defect of virtual slots changes.
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cpverify/error.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "unit/mutants/defect_subject.hpp"

namespace cpverify::mutants {
namespace {

using testing::ElementsAre;

/// Three tokens after four on two ranks. In blocks of 2 x 2 slots, 3 and 1, the new ones have slots
/// 4 5 6: rank 0's 2 and 3, rank 1's 2. As single slots 2 8 9 6 and 3 10 4 they are rank 1's 1 and
/// rank 0's 5 and 2.
class VirtualDefects : public DefectSubject {
 protected:
  void plan_with(CacheUnit unit, std::vector<std::int32_t> blocks) {
    problem() = {};
    Scenario& scenario = problem().scenario;
    scenario = small_scenario();
    scenario.topology = {1, 2, 2};
    scenario.model.num_heads_q = 2;
    scenario.model.num_heads_kv = 1;
    scenario.dcp.visibility = DcpVisibility::split;
    scenario.dcp.owner = unit == CacheUnit::slot ? DcpOwner::slot : DcpOwner::position;
    scenario.cache.block_size = 2;
    scenario.cache.unit = unit;
    scenario.requests.resize(1);
    problem().num_blocks = unit == CacheUnit::slot ? 12 : 4;
    StepRow row;
    row.computed = 4;
    row.scheduled = 3;
    row.block_table = std::move(blocks);
    for (std::int64_t position = 4; position < 7; ++position) {
      const std::int64_t tokens = problem().block_tokens();
      const auto block = static_cast<std::size_t>(position / tokens);
      row.slots.push_back(row.block_table.at(block) * tokens + position % tokens);
    }
    problem().steps.push_back({0, {row}});
    plan_by(StrategyKind::dcp_virtual);
  }
  void plan_blocks() { plan_with(CacheUnit::block, {3, 1}); }
  void plan_slots() { plan_with(CacheUnit::slot, {2, 8, 9, 6, 3, 10, 4}); }
};

TEST_F(VirtualDefects, OwnersByPositionTakeTurns) {
  plan_slots();
  EXPECT_THAT(values(0, "slot_mapping"), ElementsAre(-1, 5, 2));
  put_in("virtual_owner_by_position");
  EXPECT_THAT(values(0, "slot_mapping"), ElementsAre(1, -1, 2));
  EXPECT_THAT(values(1, "slot_mapping"), ElementsAre(-1, 5, -1));
}

// Positions and slots agree there.
TEST_F(VirtualDefects, OwnersByPositionAreRightOnWholeBlocks) {
  plan_blocks();
  EXPECT_THROW(put_in("virtual_owner_by_position"), InputError);
}

TEST_F(VirtualDefects, SlotsKeepTheirVirtualNumbers) {
  plan_blocks();
  EXPECT_THAT(values(0, "slot_mapping"), ElementsAre(2, -1, 3));
  put_in("virtual_slot_undivided");
  EXPECT_THAT(values(0, "slot_mapping"), ElementsAre(4, -1, 6));
  EXPECT_THAT(values(1, "slot_mapping"), ElementsAre(-1, 5, -1));
}

// A rank has 6 slots: 10 mod 6 is 4, 4 mod 6 is 4, and 3 mod 6 is 3.
TEST_F(VirtualDefects, SlotsAreRemainders) {
  plan_slots();
  put_in("virtual_slot_remainder");
  EXPECT_THAT(values(0, "slot_mapping"), ElementsAre(-1, 4, 4));
  EXPECT_THAT(values(1, "slot_mapping"), ElementsAre(3, -1, -1));
}

TEST_F(VirtualDefects, NeighboursStoreForEachOther) {
  plan_blocks();
  put_in("virtual_neighbour_stored");
  EXPECT_THAT(values(0, "slot_mapping"), ElementsAre(-1, 2, -1));
  EXPECT_THAT(values(1, "slot_mapping"), ElementsAre(2, -1, 3));
}

// The context of 4 is even on whole blocks: nothing to round. Single slots 2 8 9 6 are three and
// one.
TEST_F(VirtualDefects, LengthsAreThoseOfTheFirstRank) {
  plan_blocks();
  EXPECT_THROW(put_in("virtual_lengths_rounded_up"), InputError);
  plan_slots();
  EXPECT_THAT(values(1, "kv_lens_context"), ElementsAre(1));
  put_in("virtual_lengths_rounded_up");
  EXPECT_THAT(values(1, "kv_lens_context"), ElementsAre(2));
}

// Page 3 of two slots begins with virtual slots 12 and 13 of the two ranks: 12 / 2, 13 / 2.
TEST_F(VirtualDefects, TablesKeepVirtualNumbers) {
  plan_blocks();
  EXPECT_THAT(values(1, "local_pages"), ElementsAre(3));
  put_in("virtual_table_undivided");
  EXPECT_THAT(values(0, "local_pages"), ElementsAre(6));
  EXPECT_THAT(values(1, "local_pages"), ElementsAre(6));
  plan_slots();
  EXPECT_THAT(values(0, "local_slots"), ElementsAre(1, 4, 3));
  put_in("virtual_table_undivided");
  EXPECT_THAT(values(0, "local_slots"), ElementsAre(2, 8, 6));
  EXPECT_THAT(values(1, "local_slots"), ElementsAre(9));
}

TEST_F(VirtualDefects, NeedTheirStrategy) {
  plan_blocks();
  plan_by(StrategyKind::dcp);
  for (const std::string defect :
       {"virtual_owner_by_position", "virtual_slot_undivided", "virtual_slot_remainder",
        "virtual_neighbour_stored", "virtual_lengths_rounded_up", "virtual_table_undivided"}) {
    EXPECT_THROW(put_in(defect), InputError) << defect;
  }
}

}  // namespace
}  // namespace cpverify::mutants
