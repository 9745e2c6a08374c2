#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "unit/sim/simulated_device.hpp"

namespace cpverify::sim {

inline std::string module_text(const std::string& body) {
  return ".version 7.5\n.target sm_80\n.address_size 64\n" + body;
}

/// An entry `k` with `count` 64-bit parameters p0, p1, ...; its body declares registers %h (16),
/// %r (32), %f (32), %d (64 bits) and %p (predicates), 32 of each.
inline std::string kernel_text(std::size_t count, const std::string& body) {
  std::string parameters;
  for (std::size_t i = 0; i < count; ++i) {
    parameters += fmt::format("{}.param .u64 p{}", i == 0 ? "" : ", ", i);
  }
  return module_text(".visible .entry k(" + parameters +
                     ") {\n.reg .b16 %h<32>; .reg .b32 %r<32>; .reg .f32 %f<32>; .reg .b64 %d<32>; "
                     ".reg .pred %p<32>;\n" +
                     body + "\n}\n");
}

/// Runs `body` on one warp. Lane i finds element i of each input in %a0, %a1, ... and leaves its
/// result in %out; the last values of an input are repeated for the remaining lanes. Registers
template <class Result, class... Inputs>
std::vector<Result> run_lanes(const std::string& body, const std::vector<Inputs>&... inputs) {
  SimulatedDevice device;
  std::string declarations = fmt::format(".reg .b{} %out;\n", 8 * sizeof(Result));
  std::string loads = "mov.u32 %r31, %laneid; cvt.u64.u32 %d31, %r31;\n";
  std::vector<std::uint64_t> addresses;
  std::size_t index = 0;
  [[maybe_unused]] const auto add = [&](auto values) {
    using T = typename decltype(values)::value_type;
    values.resize(32, values.back());
    addresses.push_back(device.upload(values));
    declarations += fmt::format(".reg .b{} %a{};\n", 8 * sizeof(T), index);
    loads += fmt::format(
        "ld.param.u64 %d30, [p{0}]; mad.lo.u64 %d30, %d31, {1}, %d30; ld.global.b{2} %a{0}, "
        "[%d30];\n",
        index, sizeof(T), 8 * sizeof(T));
    ++index;
  };
  (add(inputs), ...);
  const std::uint64_t out = device.upload(std::vector<Result>(32, Result{}));
  addresses.push_back(out);
  const std::string store = fmt::format(
      "ld.param.u64 %d30, [p{0}]; mad.lo.u64 %d30, %d31, {1}, %d30; st.global.b{2} [%d30], %out;",
      index, sizeof(Result), 8 * sizeof(Result));
  device.load(kernel_text(index + 1, declarations + loads + body + "\n" + store + "\nret;"));
  Parameters parameters = [&] {
    while (addresses.size() < 6) addresses.push_back(0);
    switch (index) {
      case 0:
        return Parameters{addresses[0]};
      case 1:
        return Parameters{addresses[0], addresses[1]};
      case 2:
        return Parameters{addresses[0], addresses[1], addresses[2]};
      case 3:
        return Parameters{addresses[0], addresses[1], addresses[2], addresses[3]};
      default:
        return Parameters{addresses[0], addresses[1], addresses[2], addresses[3], addresses[4]};
    }
  }();
  const LaunchResult result = device.run("k", shape({1, 1, 1}, {32, 1, 1}), parameters);
  EXPECT_EQ(result.status, LaunchStatus::completed) << result.detail << describe(result.faults);
  EXPECT_TRUE(result.faults.empty()) << describe(result.faults);
  return device.download<Result>(out, 32);
}

/// The first `count` lanes.
template <class T>
std::vector<T> first(const std::vector<T>& values, std::size_t count) {
  return {values.begin(), values.begin() + static_cast<std::ptrdiff_t>(count)};
}

using U16s = std::vector<std::uint16_t>;
using U32s = std::vector<std::uint32_t>;
using U64s = std::vector<std::uint64_t>;

/// Floats as bits, so that -0 and NaN compare as what they are.
inline U32s bits_of(const std::vector<float>& values) {
  U32s bits;
  for (const float value : values) bits.push_back(std::bit_cast<std::uint32_t>(value));
  return bits;
}

}  // namespace cpverify::sim
