#include "scenario/trace.hpp"

#include <cstdint>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cpverify/error.hpp"
#include "cpverify/scenario.hpp"
#include "unit/scenario/scenario_text.hpp"

namespace cpverify {
namespace {

using testing::EndsWith;
using testing::HasSubstr;

constexpr const char* kTwoBlocks =
    R"({"timestamp": 0, "input_length": 1000, "output_length": 20, "hash_ids": [0, 1]})";

class Trace : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path{testing::TempDir()} /
              testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  /// Reads a scenario in folder_ whose trace section is `section`, beside trace.jsonl with `lines`.
  [[nodiscard]] Scenario read(const std::string& lines, const std::string& section) const {
    std::ofstream{folder_ / "trace.jsonl", std::ios::binary} << lines;
    const test::ScenarioText text{.requests = "", .rest = "trace: " + section};
    return parse_scenario(text.text(), folder_ / "x.yaml");
  }
  /// The message without the folder.
  [[nodiscard]] std::string error_of(const std::string& lines, const std::string& section) const {
    try {
      static_cast<void>(read(lines, section));
    } catch (const InputError& error) {
      return std::string{error.what()}.substr(folder_.string().size() + 1);
    }
    return "no error";
  }
  [[nodiscard]] std::string error_of(const std::string& lines) const {
    return error_of(lines, "{file: trace.jsonl, scale: 1/10}");
  }

