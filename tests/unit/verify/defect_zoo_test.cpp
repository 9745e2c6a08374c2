#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <set>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "cpverify/fault.hpp"
#include "cpverify/launch.hpp"
#include "cpverify/scenario.hpp"
#include "run/fault_findings.hpp"

// That each scenario finds what it expects is a test of its own, made from its file; this is about
// what there has to be.
namespace cpverify {
namespace {

std::vector<Scenario> wrong_scenarios() {
  std::vector<Scenario> scenarios;
  const std::filesystem::path folder =
      std::filesystem::path{CPVERIFY_SOURCE_DIR} / "scenarios" / "wrong";
  for (const auto& entry : std::filesystem::recursive_directory_iterator{folder}) {
    if (entry.path().extension() == ".yaml") scenarios.push_back(load_scenario(entry.path()));
  }
  return scenarios;
}

/// Every FaultKind: those without a name are not there.
std::vector<std::string> fault_kinds() {
  std::vector<std::string> kinds;
  for (std::uint8_t i = 0; i < 255; ++i) {
    const std::string name{run::name(static_cast<FaultKind>(i))};
    if (name == "?") break;
    kinds.push_back(name);
  }
  return kinds;
}

TEST(WrongScenarios, NameTheKindOfWhatTheyExpect) {
  for (const Scenario& scenario : wrong_scenarios()) {
    EXPECT_FALSE(scenario.expect.empty()) << scenario.path;
    for (const ExpectedFinding& finding : scenario.expect) {
      EXPECT_TRUE(finding.fields.contains("kind")) << scenario.path;
    }
  }
}

TEST(WrongScenarios, HaveOneForEveryKindOfFault) {
  std::set<std::string> expected;
  for (const Scenario& scenario : wrong_scenarios()) {
    for (const ExpectedFinding& finding : scenario.expect) {
      const auto kind = finding.fields.find("kind");
      if (kind != finding.fields.end()) expected.insert(kind->second);
    }
  }
  ASSERT_GE(fault_kinds().size(), 8U);
  for (const std::string& kind : fault_kinds()) EXPECT_TRUE(expected.contains(kind)) << kind;
}

TEST(WrongScenarios, ExpectTheSourceLineOfEveryDefectOfAKernel) {
  const std::vector<std::string> kinds = fault_kinds();
  for (const Scenario& scenario : wrong_scenarios()) {
    for (const ExpectedFinding& finding : scenario.expect) {
      const auto kind = finding.fields.find("kind");
      const bool is_fault = kind != finding.fields.end() &&
                            std::find(kinds.begin(), kinds.end(), kind->second) != kinds.end();
      if (!is_fault || !finding.fields.contains("kernel")) continue;
      // A call of the host has no line, and the defect of this kernel is an operand.
      const std::string& kernel = finding.fields.at("kernel");
      const bool is_call = kernel.starts_with("cuMem") || kernel.starts_with("nccl");
      if (is_call || kernel == "endless_loop") continue;
      EXPECT_TRUE(finding.fields.contains("line") && finding.fields.contains("source"))
          << scenario.path;
    }
  }
}

TEST(WrongScenarios, LaunchFortyDefectiveKernelsAndMore) {
  std::set<std::pair<std::string, std::string>> kernels;
  for (const Scenario& scenario : wrong_scenarios()) {
    if (!scenario.launch) continue;
    const LaunchStep& last = scenario.launch->steps.back();
    if (const auto* launch = std::get_if<Launch>(&last.action)) {
      kernels.emplace(launch->module, launch->entry);
    }
  }
  EXPECT_GE(kernels.size(), 40U);
}

}  // namespace
}  // namespace cpverify
