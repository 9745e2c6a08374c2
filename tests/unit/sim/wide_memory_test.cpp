#include <cstdint>
#include <string>

#include <gtest/gtest.h>

#include "cpverify/error.hpp"
#include "cpverify/fault.hpp"
#include "sim/machine/launch.hpp"
#include "unit/sim/lane_program.hpp"
#include "unit/sim/simulated_device.hpp"

/// ld, st and mov of 128 bits.
namespace cpverify::sim {
namespace {

// Halves 1 and 2 are loaded, exchanged through registers of 64 bits, copied and stored. Lane 1 is
// kept from it by its guard.
TEST(WideMemory, MovesRegistersOf128Bits) {
  SimulatedDevice device;
  const std::uint64_t in = device.upload(U64s{1, 2, 3, 4});
  const std::uint64_t out = device.upload(U64s(4, 9));
  device.load(kernel_text(
      2,
      ".reg .b128 %q<3>; .reg .b128 %named; ld.param.u64 %d1, [p0]; ld.param.u64 %d2, [p1]; "
      "mov.u32 %r1, %laneid; setp.eq.u32 %p1, %r1, 0; mad.wide.u32 %d1, %r1, 16, %d1; "
      "mad.wide.u32 %d2, %r1, 16, %d2;\n"
      "ld.relaxed.gpu.global.b128 %q1, [%d1]; mov.b128 {%d3, %d4}, %q1; "
      "mov.b128 %q2, {%d4, %d3}; @%p1 mov.b128 %named, %q2; @%p1 st.global.b128 [%d2], %named; "
      "ret;"));
  const LaunchResult result = device.run("k", shape({1, 1, 1}, {2, 1, 1}), Parameters{in, out});
  EXPECT_TRUE(result.faults.empty()) << describe(result.faults);
  EXPECT_EQ(device.download<std::uint64_t>(out, 4), (U64s{2, 1, 9, 9}));
}

TEST(WideMemory, AccessesOf128BitsAreCheckedAsAWhole) {
  const auto fault_of = [](const std::string& access) {
    SimulatedDevice device;
    const std::uint64_t place = device.upload(U64s{1, 2, 3});
    device.load(kernel_text(
        1, ".reg .b128 %q; ld.param.u64 %d1, [p0]; mov.b128 %q, {%d1, %d1}; " + access + " ret;"));
    const LaunchResult result = device.run("k", shape({1, 1, 1}, {1, 1, 1}), Parameters{place});
    return result.faults.empty() ? Fault{} : result.faults.front();
  };
  EXPECT_EQ(fault_of("st.global.b128 [%d1+8], %q;").kind, FaultKind::misaligned);
  EXPECT_EQ(fault_of("st.global.b128 [%d1+8], %q;").size_bytes, 16U);
  // The buffer has 24 bytes.
  EXPECT_EQ(fault_of("st.global.b128 [%d1+16], %q;").kind, FaultKind::out_of_bounds_write);
  EXPECT_EQ(fault_of("ld.global.b128 %q, [%d1+16];").kind, FaultKind::out_of_bounds_read);
}

TEST(WideMemory, RegistersOf128BitsStandInLoadsStoresAndMovesOnly) {
  const auto refuse = [](const std::string& text) {
    SimulatedDevice device;
    EXPECT_THROW(device.load(kernel_text(1, ".reg .b128 %q<3>; " + text + " ret;")), InputError)
        << text;
  };
  refuse("ld.global.b64 %q1, [%d1];");
  refuse("ld.global.b128 %d1, [%d1];");
  refuse("ld.global.b128 {%d2, %d3}, [%d1];");
  refuse("ld.global.v2.b128 {%q1, %q2}, [%d1];");
  refuse("st.global.b128 [%q1], %q2;");
  refuse("st.const.b128 [%d1], %q2;");
  refuse("ld.param.b128 %q1, [p0];");
  refuse("mov.b64 %d1, %q1;");
  refuse("mov.b64 %q1, %d1;");
  refuse("mov.b128 {%d1, %d2}, {%d3, %d4};");
  refuse("mov.b128 %q1, {%d1, %d2, %d3, %d4};");
  refuse("mov.b128 %q1, %d1;");
  refuse("add.u64 %d1, %q1, %d2;");
}

}  // namespace
}  // namespace cpverify::sim
