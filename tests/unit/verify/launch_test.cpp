#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cpverify/coverage.hpp"
#include "cpverify/error.hpp"
#include "cpverify/finding.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/schedule.hpp"
#include "cpverify/verdict.hpp"
#include "cpverify/verify.hpp"

// Kernels that run without an attention problem, from a file of PTX to a verdict.
namespace cpverify {
namespace {

using testing::HasSubstr;

/// out[i] = in[i] + addend for the 4 threads of a CTA; `spin` never ends, the others have limits.
constexpr const char* kPtx = R"(.version 7.5
.target sm_80
.address_size 64
.visible .entry add(.param .u64 in, .param .u64 out, .param .f32 addend)
{
  .reg .u64 %rd<8>;
  .reg .u32 %r<4>;
  .reg .f32 %f<4>;
  ld.param.u64 %rd1, [in];
  ld.param.u64 %rd2, [out];
  ld.param.f32 %f1, [addend];
  mov.u32 %r1, %tid.x;
  mul.wide.u32 %rd3, %r1, 4;
  add.s64 %rd4, %rd1, %rd3;
  add.s64 %rd5, %rd2, %rd3;
  ld.global.f32 %f2, [%rd4];
  add.rn.f32 %f3, %f2, %f1;
  st.global.f32 [%rd5], %f3;
  ret;
}
.visible .entry spin()
{
  .reg .u32 %r<2>;
  mov.u32 %r1, 0;
AGAIN:
  add.u32 %r1, %r1, 1;
  bra AGAIN;
}
.visible .entry wide()
.maxntid 64, 1, 1
{
  ret;
}
.visible .entry exact()
.reqntid 64, 1, 1
{
  ret;
}
.visible .entry much_shared()
{
  .shared .b8 tile[49168];
  .reg .u32 %r;
  mov.u32 %r, tile;
  ret;
}
.visible .entry some_shared()
{
  .shared .b8 tile[16];
  .reg .u32 %r;
  mov.u32 %r, tile;
  ret;
}
)";

class LaunchScenario : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path{testing::TempDir()} /
              testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(folder_);
    write("k.ptx", kPtx);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  void write(const std::string& name, const std::string& text) {
    std::ofstream{folder_ / name} << text;
  }

  /// One launch with two buffers of 4 floats: `in` holds 0, 1, 2, 3.
  [[nodiscard]] Scenario scenario(const std::string& launches, const std::string& rest = {},
                                  const std::string& file = "k.ptx") const {
    const std::string text = "launch:\n  file: " + file +
                             "\n  instruction_budget: 10000\n  buffers:\n"
                             "    - {name: in, dtype: f32, elements: 4, fill: iota}\n"
                             "    - {name: out, dtype: f32, elements: 4}\n  launches: [" +
                             launches + "]\n" + rest + "\n";
    return parse_scenario(text, folder_ / "x.yaml");
  }

  [[nodiscard]] std::string error_of(const std::string& launches,
                                     const std::string& file = "k.ptx") const {
    try {
      static_cast<void>(verify(scenario(launches, {}, file)));
    } catch (const InputError& error) {
      return error.what();
    }
    return "no error";
  }

  std::filesystem::path folder_;
};

constexpr const char* kAdd = "{entry: add, block: 4, arguments: [in, out, {f32: 0.5}]}";

const CheckResult& result_of(const Verdict& verdict, Check check) {
  const std::vector<CheckResult>& checks = verdict.cells.at(0).checks;
  return *std::find_if(checks.begin(), checks.end(),
                       [check](const CheckResult& result) { return result.check == check; });
}

