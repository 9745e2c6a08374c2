#include <algorithm>
#include <cstddef>
#include <fstream>
#include <iterator>
#include <string>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "mutants/defects.hpp"

namespace cpverify {
namespace {

std::string inject_part() {
  std::ifstream stream{std::string{CPVERIFY_SOURCE_DIR} + "/docs/scenario.md", std::ios::binary};
  const std::string page{std::istreambuf_iterator<char>{stream}, std::istreambuf_iterator<char>{}};
  const std::size_t start = page.find("\n## `inject`\n");
  if (start == std::string::npos) return {};
  return page.substr(start, page.find("\n## ", start + 1) - start);
}

/// A defect that a scenario can name is listed where its author looks, with what it takes.
TEST(ScenarioPage, ListsEveryDefectWithItsParameters) {
  const std::string part = inject_part();
  ASSERT_FALSE(part.empty());
  ASSERT_FALSE(mutants::all_defects().empty());
  for (const mutants::DefectInfo& defect : mutants::all_defects()) {
    const std::size_t start =
        part.find(fmt::format("\n| `{}` | {} |", defect.name, defect.summary));
    ASSERT_NE(start, std::string::npos) << defect.name;
    const std::string line = part.substr(start, part.find('\n', start + 1) - start);
    for (const mutants::ParameterInfo& parameter : defect.parameters) {
      EXPECT_NE(line.find(fmt::format("`{}`", parameter.name)), std::string::npos)
          << defect.name << ": " << parameter.name;
    }
  }
}

TEST(ScenarioPage, ListsNoDefectThatDoesNotExist) {
  const std::string part = inject_part();
  const std::size_t table = part.find("| defect | what is wrong |");
  ASSERT_NE(table, std::string::npos);
  const std::string rows = part.substr(table);
  // Two lines of heading, then one line per defect.
  const auto lines = static_cast<std::size_t>(std::count(rows.begin(), rows.end(), '|') / 5);
  EXPECT_EQ(lines, mutants::all_defects().size() + 2);
}

}  // namespace
}  // namespace cpverify
