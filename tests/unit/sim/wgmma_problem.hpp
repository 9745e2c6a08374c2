#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "unit/sim/lane_program.hpp"
#include "unit/sim/simulated_device.hpp"

/// Kernels of one warpgroup around one wgmma.mma_async.
namespace cpverify::sim {

constexpr std::uint32_t kOperandA = 0;  ///< Offsets in shared memory.
constexpr std::uint32_t kOperandB = 8192;
constexpr std::uint32_t kTileBytes = 8192 + 32768;

/// Fields of a descriptor in bytes; mode is 0 for none, 1, 2, 3 for 128, 64 and 32 bytes.
inline std::uint64_t matrix_descriptor(std::uint32_t start, std::uint32_t leading,
                                       std::uint32_t stride, std::uint64_t mode,
                                       std::uint64_t base_offset = 0) {
  return std::uint64_t{start / 16} | std::uint64_t{leading / 16} << 16 |
         std::uint64_t{stride / 16} << 32 | base_offset << 49 | mode << 62;
}

/// `{%a0, %a1, ...}`
inline std::string wgmma_registers(const std::string& prefix, std::size_t count) {
  std::string text = "{";
  for (std::size_t i = 0; i < count; ++i) {
    text += fmt::format("{}%{}{}", i == 0 ? "" : ", ", prefix, i);
  }
  return text + "}";
}

/// An entry k(image, in, out, A's descriptor, B's descriptor) for 128 threads. `image` is copied to
/// shared memory, %a0, ... come from `in` and go to `out` around `body`. %p1 is true, %p2 false,
/// %p3 true in warp 3; %r1 is the thread, %r4 the address of shared memory; %x0-3 come from `in`
/// behind the others.
inline std::string wgmma_kernel(std::size_t sums, const std::string& body) {
  std::string text = fmt::format(
      ".version 8.0\n.target sm_90a\n.address_size 64\n.visible .entry k(.param .u64 image, .param "
      ".u64 in, .param .u64 out, .param .u64 da, .param .u64 db) {{\n.reg .b32 %r<32>; .reg .b64 "
      "%d<32>; .reg .pred %p<8>; .reg .b32 %a<{}>; .reg .b32 %x<4>;\n.shared .align 1024 .b8 "
      "tile[{}];\n",
      sums, kTileBytes);
  text += fmt::format(
      "mov.u32 %r1, %tid.x; ld.param.u64 %d0, [image]; mov.u32 %r4, tile; mul.lo.u32 %r2, %r1, 4; "
      "ld.param.u64 %d8, [da]; ld.param.u64 %d9, [db];\n"
      "setp.eq.u32 %p1, %r1, %r1; setp.ne.u32 %p2, %r1, %r1; setp.ge.u32 %p3, %r1, 96;\n"
      "COPY: cvt.u64.u32 %d1, %r2; add.u64 %d1, %d1, %d0; ld.global.u32 %r3, [%d1]; add.u32 %r5, "
      "%r4, %r2; st.shared.u32 [%r5], %r3; add.u32 %r2, %r2, 512; setp.lt.u32 %p0, %r2, {}; @%p0 "
      "bra COPY;\nfence.proxy.async;\nbar.sync 0;\n",
      kTileBytes);
  text += fmt::format(
      "ld.param.u64 %d2, [in]; mad.wide.u32 %d2, %r1, {}, %d2; ld.param.u64 %d3, [out]; "
      "mad.wide.u32 %d3, %r1, {}, %d3;\n",
      4 * (sums + 4), 4 * sums);
  for (std::size_t i = 0; i < sums; ++i) {
    text += fmt::format("ld.global.u32 %a{}, [%d2+{}];\n", i, 4 * i);
  }
  for (std::size_t i = 0; i < 4; ++i) {
    text += fmt::format("ld.global.u32 %x{}, [%d2+{}];\n", i, 4 * (sums + i));
  }
  text += body + "\n";
  for (std::size_t i = 0; i < sums; ++i) {
    text += fmt::format("st.global.u32 [%d3+{}], %a{};\n", 4 * i, i);
  }
  return text + "ret;\n}\n";
}

struct WgmmaRun {
  LaunchResult result;
  U32s out;  ///< [thread][register]
};

struct WgmmaInput {
  std::vector<std::uint8_t> image = std::vector<std::uint8_t>(kTileBytes);
  U32s in;  ///< [thread][sums, then four of A]
  std::uint64_t a_descriptor = 0;
  std::uint64_t b_descriptor = 0;
};

inline WgmmaRun run_wgmma(std::size_t sums, const std::string& body, const WgmmaInput& input,
                          const LaunchRequest& request = shape({1, 1, 1}, {128, 1, 1})) {
  SimulatedDevice device;
  device.load(wgmma_kernel(sums, body));
  const std::uint64_t image = device.upload(input.image);
  const std::uint64_t in = device.upload(input.in);
  const std::size_t words = request.block[0] * sums;
  const std::uint64_t out = device.upload(U32s(words, 0));
  WgmmaRun run;
  run.result =
      device.run("k", request, Parameters{image, in, out, input.a_descriptor, input.b_descriptor});
  run.out = device.download<std::uint32_t>(out, words);
  return run;
}

}  // namespace cpverify::sim
