#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>

#include "fuzz/targets.hpp"

// What fuzzing found interesting, or broken, stays harmless. Returning is all that is asked: a
// crash, an exception of another kind or a hang ends the test.
namespace cpverify {
namespace {

template <class Target>
std::size_t replay(const char* folder, Target target) {
  std::size_t count = 0;
  const std::filesystem::path corpus =
      std::filesystem::path{CPVERIFY_SOURCE_DIR} / "tests" / "fuzz" / "corpus" / folder;
  for (const auto& entry : std::filesystem::directory_iterator{corpus}) {
    SCOPED_TRACE(entry.path().string());
    std::ifstream stream{entry.path(), std::ios::binary};
    const std::string text{std::istreambuf_iterator<char>{stream},
                           std::istreambuf_iterator<char>{}};
    target(text);
    ++count;
  }
  return count;
}

TEST(FuzzCorpus, OfPtxIsRefusedOrRuns) {
  EXPECT_GE(replay("ptx", fuzz::run_ptx), 10U);
}

TEST(FuzzCorpus, OfScenariosIsRefusedOrRead) {
  EXPECT_GE(replay("scenario", fuzz::run_scenario), 10U);
}

}  // namespace
}  // namespace cpverify
