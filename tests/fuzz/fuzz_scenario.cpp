#include <cstddef>
#include <cstdint>
#include <string_view>

#include "fuzz/targets.hpp"

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer's name.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size_bytes) {
  cpverify::fuzz::run_scenario({reinterpret_cast<const char*>(data), size_bytes});
  return 0;
}
