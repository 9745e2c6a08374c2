#pragma once

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cpverify/finding.hpp"
#include "cpverify/verdict.hpp"

namespace cpverify::test {

/// All findings as lines of field=value, for failure messages.
inline std::string dump(const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    for (const auto& [field, value] : finding.fields()) text += fmt::format("{}={} ", field, value);
    text += '\n';
  }
  return text;
}

inline std::set<std::string> kinds(const std::vector<Finding>& findings) {
  std::set<std::string> all;
  for (const Finding& finding : findings) all.insert(finding.kind);
  return all;
}

/// The only finding has these fields (and perhaps more); `detail` must be contained.
inline void expect_only(const std::vector<Finding>& findings,
                        const std::map<std::string, std::string>& wanted) {
  ASSERT_EQ(findings.size(), 1U) << dump(findings);
  std::map<std::string, std::string> fields = findings.front().fields();
  for (const auto& [field, value] : wanted) {
    if (field == "detail") {
      EXPECT_NE(fields["detail"].find(value), std::string::npos) << fields["detail"];
    } else {
      EXPECT_EQ(fields[field], value) << field << " of " << dump(findings);
    }
  }
}

inline const CheckResult& result_of(const CellVerdict& verdict, Check check) {
  return *std::find_if(verdict.checks.begin(), verdict.checks.end(),
                       [check](const CheckResult& result) { return result.check == check; });
}

}  // namespace cpverify::test