  std::filesystem::path folder_;
};

TEST_F(Trace, ScalesLengthsSharesPrefixesAndCountsSteps) {
  const Scenario scenario = read(
      R"({"timestamp": 5000, "input_length": 1100, "output_length": 19, "hash_ids": [0, 1, 2]})"
      "\n"
      R"({"timestamp": 5999, "input_length": 513, "output_length": 20, "hash_ids": [0, 1]})"
      "\r\n"
      R"({"timestamp": 7000, "input_length": 1536, "output_length": 0, "hash_ids": [0, 1, 9]})"
      "\n"
      R"({"timestamp": 7000, "input_length": 3, "output_length": 0, "hash_ids": [7]})"
      "\n",
      "{file: trace.jsonl, scale: 1/10, milliseconds_per_step: 500}");
  ASSERT_EQ(scenario.requests.size(), 4U);
  const RequestSpec& first = scenario.requests[0];
  EXPECT_EQ(first.id, "r1");
  EXPECT_EQ(first.prompt, 110);
  EXPECT_EQ(first.decode, 1);  // floor(19 / 10)
  EXPECT_EQ(first.arrival_step, 0);
  EXPECT_FALSE(first.shared_prefix);
  EXPECT_EQ(first.where.line, 1);
  const RequestSpec& second = scenario.requests[1];
  EXPECT_EQ(second.prompt, 51);
  EXPECT_EQ(second.decode, 2);
  EXPECT_EQ(second.arrival_step, 1);  // 999 ms at 500 ms per step
  // Two common blocks are 1024 tokens, of which the second request has 513: floor(51.3) = 51.
  ASSERT_TRUE(second.shared_prefix);
  EXPECT_EQ(second.shared_prefix->request, RequestId{0});
  EXPECT_EQ(second.shared_prefix->tokens, 51);
  // Two common blocks with both; the first of the two, of which 1024 tokens are known, is taken.
  ASSERT_TRUE(scenario.requests[2].shared_prefix);
  EXPECT_EQ(scenario.requests[2].shared_prefix->request, RequestId{0});
  EXPECT_EQ(scenario.requests[2].shared_prefix->tokens, 102);
  EXPECT_EQ(scenario.requests[2].arrival_step, 4);
  // 0.3 tokens are at least 1.
  EXPECT_EQ(scenario.requests[3].prompt, 1);
  EXPECT_FALSE(scenario.requests[3].shared_prefix);
}

TEST_F(Trace, TakesALimitedSlice) {
  const std::string lines = std::string{kTwoBlocks} + "\n" + kTwoBlocks + "\n" + kTwoBlocks;
  const Scenario scenario = read(lines, "{file: trace.jsonl, scale: 1/10, first: 1, requests: 1}");
  ASSERT_EQ(scenario.requests.size(), 1U);
  EXPECT_EQ(scenario.requests[0].id, "r2");
  EXPECT_EQ(read(lines, "{file: trace.jsonl, scale: 1/10}").requests.size(), 3U);
}

TEST_F(Trace, DropsASharedPrefixThatScalesToNothing) {
  const std::string lines = std::string{kTwoBlocks} + "\n" + kTwoBlocks;
  EXPECT_FALSE(read(lines, "{file: trace.jsonl, scale: 1/2000}").requests[1].shared_prefix);
}

TEST_F(Trace, NamesTheLineAndColumnOfBrokenJson) {
  const std::string good = std::string{kTwoBlocks} + "\n";
  // The parser fails at byte 16 of the second line, where a value should stand.
  EXPECT_THAT(error_of(good + R"({"timestamp": 0,,})"),
              testing::StartsWith("trace.jsonl:2:17: not JSON; "));
  EXPECT_THAT(error_of(good + "\n" + good), testing::StartsWith("trace.jsonl:2:1: not JSON; "));
  EXPECT_THAT(error_of(good + kTwoBlocks + "x"), HasSubstr("trace.jsonl:2:"));
  EXPECT_THAT(error_of(std::string{kTwoBlocks}.substr(0, 30)), HasSubstr("trace.jsonl:1:31: not"));
  EXPECT_EQ(error_of("[1]"), "trace.jsonl:1:1: expected a JSON object, found array");
  EXPECT_EQ(error_of(R"({"timestamp": 1e999})"), "trace.jsonl:1:1: a number is too large for JSON");
}

TEST_F(Trace, NamesMissingAndImpossibleMembers) {
  EXPECT_EQ(error_of("{}"), "trace.jsonl:1:1: missing key 'timestamp'");
  const auto with = [this](const std::string& length, const std::string& ids) {
    return error_of(R"({"timestamp": 0, "input_length": )" + length +
                    R"(, "output_length": 1, "hash_ids": )" + ids + "}");
  };
  EXPECT_EQ(with("1.5", "[0]"),
            "trace.jsonl:1:1: 'input_length': expected a whole number, found number");
  EXPECT_EQ(with("0", "[]"), "trace.jsonl:1:1: 'input_length' is 0; expected 1 to 4398046511104");
  EXPECT_EQ(with("18446744073709551615", "[]"),
            "trace.jsonl:1:1: 'input_length' is 18446744073709551615; expected 1 to "
            "4398046511104");
  EXPECT_EQ(with("5", "3"), "trace.jsonl:1:1: 'hash_ids': expected a list, found number");
  EXPECT_EQ(with("5", "[-1]"), "trace.jsonl:1:1: 'hash_ids' is -1; expected 0 to 4398046511104");
  EXPECT_EQ(with("513", "[0]"),
            "trace.jsonl:1:1: 'hash_ids' has 1 entries; expected 2, one per 512 tokens of "
            "input_length 513");
}

TEST_F(Trace, RefusesWhatIsTooLongAfterScaling) {
  EXPECT_THAT(error_of(kTwoBlocks, "{file: trace.jsonl, scale: 1000000}"),
              EndsWith("input_length after scaling is 1000000000; expected at most 1048576"));
}

TEST_F(Trace, RefusesTimeThatRunsBackwards) {
  EXPECT_THAT(error_of(R"({"timestamp": 9, "input_length": 1, "output_length": 1, "hash_ids": [0]})"
                       "\n" +
                       std::string{kTwoBlocks}),
              testing::StartsWith("trace.jsonl:2:1: 'timestamp' is before"));
}

TEST_F(Trace, BlamesTheScenarioForItsOwnMistakes) {
  EXPECT_THAT(error_of(kTwoBlocks, "{file: trace.json, scale: 1/2}"),
              testing::AllOf(testing::StartsWith("x.yaml:4:15: no such file: "),
                             EndsWith("; did you mean 'trace.jsonl'?")));
  EXPECT_THAT(error_of(kTwoBlocks, "{file: trace.jsonl, scale: 1/2, first: 1}"),
              EndsWith("has 1 lines; none is left after the first 1"));
  EXPECT_THAT(error_of("", "{file: trace.jsonl, scale: 1/2}"),
              EndsWith("has 0 lines; none is left after the first 0"));
  for (const std::string scale : {"0", "1/0", "-1", "0.5", "1/", "/2", "1/2/3", "x", "1000001"}) {
    EXPECT_EQ(error_of(kTwoBlocks, "{file: trace.jsonl, scale: " + scale + "}"),
              "x.yaml:4:35: 'scale' is '" + scale +
                  "'; expected a fraction like 1/256, of whole numbers from 1 to 1000000");
  }
}

}  // namespace
}  // namespace cpverify