TEST_F(LaunchScenario, PassesWithAllChecksOfAKernelAlone) {
  const Verdict verdict = verify(scenario(kAdd,
                                          "expect: {values: [{buffer: out, values: [0.5, 1.5, 2.5, "
                                          "3.5]}, {buffer: in, values: [0]}]}"));
  EXPECT_EQ(verdict.outcome, Outcome::passed);
  ASSERT_EQ(verdict.cells.size(), 1U);
  EXPECT_EQ(verdict.cells[0].strategy, StrategyKind::launch);
  for (const Check check :
       {Check::memcheck, Check::initcheck, Check::racecheck, Check::output, Check::determinism}) {
    EXPECT_EQ(result_of(verdict, check).outcome, Outcome::passed) << name(check);
    EXPECT_GT(result_of(verdict, check).compared, 0U) << name(check);
  }
  EXPECT_EQ(result_of(verdict, Check::output).compared, 5U);
  EXPECT_EQ(result_of(verdict, Check::kv_pool).outcome, Outcome::skipped);
}

TEST_F(LaunchScenario, AWrongValueIsAFindingWithItsElement) {
  const Verdict verdict =
      verify(scenario(kAdd, "expect: {values: [{buffer: out, first: 1, values: [1.5, 2, 3]}]}"));
  EXPECT_EQ(verdict.outcome, Outcome::failed);
  ASSERT_EQ(verdict.unexpected_findings.size(), 1U);
  const Finding& finding = verdict.unexpected_findings[0];
  EXPECT_EQ(finding.kind, "value_mismatch");
  EXPECT_EQ(finding.buffer, "out");
  EXPECT_EQ(finding.element, 2);
  EXPECT_EQ(finding.count, 2U);
  EXPECT_EQ(finding.detail, "found 2.5, expected 2");
}

TEST_F(LaunchScenario, WithoutExpectedValuesTheOutputIsNotJudged) {
  EXPECT_EQ(result_of(verify(scenario(kAdd)), Check::output).outcome, Outcome::skipped);
}

TEST_F(LaunchScenario, ALineThatIsExpectedHasToBeTheLine) {
  write("l.ptx",
        std::string{kPtx}.replace(std::string{kPtx}.find("  ld.global.f32"), 0, "  .loc 1 12 3\n") +
            ".file 1 \"k.cu\"\n");
  const std::string past =
      "{entry: add, block: 4, arguments: [{buffer: in, offset: 1}, out, {f32: 1}]}";
  const auto outcome = [&](const std::string& line) {
    return verify(scenario(past,
                           "expect: {findings: [{kind: out_of_bounds_read, source: k.cu, line: " +
                               line + "}]}",
                           "l.ptx"))
        .outcome;
  };
  EXPECT_EQ(outcome("12"), Outcome::passed);
  EXPECT_EQ(outcome("1"), Outcome::failed);
  EXPECT_EQ(outcome("120"), Outcome::failed);
}

TEST_F(LaunchScenario, ReadingAFreedBufferNamesBufferAndLaunch) {
  const Verdict verdict = verify(scenario(std::string{kAdd} + ", {free: in}, " + kAdd));
  ASSERT_EQ(verdict.unexpected_findings.size(), 1U);
  EXPECT_EQ(verdict.unexpected_findings[0].kind, "use_after_free");
  EXPECT_EQ(verdict.unexpected_findings[0].buffer, "in");
  EXPECT_EQ(verdict.unexpected_findings[0].step, 2U);
}

TEST_F(LaunchScenario, AFreedBufferHoldsNoValues) {
  const Verdict verdict = verify(scenario(std::string{kAdd} + ", {free: in}",
                                          "expect: {values: [{buffer: in, values: [0]}]}"));
  ASSERT_EQ(verdict.unexpected_findings.size(), 1U);
  EXPECT_EQ(verdict.unexpected_findings[0].kind, "output_missing");
}

TEST_F(LaunchScenario, ALoopThatNeverEndsMeetsItsBudget) {
  const Verdict verdict = verify(scenario("{entry: spin, block: 4}"));
  ASSERT_EQ(verdict.unexpected_findings.size(), 1U);
  EXPECT_EQ(verdict.unexpected_findings[0].kind, "deadlock");
  EXPECT_EQ(result_of(verdict, Check::determinism).outcome, Outcome::skipped);
}

