#include "support/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <stdexcept>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace cpverify {
namespace {

class ForEachIndex : public testing::TestWithParam<unsigned> {};

TEST_P(ForEachIndex, CallsEachIndexOnce) {
  std::vector<int> calls(1000);
  for_each_index(calls.size(), GetParam(), [&](std::size_t i) { ++calls[i]; });
  EXPECT_EQ(std::count(calls.begin(), calls.end(), 1), 1000);
}

TEST_P(ForEachIndex, OfNothingCallsNothing) {
  for_each_index(0, GetParam(), [](std::size_t) { FAIL(); });
}

TEST_P(ForEachIndex, MakesAllCallsAndThrowsTheErrorOfTheLeastIndex) {
  std::atomic<int> calls{0};
  std::string message;
  try {
    for_each_index(20, GetParam(), [&](std::size_t i) {
      ++calls;
      if (i % 7 == 6) throw std::runtime_error{std::to_string(i)};  // 6, 13.
    });
  } catch (const std::runtime_error& error) {
    message = error.what();
  }
  EXPECT_EQ(message, "6");
  EXPECT_EQ(calls, 20);
}

INSTANTIATE_TEST_SUITE_P(Threads, ForEachIndex, testing::Values(0U, 1U, 2U, 64U));

TEST(ThreadCount, IsWhatIsAskedForAndElseAtLeastOne) {
  EXPECT_EQ(thread_count(3), 3U);
  EXPECT_GE(thread_count(0), 1U);
}

TEST(MadeValue, WaitsUntilItIsAskedFor) {
  Made<int> made;
  EXPECT_FALSE(made.has(4));
  made.make([] { return 4; });
  EXPECT_TRUE(made.has(4));
  EXPECT_EQ(made.get(), 4);
}

TEST(MadeValue, ThrowsItsErrorOnlyWhenItIsAskedFor) {
  Made<int> made;
  made.make([]() -> int { throw std::runtime_error{"late"}; });
  EXPECT_FALSE(made.has(0));
  EXPECT_THROW((void)made.get(), std::runtime_error);
}

}  // namespace
}  // namespace cpverify
