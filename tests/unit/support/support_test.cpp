#include <map>
#include <string>

#include <gtest/gtest.h>

#include "cpverify/error.hpp"
#include "cpverify/finding.hpp"
#include "support/check.hpp"
#include "support/hash.hpp"

namespace cpverify {
namespace {

// Published FNV-1a 64 test vectors: "" and "a".
TEST(Fnv1a, MatchesThePublishedVectors) {
  EXPECT_EQ(Fnv1a{}.value(), 0xcbf29ce484222325ULL);
  Fnv1a hash;
  hash.add_bytes("a", 1);
  EXPECT_EQ(hash.value(), 0xaf63dc4c8601ec8cULL);
}

TEST(Fnv1a, SeparatesTextsByLength) {
  Fnv1a first;
  first.add("ab");
  first.add("c");
  Fnv1a second;
  second.add("a");
  second.add("bc");
  EXPECT_NE(first.value(), second.value());
}

TEST(InputError, PutsTheKnownPartOfTheLocationFirst) {
  EXPECT_STREQ((InputError{{"a.yaml", 3, 7}, "unknown key 'rank'"}).what(),
               "a.yaml:3:7: unknown key 'rank'");
  EXPECT_STREQ((InputError{{"a.yaml", 0, 0}, "is empty"}).what(), "a.yaml: is empty");
  EXPECT_STREQ((InputError{SourceLocation{}, "no file"}).what(), "no file");
}

TEST(Check, AbortsWithTheExpression) {
  EXPECT_DEATH(CPVERIFY_CHECK(1 + 1 == 3), "check failed: 1 \\+ 1 == 3");
  CPVERIFY_CHECK(true);
}

TEST(Finding, ListsOnlyTheFieldsThatAreSet) {
  Finding finding;
  finding.kind = "lse_error";
  finding.check = Check::lse;
  EXPECT_EQ(finding.fields().count("rank"), 0U);
  finding.rank = RankId{2};
  finding.head = 0U;
  const std::map<std::string, std::string> fields = finding.fields();
  EXPECT_EQ(fields.at("rank"), "2");
  EXPECT_EQ(fields.at("head"), "0");
  EXPECT_EQ(fields.at("check"), "lse");
  EXPECT_EQ(fields.at("step"), "0");
}

}  // namespace
}  // namespace cpverify
