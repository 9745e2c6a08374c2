#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "cpverify/schedule.hpp"
#include "support/rng.hpp"
#include "unit/sim/lane_program.hpp"
#include "unit/sim/simulated_device.hpp"

/// Random kernels whose lanes diverge and that have no races: they give the same bytes whether
/// threads meet again as soon as they can or at `.sync` instructions only, in every order.
namespace cpverify::sim {
namespace {

constexpr std::uint32_t kThreads = 80;  // Two warps, and a half one.
constexpr std::uint32_t kValues = 6;    // %r1 to %r6 are computed with; %r7 is scratch.

/// Writes one kernel: statements in branches and loops that depend on the lane, and between them,
/// at the outermost level, what lanes of a warp or the warps of the CTA do together.
class Generator {
 public:
  explicit Generator(std::uint64_t seed) : rng_{mix64(seed)} {}

  std::string kernel() {
    text_ =
        ".shared .align 4 .b8 buf[512]; ld.param.u64 %d1, [p0]; mov.u32 %r9, %tid.x; "
        "mad.wide.u32 %d2, %r9, 24, %d1; mov.u32 %r10, buf; mad.lo.u32 %r10, %r9, 4, %r10;\n";
    for (std::uint32_t i = 1; i <= kValues; ++i) {
      text_ += fmt::format("mad.lo.u32 %r{}, %r9, {}, {};\n", i, rng_.below(1000), rng_.below(99));
    }
    for (std::size_t i = 0; i < 8; ++i) {
      statements(0);
      meet();
    }
    store_and_return("");
    return kernel_text(1, text_);
  }

 private:
  std::string value() { return fmt::format("%r{}", 1 + rng_.below(kValues)); }

  void store_and_return(const std::string& guard) {
    for (std::uint32_t i = 0; i < kValues; ++i) {
      text_ += fmt::format("{}st.global.u32 [%d2+{}], %r{};\n", guard, 4 * i, i + 1);
    }
    text_ += guard + "ret;\n";
  }

  void statements(std::uint32_t depth) {
    const std::uint64_t count = 1 + rng_.below(4);
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t kind = depth < 3 ? rng_.below(6) : rng_.below(4);
      if (kind < 3) {
        arithmetic();
      } else if (kind == 3) {
        // Its own word: no other thread looks at it now.
        text_ +=
            fmt::format("st.shared.u32 [%r10], {}; ld.shared.u32 {}, [%r10];\n", value(), value());
      } else if (kind == 4) {
        branch(depth);
      } else {
        loop(depth);
      }
    }
  }

  void arithmetic() {
    constexpr const char* kOperations[] = {"add.u32", "mul.lo.u32", "xor.b32", "sub.u32",
                                           "min.u32"};
    text_ += fmt::format("{} {}, {}, {};\n", kOperations[rng_.below(5)], value(), value(), value());
  }

  /// Sets %p1 to a bit of a value.
  void predicate() {
    text_ += fmt::format("and.b32 %r7, {}, {}; setp.ne.u32 %p1, %r7, 0;\n", value(),
                         1U << rng_.below(5));
  }

  void branch(std::uint32_t depth) {
    const std::uint32_t label = label_++;
    predicate();
    text_ += fmt::format("@%p1 bra ELSE{};\n", label);
    statements(depth + 1);
    const bool has_else = rng_.below(2) == 0;
    if (has_else) text_ += fmt::format("bra.uni END{};\n", label);
    text_ += fmt::format("ELSE{}:\n", label);
    if (has_else) statements(depth + 1);
    if (has_else) text_ += fmt::format("END{}:\n", label);
  }

  /// 1 to 4 times, by a value before the loop. %r11 to %r16 count.
  void loop(std::uint32_t depth) {
    const std::uint32_t label = label_++;
    const std::uint32_t left = 11 + depth;
    text_ += fmt::format("and.b32 %r{}, {}, 3;\nLOOP{}:\n", left, value(), label);
    statements(depth + 1);
    text_ += fmt::format("setp.ne.u32 %p1, %r{0}, 0; sub.u32 %r{0}, %r{0}, 1; @%p1 bra LOOP{1};\n",
                         left, label);
  }

