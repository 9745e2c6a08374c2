// Worked examples of docs/strategies/dcp_virtual.md.
#include "layout/virtual_slots.hpp"

#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"

namespace cpverify::layout {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

StepRow row_of(std::vector<std::int32_t> blocks) {
  StepRow row;
  row.block_table = std::move(blocks);
  return row;
}

// Slot 2 * 6 + 1 = 13 of the token at position 4.
TEST(VirtualSlots, OwnersByPositionAndBySlotDifferOnUnalignedSlots) {
  EXPECT_EQ(stored_slot(DcpOwner::position, {2, 0, 1}, 4, 13), 6);
  EXPECT_EQ(stored_slot(DcpOwner::position, {2, 1, 1}, 4, 13), std::nullopt);
  EXPECT_EQ(stored_slot(DcpOwner::slot, {2, 0, 1}, 4, 13), std::nullopt);
  EXPECT_EQ(stored_slot(DcpOwner::slot, {2, 1, 1}, 4, 13), 6);
}

// Of four ranks with pages of 64: virtual blocks 5 and 9 are pages 5 and 9 of every rank. 256
// tokens fill the first; rank r has a page of the second from token 256 + r on.
TEST(VirtualSlots, PagesHaveTheNumbersOfVirtualBlocks) {
  const StepRow row = row_of({5, 9});
  const VirtualRequest request{&row, 256};
  EXPECT_THAT(local_pages(request, {4, 0, 1}, 64, 258), ElementsAre(5, 9));
  EXPECT_THAT(local_pages(request, {4, 1, 1}, 64, 258), ElementsAre(5, 9));
  EXPECT_THAT(local_pages(request, {4, 2, 1}, 64, 258), ElementsAre(5));
  EXPECT_THAT(local_pages(request, {4, 3, 1}, 64, 3), IsEmpty());
  EXPECT_THAT(local_pages(request, {4, 0, 1}, 64, 0), IsEmpty());
}

// Blocks 3 and 1 of two tokens each for two ranks of pages of 2, so 4 slots: 12 13 14 15 4 5.
TEST(VirtualSlots, AlignedSlotsAlternate) {
  const StepRow row = row_of({3, 1});
  const VirtualRequest request{&row, 4};
  EXPECT_EQ(request.slot(3), 15);
  EXPECT_EQ(request.slot(5), 5);
  EXPECT_THAT(local_slots(request, {2, 0, 1}, 6), ElementsAre(6, 7, 2));
  EXPECT_THAT(local_slots(request, {2, 1, 1}, 6), ElementsAre(6, 7, 2));
  EXPECT_THAT(local_slots(request, {2, 1, 1}, 1), IsEmpty());
}

TEST(VirtualSlots, SingleSlotsFallWhereTheirNumbersSay) {
  const StepRow row = row_of({2, 8, 9, 6, 3, 10, 4});
  const VirtualRequest request{&row, 1};
  EXPECT_THAT(local_slots(request, {2, 0, 1}, 7), ElementsAre(1, 4, 3, 5, 2));
  EXPECT_THAT(local_slots(request, {2, 1, 1}, 7), ElementsAre(4, 1));
  EXPECT_THAT(local_slots(request, {2, 1, 1}, 2), IsEmpty());
  EXPECT_THAT(local_slots(request, {3, 2, 1}, 7), ElementsAre(0, 2));
}

}  // namespace
}  // namespace cpverify::layout