TEST_F(LaunchScenario, ARunThatEndedEarlyFailsWhateverIsAskedFor) {
  const Verdict verdict = verify(scenario("{entry: spin, block: 4}", "checks: [racecheck]"));
  EXPECT_EQ(verdict.outcome, Outcome::failed);
  ASSERT_EQ(verdict.unexpected_findings.size(), 1U);
  EXPECT_EQ(verdict.unexpected_findings[0].kind, "run_incomplete");
  EXPECT_THAT(verdict.unexpected_findings[0].detail, HasSubstr("synccheck is not asked for"));
}

TEST_F(LaunchScenario, ALaunchThatTheDriverRefusesIsAFinding) {
  const Verdict verdict = verify(scenario("{entry: exact, block: 63}"));
  ASSERT_EQ(verdict.unexpected_findings.size(), 1U);
  EXPECT_EQ(verdict.unexpected_findings[0].kind, "launch_failed");
  EXPECT_THAT(verdict.unexpected_findings[0].detail, HasSubstr("CUDA_ERROR_INVALID_VALUE"));
  EXPECT_EQ(verify(scenario("{entry: exact, block: 64}")).outcome, Outcome::passed);
}

TEST_F(LaunchScenario, AnEntryThatIsNotThereIsRefusedWithTheNearest) {
  EXPECT_THAT(error_of("{entry: ad}"), HasSubstr("x.yaml:7:"));
  EXPECT_THAT(error_of("{entry: ad}"),
              HasSubstr("did you mean 'add'?; it has: add, spin, wide, exact"));
}

TEST_F(LaunchScenario, ArgumentsThatDoNotFitAreRefused) {
  EXPECT_THAT(error_of("{entry: add, arguments: [in, out]}"),
              HasSubstr("'add' takes 3 arguments, and 2 are given"));
  EXPECT_THAT(error_of("{entry: add, arguments: [in, out, {f32: 1}, {f32: 1}]}"),
              HasSubstr("'add' takes 3 arguments, and 4 are given"));
  EXPECT_THAT(error_of("{entry: add, arguments: [in, out, {f64: 1}]}"),
              HasSubstr("argument 2 of 'add' has 8 bytes; expected 4"));
  EXPECT_THAT(error_of("{entry: add, arguments: [{s32: 1}, out, {f32: 1}]}"),
              HasSubstr("argument 0 of 'add' has 4 bytes; expected 8"));
}

TEST_F(LaunchScenario, ABlockOrSharedMemoryOverTheLimitIsRefusedWithTheLimit) {
  EXPECT_THAT(error_of("{entry: wide, block: 65}"),
              HasSubstr("'block' has 65 threads, and 'wide' is compiled for 64"));
  EXPECT_EQ(error_of("{entry: wide, block: 64}"), "no error");
  EXPECT_THAT(error_of("{entry: much_shared}"),
              HasSubstr("declares 49168 bytes of shared memory; expected at most 49152"));
  // 16 + 232433 = 232449, one more than 227 KiB.
  EXPECT_THAT(error_of("{entry: some_shared, shared_bytes: 232433}"),
              HasSubstr("expected at most 232448 together"));
  EXPECT_EQ(error_of("{entry: some_shared, shared_bytes: 232432}"), "no error");
}

TEST_F(LaunchScenario, TheLargestGridMeetsItsBudget) {
  const Verdict verdict =
      verify(scenario("{entry: exact, grid: [2147483647, 65535, 65535], block: 64}"));
  ASSERT_EQ(verdict.unexpected_findings.size(), 1U);
  EXPECT_EQ(verdict.unexpected_findings[0].kind, "deadlock");
  EXPECT_THAT(verdict.unexpected_findings[0].detail, HasSubstr("instruction budget"));
}

