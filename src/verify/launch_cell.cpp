#include "verify/launch_cell.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cpverify/coverage.hpp"
#include "cpverify/dtype.hpp"
#include "cpverify/finding.hpp"
#include "cpverify/ids.hpp"
#include "cpverify/launch.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/verdict.hpp"
#include "cpverify/verify.hpp"
#include "gpu/lane.hpp"
#include "numerics/convert.hpp"
#include "run/launch_runner.hpp"
#include "scenario/schema.hpp"
#include "support/check.hpp"
#include "support/parallel.hpp"
#include "verify/kernel_directory.hpp"
#include "verify/lanes.hpp"
#include "verify/launch_check.hpp"

namespace cpverify::verify_detail {
namespace {

using Bytes = std::span<const std::byte>;

bool is_float(DType dtype) noexcept {
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

std::int64_t integer(Bytes element) {
  std::int64_t value = 0;
  std::memcpy(&value, element.data(), element.size());
  return element.size() == 4 ? static_cast<std::int32_t>(value) : value;
}

std::string element_text(DType dtype, Bytes element) {
  return is_float(dtype) ? fmt::format("{}", numerics::widen(dtype, element).front())
                         : fmt::format("{}", integer(element));
}

/// Equal values: every NaN is equal to every other, and -0 to 0.
bool is_equal(DType dtype, Bytes left, Bytes right) {
  if (!is_float(dtype)) return std::equal(left.begin(), left.end(), right.begin());
  const float a = numerics::widen(dtype, left).front();
  const float b = numerics::widen(dtype, right).front();
  return a == b || (std::isnan(a) && std::isnan(b));
}

class LaunchJudge {
 public:
  LaunchJudge(const Scenario& scenario, const VerifyOptions& options)
      : scenario_{scenario}, spec_{*scenario.launch}, options_{options} {}

  CellVerdict judge();

 private:
  /// What one run gave, before anybody asked for it.
  struct Attempt {
    run::LaunchCapture capture;
    Coverage coverage;
  };

  [[nodiscard]] Attempt execute() const;
  void execute_all();
  const run::LaunchCapture& take(const Made<Attempt>& made);
  CheckResult judge_check(Check check);
  void judge_checker(CheckResult& result);
  void judge_output(CheckResult& result);
  void judge_values(const ExpectedValues& expected, CheckResult& result);
  void judge_determinism(CheckResult& result);
  void add(Check check, std::string kind, std::string detail);

  const Scenario& scenario_;
  const LaunchSpec& spec_;
  const VerifyOptions& options_;
  std::string kernel_directory_;
  Made<Attempt> first_;
  Made<Attempt> second_;
  bool is_second_made_ = false;
  run::LaunchCapture run_;
  CellVerdict verdict_;
};

LaunchJudge::Attempt LaunchJudge::execute() const {
  const std::unique_ptr<gpu::Lane> lane = open_lane(scenario_, options_, 1);
  run::LaunchRunOptions run_options;
  run_options.kernel_directory = kernel_directory_;
  run_options.seed = scenario_.data.seed;
  Attempt attempt{run::run_launches(spec_, *lane, run_options), {}};
  if (options_.coverage != nullptr) attempt.coverage = lane->take_coverage();
  return attempt;
}

/// With two threads, the run and at the same time its repetition, which nobody may come to need.
void LaunchJudge::execute_all() {
  const unsigned threads = thread_count(options_.jobs);
  is_second_made_ = threads > 1 && scenario_.asks_for(Check::determinism);
  for_each_index(is_second_made_ ? 2 : 1, threads, [this](std::size_t i) {
    Made<Attempt>& made = i == 0 ? first_ : second_;
    made.make([this] { return execute(); });
  });
}

const run::LaunchCapture& LaunchJudge::take(const Made<Attempt>& made) {
  const Attempt& attempt = made.get();
  if (options_.coverage != nullptr) options_.coverage->merge(attempt.coverage);
  return attempt.capture;
}

void LaunchJudge::add(Check check, std::string kind, std::string detail) {
  Finding finding;
  finding.check = check;
  finding.kind = std::move(kind);
  finding.strategy = StrategyKind::launch;
  finding.rank = RankId{0};
  finding.step = static_cast<std::uint32_t>(spec_.steps.size() - 1);
  finding.detail = std::move(detail);
  verdict_.findings.push_back(std::move(finding));
}

/// What the checkers saw is of one run, each with its place: one does not hide the others.
void LaunchJudge::judge_checker(CheckResult& result) {
  if (!run_.has_checkers) {
    result.reason = "the lane has no checkers";
    return;
  }
  result.outcome = Outcome::passed;
  result.compared = run_.operations;
  result.reason = fmt::format("{} operations watched", run_.operations);
  for (const Finding& finding : run_.findings) {
    if (finding.check == result.check) verdict_.findings.push_back(finding);
  }
}

void LaunchJudge::judge_values(const ExpectedValues& expected, CheckResult& result) {
  const LaunchBuffer& buffer = spec_.buffers[expected.buffer.value()];
  const std::size_t element = size_bytes(buffer.dtype);
  const Bytes found{run_.buffers[expected.buffer.value()]};
  if (found.empty())
    return add(Check::output, "output_missing", fmt::format("'{}' was freed", buffer.name));
  std::uint64_t bad = 0;
  for (std::size_t at = 0; at < expected.values.size(); at += element) {
    const Bytes want = Bytes{expected.values}.subspan(at, element);
    const std::size_t first = static_cast<std::size_t>(expected.first) * element;
    const Bytes have = found.subspan(first + at, element);
    ++result.compared;
    if (is_equal(buffer.dtype, want, have)) continue;
    if (bad++ == 0) {
      add(Check::output, "value_mismatch",
          fmt::format("found {}, expected {}", element_text(buffer.dtype, have),
                      element_text(buffer.dtype, want)));
      verdict_.findings.back().buffer = buffer.name;
      verdict_.findings.back().element = expected.first + static_cast<std::int64_t>(at / element);
    }
  }
  if (bad > 0) verdict_.findings.back().count = bad;
}

void LaunchJudge::judge_output(CheckResult& result) {
  if (spec_.expected_values.empty()) {
    result.reason = "no values are expected";
    return;
  }
  if (!run_.is_complete) return add(Check::output, "output_missing", "the run ended early");
  result.outcome = Outcome::passed;
  for (const ExpectedValues& expected : spec_.expected_values) judge_values(expected, result);
}

void LaunchJudge::judge_determinism(CheckResult& result) {
  if (!verdict_.findings.empty()) {
    result.reason = "after findings";
    return;
  }
  if (!is_second_made_) second_.make([this] { return execute(); });
  const run::LaunchCapture& rerun = take(second_);
  result.outcome = Outcome::passed;
  result.compared = 1;
  if (rerun.digest == run_.digest) return;
  add(Check::determinism, "nondeterminism",
      fmt::format("a second run gave the digest {:016x}, this one {:016x}", rerun.digest,
                  run_.digest));
}

CheckResult LaunchJudge::judge_check(Check check) {
  CheckResult result;
  result.check = check;
  if (!scenario_.asks_for(check)) {
    result.reason = "not asked for";
    return result;
  }
  const std::size_t known = verdict_.findings.size();
  if (check == Check::output) {
    judge_output(result);
  } else if (check == Check::determinism) {
    judge_determinism(result);
  } else {
    judge_checker(result);
  }
  if (verdict_.findings.size() > known) result.outcome = Outcome::failed;
  return result;
}

/// A run that ended early is a finding even when the check that would say why is not asked for.
void add_incomplete(const run::LaunchCapture& run, CellVerdict& verdict) {
  if (run.is_complete || !verdict.findings.empty()) return;
  for (const Finding& reason : run.findings) {
    Finding finding = reason;
    finding.detail =
        fmt::format("{} ({} is not asked for): {}", reason.kind, name(reason.check), reason.detail);
    finding.kind = "run_incomplete";
    verdict.findings.push_back(std::move(finding));
  }
  CPVERIFY_CHECK(!verdict.findings.empty());
}

CellVerdict LaunchJudge::judge() {
  kernel_directory_ =
      options_.kernel_directory.empty() ? default_kernel_directory() : options_.kernel_directory;
  check_launches(spec_, kernel_directory_);
  execute_all();
  run_ = take(first_);
  verdict_.strategy = StrategyKind::launch;
  verdict_.digest = fmt::format("{:016x}", run_.digest);
  for (const Check check : scenario::kChecks) verdict_.checks.push_back(judge_check(check));
  add_incomplete(run_, verdict_);
  const auto has = [this](Outcome outcome) {
    return std::any_of(verdict_.checks.begin(), verdict_.checks.end(),
                       [outcome](const CheckResult& check) { return check.outcome == outcome; });
  };
  verdict_.outcome = Outcome::skipped;
  if (has(Outcome::passed)) verdict_.outcome = Outcome::passed;
  if (!verdict_.findings.empty()) verdict_.outcome = Outcome::failed;
  return std::move(verdict_);
}

}  // namespace

CellVerdict judge_launches(const Scenario& scenario, const VerifyOptions& options) {
  CPVERIFY_CHECK(scenario.launch.has_value());
  return LaunchJudge{scenario, options}.judge();
}

}  // namespace cpverify::verify_detail
