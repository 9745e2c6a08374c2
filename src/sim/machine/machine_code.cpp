#include "sim/machine/machine_code.hpp"

namespace cpverify::sim {

VectorWidth widest_vectors() noexcept {
  static const bool has_512 =
      __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
      __builtin_cpu_supports("avx512cd") != 0 && __builtin_cpu_supports("avx512dq") != 0 &&
      __builtin_cpu_supports("avx512vl") != 0;
  return has_512 ? VectorWidth::bits_512 : VectorWidth::bits_256;
}

const MachineCode& machine_code(VectorWidth width) noexcept {
  return width == VectorWidth::bits_512 ? machine_code_512() : machine_code_256();
}

}  // namespace cpverify::sim
