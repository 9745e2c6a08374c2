#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <variant>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cpverify/dtype.hpp"
#include "cpverify/error.hpp"
#include "cpverify/launch.hpp"
#include "cpverify/scenario.hpp"

namespace cpverify {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

/// A valid scenario of one launch; a test replaces what it is about.
struct LaunchText {
  std::string module = "module: m";                                       // line 2
  std::string buffers = "buffers: [{name: a, dtype: f32, elements: 4}]";  // line 3
  std::string launches = "launches: [{entry: k, arguments: [a]}]";        // line 4
  std::string rest{};                                                     // line 5

  [[nodiscard]] std::string text() const {
    std::string joined = "launch:\n";
    for (const std::string& line : {module, buffers, launches}) joined += "  " + line + "\n";
    return rest.empty() ? joined : joined + rest + "\n";
  }
};

Scenario read(const LaunchText& text) {
  return parse_scenario(text.text(), "folder/x.yaml");
}

std::string error_of(const LaunchText& text) {
  try {
    static_cast<void>(read(text));
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

std::string with_buffers(const std::string& line) {
  return error_of({.buffers = "buffers: [" + line + "]"});
}
std::string with_launches(const std::string& line) {
  return error_of({.launches = "launches: [" + line + "]"});
}
std::string with_rest(const std::string& line) {
  return error_of({.rest = line});
}

template <class T>
std::vector<T> elements(const std::vector<std::byte>& bytes) {
  std::vector<T> values(bytes.size() / sizeof(T));
  if (!values.empty()) std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

TEST(LaunchReader, ReadsKernelsBuffersAndArguments) {
  const Scenario scenario =
      read({.buffers = "buffers: [{name: a, dtype: i64, elements: 4, fill: iota}, "
                       "{name: b, dtype: f32, values: [1.5, -inf]}]",
            .launches = "launches: [{entry: k, grid: [2, 3], block: 64, shared_bytes: 128, "
                        "arguments: [a, {buffer: b, offset: -1}, {s32: -7}, {u32: 4294967295}, "
                        "{u64: 18446744073709551615}, {f32: 0.5}, {f64: 1}]}, {free: a}]"});
  ASSERT_TRUE(scenario.launch);
  EXPECT_EQ(scenario.strategies, std::vector{StrategyKind::launch});
  ASSERT_EQ(scenario.launch->steps.size(), 2U);
  const Launch& launch = std::get<Launch>(scenario.launch->steps[0].action);
  EXPECT_EQ(launch.module, "m");
  EXPECT_EQ(launch.grid, (std::array<std::uint32_t, 3>{2, 3, 1}));
  EXPECT_EQ(launch.block, (std::array<std::uint32_t, 3>{64, 1, 1}));
  EXPECT_EQ(launch.shared_bytes, 128U);
  ASSERT_EQ(launch.arguments.size(), 7U);
  EXPECT_EQ(std::get<BufferRef>(launch.arguments[0]).buffer, BufferId{0});
  EXPECT_EQ(std::get<BufferRef>(launch.arguments[1]).offset_elems, -1);
  EXPECT_EQ(std::get<std::int32_t>(launch.arguments[2]), -7);
  EXPECT_EQ(std::get<std::int32_t>(launch.arguments[3]), -1);
  EXPECT_EQ(std::get<std::int64_t>(launch.arguments[4]), -1);
  EXPECT_EQ(std::get<float>(launch.arguments[5]), 0.5F);
  EXPECT_EQ(std::get<std::int64_t>(launch.arguments[6]), 0x3ff0000000000000);  // 1.0
  EXPECT_EQ(std::get<FreeBuffer>(scenario.launch->steps[1].action).buffer, BufferId{0});
  EXPECT_EQ(scenario.launch->buffers[1].elements, 2);
}

TEST(LaunchReader, FindsAFileBesideTheScenario) {
  EXPECT_EQ(read({.module = "file: sub/k.ptx"}).launch->file, "folder/sub/k.ptx");
  EXPECT_EQ(read({.module = "file: /abs/k.ptx"}).launch->file, "/abs/k.ptx");
}

TEST(LaunchReader, ChecksEverythingThatAKernelAloneHasAndRacesToo) {
  EXPECT_EQ(read({}).checks, (std::vector{Check::memcheck, Check::initcheck, Check::racecheck,
                                          Check::synccheck, Check::output, Check::determinism}));
  EXPECT_EQ(read({.rest = "checks: [racecheck, memcheck]"}).checks,
            (std::vector{Check::memcheck, Check::racecheck}));
}

TEST(LaunchReader, ReadsExpectedValuesInTheTypeOfTheBuffer) {
  const Scenario scenario =
      read({.rest = "expect: {values: [{buffer: a, first: 1, values: [2, nan]}]}"});
  ASSERT_EQ(scenario.launch->expected_values.size(), 1U);
  const ExpectedValues& expected = scenario.launch->expected_values[0];
  EXPECT_EQ(expected.first, 1);
  const std::vector<float> values = elements<float>(expected.values);
  ASSERT_EQ(values.size(), 2U);
  EXPECT_EQ(values[0], 2.0F);
  EXPECT_NE(values[1], values[1]);
}

TEST(LaunchReader, FillsBuffersAsAsked) {
  LaunchBuffer buffer{.name = "a", .dtype = DType::i32, .elements = 3, .values = {}};
  EXPECT_TRUE(initial_bytes(buffer, 0).empty());
  buffer.fill = BufferFill::zero;
  EXPECT_EQ(elements<std::int32_t>(initial_bytes(buffer, 0)), (std::vector{0, 0, 0}));
  buffer.fill = BufferFill::iota;
  EXPECT_EQ(elements<std::int32_t>(initial_bytes(buffer, 0)), (std::vector{0, 1, 2}));
  buffer.dtype = DType::f32;
  EXPECT_EQ(elements<float>(initial_bytes(buffer, 0)), (std::vector{0.0F, 1.0F, 2.0F}));
  buffer.fill = BufferFill::random;
  const std::vector<std::byte> random = initial_bytes(buffer, 1);
  EXPECT_EQ(random, initial_bytes(buffer, 1));
  EXPECT_NE(random, initial_bytes(buffer, 2));
  for (const float value : elements<float>(random)) {
    EXPECT_GE(value, -1.0F);
    EXPECT_LT(value, 1.0F);
  }
  buffer.dtype = DType::u8;
  buffer.fill = BufferFill::iota;
  buffer.elements = 257;  // Wraps: the last element is 256 mod 256.
  EXPECT_EQ(initial_bytes(buffer, 0)[256], std::byte{0});
  buffer.elements = 0;
  EXPECT_TRUE(initial_bytes(buffer, 0).empty());
}

TEST(LaunchReader, NamesThePlaceOfMistakesInBuffers) {
  EXPECT_THAT(with_buffers("{name: a, dtype: f23, elements: 4}"),
              StartsWith("folder/x.yaml:3:30: unknown dtype 'f23'; did you mean 'f32'"));
  EXPECT_THAT(with_buffers("{name: a, dtype: f32}"), HasSubstr("missing key 'elements'"));
  EXPECT_THAT(with_buffers("{name: a, dtype: f32, elements: -1}"), HasSubstr("expected 0 to"));
  EXPECT_THAT(with_buffers("{name: a, dtype: f32, elements: 68719476736}"),
              HasSubstr("expected 0 to 67108864"));
  EXPECT_THAT(with_buffers("{name: a, dtype: f32, elements: 60000000}, "
                           "{name: b, dtype: f32, elements: 60000000}"),
              HasSubstr("more than 268435456 bytes in all"));
  EXPECT_THAT(with_buffers("{name: a, dtype: f32, elements: 4, fill: iotta}"),
              HasSubstr("did you mean 'iota'"));
  EXPECT_THAT(with_buffers("{name: a, dtype: f32, elements: 4, fill: iota, values: [1]}"),
              HasSubstr("leave one out"));
  EXPECT_THAT(with_buffers("{name: a, dtype: f32, elements: 4, values: [1]}"),
              HasSubstr("'values' has 1 entries, but 'elements' is 4"));
  EXPECT_THAT(with_buffers("{name: a, dtype: u8, values: [256]}"), HasSubstr("expected 0 to 255"));
  EXPECT_THAT(with_buffers("{name: a, dtype: f32, values: [1x]}"), HasSubstr("a number"));
  EXPECT_THAT(
      with_buffers("{name: a, dtype: f32, elements: 1}, {name: a, dtype: f32, elements: 1}"),
      HasSubstr("two buffers are named 'a'"));
}

TEST(LaunchReader, NamesThePlaceOfMistakesInLaunches) {
  EXPECT_THAT(with_launches("{entry: k, arguments: [aa]}"),
              StartsWith("folder/x.yaml:4:37: unknown buffer 'aa'"));
  EXPECT_THAT(with_launches("{grid: 1}"), HasSubstr("missing key 'entry'"));
  EXPECT_THAT(with_launches("{entry: k, grid: 2147483648}"), HasSubstr("expected 1 to 2147483647"));
  EXPECT_THAT(with_launches("{entry: k, grid: [1, 65536]}"), HasSubstr("expected 1 to 65535"));
  EXPECT_THAT(with_launches("{entry: k, grid: [1, 1, 1, 1]}"), HasSubstr("has 4 entries"));
  EXPECT_THAT(with_launches("{entry: k, block: 0}"), HasSubstr("expected 1 to 1024"));
  EXPECT_THAT(with_launches("{entry: k, block: [512, 4]}"), HasSubstr("has 2048 threads"));
  EXPECT_THAT(with_launches("{entry: k, shared_bytes: 232449}"), HasSubstr("expected 0 to 232448"));
  EXPECT_THAT(with_launches("{entry: k, arguments: [{s32: 1, u32: 1}]}"), HasSubstr("one number"));
  EXPECT_THAT(with_launches("{entry: k, arguments: [{offset: 1}]}"), HasSubstr("one number"));
  EXPECT_THAT(with_launches("{entry: k, arguments: [{}]}"), HasSubstr("one number"));
  EXPECT_THAT(with_launches("{entry: k, arguments: [{s32: 2147483648}]}"), HasSubstr("'s32' is"));
  EXPECT_THAT(with_launches("{entry: k, arguments: [{s23: 1}]}"), HasSubstr("'s32'"));
  EXPECT_THAT(with_launches("{free: a, entry: k}"), HasSubstr("'free' stands alone"));
  EXPECT_THAT(with_launches("{free: a}, {free: a}"), HasSubstr("freed twice"));
}

TEST(LaunchReader, RefusesWhatDescribesAttention) {
  EXPECT_THAT(with_rest("topology: {cp: 2}"),
              StartsWith("folder/x.yaml:5:11: 'topology' is for attention"));
  EXPECT_THAT(with_rest("inject: {defect: wrong_slot}"), HasSubstr("'inject' changes plans"));
  EXPECT_THAT(with_rest("data: {modes: [count]}"), HasSubstr("'modes' are for attention"));
  EXPECT_THAT(with_rest("checks: [kv_pool]"), HasSubstr("expected one of: memcheck"));
  EXPECT_THAT(with_rest("expect: {findings: [{head: 0}]}"), HasSubstr("'head' is for attention"));
  EXPECT_THAT(with_rest("expect: {findings: [{rank: 1}]}"), HasSubstr("'rank' is 1"));
  EXPECT_EQ(with_rest("data: {seed: 3}"), "no error");
}

TEST(LaunchReader, RefusesExpectedValuesThatCannotBe) {
  EXPECT_THAT(with_rest("expect: {values: [{buffer: b, values: [1]}]}"),
              HasSubstr("unknown buffer 'b'"));
  EXPECT_THAT(with_rest("expect: {values: [{buffer: a, first: 3, values: [1, 2]}]}"),
              HasSubstr("element 4 is the last of 'values', and 'a' has 4"));
  EXPECT_THAT(with_rest("expect: {}"), HasSubstr("missing key 'findings'"));
}

TEST(LaunchReader, WantsOneSourceOfKernels) {
  EXPECT_THAT(error_of({.module = "instruction_budget: 1"}), HasSubstr("missing key 'module'"));
  EXPECT_THAT(error_of({.module = "{module: m, file: k.ptx}"}), HasSubstr("folder/x.yaml"));
  EXPECT_THAT(error_of({.module = "file: k.cubin"}), HasSubstr("end in .ptx"));
  EXPECT_THAT(error_of({.module = "file: k.ptx\n  module: m"}), HasSubstr("leave one out"));
}

}  // namespace
}  // namespace cpverify
