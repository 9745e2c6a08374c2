#include "gpu/handle_table.hpp"

#include <memory>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "gpu/driver_api.hpp"

namespace cpverify::gpu {
namespace {

using Table = HandleTable<CuStream, int>;

TEST(HandleTable, FindsWhatWasInserted) {
  Table table;
  const CuStream first = table.insert(std::make_unique<int>(7));
  const CuStream second = table.insert(std::make_unique<int>(8));
  ASSERT_NE(table.find(first), nullptr);
  EXPECT_EQ(*table.find(first), 7);
  EXPECT_EQ(*table.find(second), 8);
}

TEST(HandleTable, KnowsNoNullAndNoStaleHandle) {
  Table table;
  EXPECT_EQ(table.find(nullptr), nullptr);
  const CuStream stale = table.insert(std::make_unique<int>(7));
  EXPECT_TRUE(table.erase(stale));
  EXPECT_FALSE(table.erase(stale));
  const CuStream fresh = table.insert(std::make_unique<int>(8));
  EXPECT_NE(fresh, stale);
  EXPECT_EQ(table.find(stale), nullptr);
}

TEST(HandleTable, VisitsInOrderOfCreation) {
  Table table;
  for (const int value : {5, 1, 4, 2}) table.insert(std::make_unique<int>(value));
  table.erase_if([](int value) { return value == 4; });
  std::vector<int> seen;
  table.for_each([&seen](int value) { seen.push_back(value); });
  EXPECT_THAT(seen, testing::ElementsAre(5, 1, 2));
}

}  // namespace
}  // namespace cpverify::gpu
