// What each defect of prefill context parallelism changes.
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cpverify/error.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "support/hand_made_problem.hpp"
#include "unit/mutants/defect_subject.hpp"
#include "unit/plan/plan_probe.hpp"

namespace cpverify::mutants {
namespace {

using testing::ElementsAre;

/// Two ranks: 7 tokens after 4, a last chunk of one token after 8, a decode after 5; tokens 0-6, 7
/// and 8. Rank 0 has the decode, {0, 1}, {6} and the chunk; rank 1 the decode, {2, 3} and {4, 5}.
class PcpDefects : public DefectSubject {
 protected:
  PcpDefects() {
    problem() =
        test::hand_made_problem(small_scenario(), {{{4, 7}, {8, 1}, {5, 1, RowState::decode}}});
    plan_by(StrategyKind::pcp_virtual_batch);
  }

  const Collective& gather(std::size_t index) {
    return std::get<Collective>(
        test::operation_labelled(rank(index), "all-gather prefill k and v rows").body);
  }
};

// Five rows each: none is a pad.
TEST_F(PcpDefects, RestoreTakesTheNextRow) {
  EXPECT_THAT(values(0, "hidden_restore"), ElementsAre(1, 2, 6, 7, 8, 9, 3, 4, 0));
  put_in("pcp_restore_off_by_one");
  EXPECT_THAT(values(0, "hidden_restore"), ElementsAre(2, 3, 7, 8, 9, 0, 4, 5, 1));
}

// 2 * K * D = 2 * 2 * 32 elements to a row.
TEST_F(PcpDefects, ChunkOfOneTokenShortensWhatItsRankSends) {
  const std::int64_t before = gather(0).count;
  put_in("pcp_chunk_as_decode");
  EXPECT_EQ(gather(0).count, before - 128);
  EXPECT_EQ(gather(0).send.offset_elems, gather(1).send.offset_elems + 128);
  EXPECT_EQ(gather(1).count, before);
}

TEST_F(PcpDefects, RowsSeeTheWholeRequest) {
  put_in("pcp_rows_see_request");
  for (const std::int64_t length : values(1, "row_kv_lens")) {
    EXPECT_TRUE(length == 6 || length == 11) << length;
  }
}

TEST_F(PcpDefects, PadsNeedRanksOfDifferentCounts) {
  EXPECT_THROW(put_in("pcp_pads_written"), InputError);
}

TEST_F(PcpDefects, NeedTheirStrategy) {
  for (const std::string defect : {"pcp_restore_off_by_one", "pcp_pads_written",
                                   "pcp_chunk_as_decode", "pcp_rows_see_request"}) {
    plan_by(StrategyKind::zigzag);
    EXPECT_THROW(put_in(defect), InputError) << defect;
  }
}

// And zigzag's defects say that they change nothing here.
TEST_F(PcpDefects, OfZigzagAreRefused) {
  for (const std::string defect :
       {"kv_len_without_prefix", "reorder_ranks_swapped", "reorder_by_physical_rows", "row_dropped",
        "gather_buffer_ceil", "pad_row_attended"}) {
    EXPECT_THROW(put_in(defect), InputError) << defect;
  }
}

}  // namespace
}  // namespace cpverify::mutants
