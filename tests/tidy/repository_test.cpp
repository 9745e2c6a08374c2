#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tidy/rules.hpp"
#include "tidy/source_tree.hpp"

namespace cpverify::tidy {
namespace {

class Repository : public testing::TestWithParam<Rule> {};

TEST_P(Repository, Obeys) {
  static const std::vector<SourceFile> tree = load_tree(CPVERIFY_SOURCE_DIR);
  for (const Violation& violation : GetParam().check(tree)) {
    ADD_FAILURE() << violation.path << ":" << violation.line << ": " << violation.message;
  }
}

INSTANTIATE_TEST_SUITE_P(All, Repository, testing::ValuesIn(all_rules()),
                         [](const auto& rule) { return std::string{rule.param.name}; });

// The rules see nothing when the tree is read from the wrong place, and then nothing fails.
TEST(LoadTree, SeesTheLayersTheTestsAndTheLauncher) {
  const std::vector<SourceFile> tree = load_tree(CPVERIFY_SOURCE_DIR);
  std::vector<std::string> wanted{"include/cpverify/verify.hpp", "src/judge/judge.hpp", "cpverify",
                                  "tests/tidy/repository_test.cpp", "CMakeLists.txt"};
  for (const SourceFile& file : tree) std::erase(wanted, file.path);
  EXPECT_TRUE(wanted.empty()) << wanted.front();
}

TEST(LoadTree, LeavesOutBuildFolders) {
  for (const SourceFile& file : load_tree(CPVERIFY_SOURCE_DIR)) {
    EXPECT_FALSE(file.path.starts_with("build")) << file.path;
  }
}

}  // namespace
}  // namespace cpverify::tidy
