#include <fstream>
#include <iterator>
#include <string>
#include <string_view>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cpverify/dtype.hpp"
#include "cpverify/mma_accumulation.hpp"
#include "cpverify/reduction.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/schedule.hpp"
#include "scenario/schema.hpp"

namespace cpverify {
namespace {

std::string read(const std::string& path) {
  std::ifstream stream{std::string{CPVERIFY_SOURCE_DIR} + "/" + path, std::ios::binary};
  return {std::istreambuf_iterator<char>{stream}, std::istreambuf_iterator<char>{}};
}

/// The part of docs/scenario.md under the heading of a section, up to the next one.
std::string part_of(const std::string& page, std::string_view section) {
  const std::size_t start = page.find(fmt::format("\n## `{}`\n", section));
  if (start == std::string::npos) return {};
  return page.substr(start, page.find("\n## ", start + 1) - start);
}

TEST(ScenarioPage, DocumentsEveryKeyInItsSection) {
  const std::string page = read("docs/scenario.md");
  ASSERT_FALSE(page.empty());
  for (const scenario::SectionKeys& section : scenario::schema()) {
    const std::string part = part_of(page, section.name);
    ASSERT_FALSE(part.empty()) << section.name;
    for (const std::string& key : section.keys) {
      EXPECT_NE(part.find(fmt::format("| `{}` |", key)), std::string::npos)
          << "key '" << key << "' of section '" << section.name << "'";
    }
  }
}

TEST(ScenarioPage, NamesEveryWord) {
  const std::string page = read("docs/scenario.md");
  const auto expect_all = [&page](const auto& words) {
    for (const auto word : words) {
      EXPECT_NE(page.find(fmt::format("`{}`", name(word))), std::string::npos) << name(word);
    }
  };
  expect_all(scenario::kAttentionKinds);
  expect_all(scenario::kModelDTypes);
  expect_all(scenario::kDataModes);
  expect_all(scenario::kStrategies);
  expect_all(scenario::kAttentionKernels);
  expect_all(kSchedulePolicies);
  expect_all(kMmaAccumulations);
  expect_all(kReductionOrders);
  expect_all(scenario::kChecks);
  expect_all(scenario::kBufferDTypes);
  expect_all(scenario::kBufferFills);
}

}  // namespace
}  // namespace cpverify