/// A file of 4 MiB in one statement, one label, one name; and scopes in scopes.
TEST_F(LaunchScenario, HugeAndDeeplyNestedTextIsRefusedWithItsPlace) {
  const std::string head = ".version 7.5\n.target sm_80\n.address_size 64\n.visible .entry k() {\n";
  write("deep.ptx", head + std::string(1U << 20U, '{'));
  EXPECT_THAT(error_of("{entry: k}", "deep.ptx"), HasSubstr("deep.ptx:5:"));
  write("name.ptx", head + std::string(1U << 22U, 'a'));
  EXPECT_THAT(error_of("{entry: k}", "name.ptx"), HasSubstr("name.ptx:5:"));
  write("list.ptx", head + "mov.u32 " + std::string(1U << 22U, '{'));
  EXPECT_THAT(error_of("{entry: k}", "list.ptx"), HasSubstr("list.ptx:5:"));
}

TEST_F(LaunchScenario, RecursionIsRefusedAtTheCall) {
  write("r.ptx",
        ".version 7.5\n.target sm_80\n.address_size 64\n.func f()\n{\ncall.uni f, ();\nret;\n}\n"
        ".visible .entry k()\n{\ncall.uni f, ();\nret;\n}\n");
  EXPECT_THAT(error_of("{entry: k}", "r.ptx"), HasSubstr("r.ptx:6:10: recursive call of 'f'"));
}

/// Every piece of a file from its beginning is either refused or runs; nothing else happens.
TEST_F(LaunchScenario, TruncatedTextIsRefusedOrRuns) {
  const std::string whole{kPtx};
  for (std::size_t length = 0; length < whole.size(); length += 7) {
    write("cut.ptx", whole.substr(0, length));
    const std::string error = error_of(kAdd, "cut.ptx");
    EXPECT_TRUE(error == "no error" || error.find("cut.ptx") != std::string::npos ||
                error.find("has no entry") != std::string::npos)
        << length << ": " << error;
  }
}

TEST_F(LaunchScenario, AFileThatIsNotThereOrNotPtxIsRefused) {
  EXPECT_THAT(error_of(kAdd, "missing.ptx"), HasSubstr("x.yaml:2:9: cannot read"));
  write("empty.ptx", "");
  EXPECT_THAT(error_of(kAdd, "empty.ptx"), HasSubstr("empty.ptx: holds no .entry"));
  write("half.ptx", std::string{kPtx}.substr(0, 400));
  EXPECT_THAT(error_of(kAdd, "half.ptx"), HasSubstr("half.ptx:"));
}

TEST_F(LaunchScenario, OptionsForAttentionChangeNothing) {
  VerifyOptions options;
  options.strategies = {StrategyKind::zigzag};
  options.modes = {DataMode::poison};
  Coverage coverage;
  options.coverage = &coverage;
  const Verdict verdict = verify(scenario(kAdd), options);
  EXPECT_EQ(verdict.outcome, Outcome::passed);
  ASSERT_EQ(verdict.cells.size(), 1U);
  EXPECT_FALSE(coverage.kernels.empty());
}

TEST_F(LaunchScenario, TheSeedIsThatOfRandomBuffers) {
  Scenario random = scenario(kAdd);
  random.launch->buffers[0].fill = BufferFill::random;
  VerifyOptions other;
  other.seed = 1;
  const std::string digest = verify(random).cells.at(0).digest;
  EXPECT_EQ(digest, verify(random).cells.at(0).digest);
  EXPECT_NE(digest, verify(random, other).cells.at(0).digest);
}

TEST_F(LaunchScenario, EveryScheduleButTheSeededOnesIsRaceChecked) {
  VerifyOptions options;
  options.schedule = ScheduleSpec{SchedulePolicy::reverse, 0, 3};
  EXPECT_EQ(verify(scenario(kAdd), options).outcome, Outcome::passed);
}

}  // namespace
}  // namespace cpverify