  void meet() {
    switch (rng_.below(8)) {
      case 0:
        text_ += fmt::format("shfl.sync.bfly.b32 {}, {}, {}, 31, -1;\n", value(), value(),
                             1 + rng_.below(31));
        return;
      case 1:
        predicate();
        text_ += fmt::format("vote.sync.ballot.b32 {}, %p1, -1;\n", value());
        return;
      case 2:
        // Lanes of equal value form groups.
        text_ += fmt::format(
            "and.b32 %r7, {0}, 3; match.any.sync.b32 %r8, %r7, -1; redux.sync.add.u32 {1}, {2}, "
            "%r8;\n",
            value(), value(), value());
        return;
      case 3:
        text_ += "bar.sync 0;\n";
        return;
      case 4:
        // The word of another thread of the CTA.
        text_ += fmt::format(
            "bar.sync 0; st.shared.u32 [%r10], {0}; bar.sync 0; xor.b32 %r7, %r9, 64; "
            "mov.u32 %r8, buf; mad.lo.u32 %r7, %r7, 4, %r8; setp.lt.u32 %p1, %r9, 16; "
            "@%p1 ld.shared.u32 {1}, [%r7]; bar.sync 0;\n",
            value(), value());
        return;
      case 5:
        // The word of another lane.
        text_ += fmt::format(
            "bar.warp.sync -1; st.shared.u32 [%r10], {0}; bar.warp.sync -1; xor.b32 %r7, %r10, 4; "
            "ld.shared.u32 {1}, [%r7]; bar.warp.sync -1;\n",
            value(), value());
        return;
      case 6:
        if (has_left_) return;
        has_left_ = true;
        // Some lanes of each warp are done; but not those that case 4 and 5 look at.
        text_ += "and.b32 %r7, %r9, 30; setp.eq.u32 %p1, %r7, 30;\n";
        store_and_return("@%p1 ");
        return;
      default:
        text_ += "bar.warp.sync -1;\n";
    }
  }

  Rng rng_;
  std::string text_;
  std::uint32_t label_ = 0;
  bool has_left_ = false;
};

struct Outcome {
  std::string faults;
  U32s words;
};

Outcome run(const std::string& kernel, const ScheduleSpec& schedule) {
  SimulatedDevice device;
  const std::uint64_t words = device.upload(U32s(kThreads * kValues, 0));
  device.load(kernel);
  LaunchRequest request = race_checked({1, 1, 1}, {kThreads, 1, 1});
  request.schedule = schedule;
  const LaunchResult result = device.run("k", request, Parameters{words});
  return {describe(result.faults), device.download<std::uint32_t>(words, kThreads * kValues)};
}

TEST(ThreadsProperty, DivergentKernelsWithoutRacesGiveTheSameBytesEitherWay) {
  constexpr ThreadScheduling kIndependent = ThreadScheduling::independent;
  for (std::uint64_t seed = 0; seed < 60; ++seed) {
    const std::string kernel = Generator{seed}.kernel();
    const Outcome converged = run(kernel, {});
    ASSERT_EQ(converged.faults, "") << "seed " << seed << "\n" << kernel;
    for (const ScheduleSpec& schedule :
         {ScheduleSpec{SchedulePolicy::round_robin, 0, 3, kIndependent},
          ScheduleSpec{SchedulePolicy::reverse, 0, 3, kIndependent},
          ScheduleSpec{SchedulePolicy::run_to_block, 0, 3, kIndependent},
          ScheduleSpec{SchedulePolicy::random, seed, 3, kIndependent},
          ScheduleSpec{SchedulePolicy::pct, seed, 3, kIndependent}}) {
      const Outcome independent = run(kernel, schedule);
      ASSERT_EQ(independent.faults, "") << "seed " << seed << " " << text(schedule) << "\n"
                                        << kernel;
      ASSERT_EQ(independent.words, converged.words)
          << "seed " << seed << " " << text(schedule) << "\n"
          << kernel;
    }
  }
}

}  // namespace
}  // namespace cpverify::sim
