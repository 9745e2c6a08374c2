#include <bit>
#include <cstddef>
#include <cstdint>

#include "gpu/driver_api.hpp"
#include "sim/driver/simulated_driver.hpp"
#include "sim/machine/tensor_map.hpp"

namespace cpverify::sim {
namespace {

using gpu::CuResult;
using gpu::CuTensorMapOobFill;
using gpu::CuTensorMapSwizzle;
using gpu::CuTiledTensor;

// Source of the bounds: CUDA Driver API manual, cuTensorMapEncodeTiled.
constexpr std::uint64_t kMapAlignBytes = 64;
constexpr std::uint64_t kAlignBytes = 16;
constexpr std::uint64_t kExtentMax = 1ULL << 32;
constexpr std::uint64_t kStrideEnd = 1ULL << 40;
constexpr std::uint32_t kBoxMax = 256;
constexpr std::uint32_t kElementStrideMax = 8;

template <class Enum>
bool is_at_most(Enum value, Enum last) {
  return static_cast<int>(value) >= 0 && static_cast<int>(value) <= static_cast<int>(last);
}

bool are_enums_good(const CuTiledTensor& tensor) {
  return is_at_most(tensor.type, gpu::CuTensorMapDataType::tf32_ftz) &&
         is_at_most(tensor.interleave, gpu::CuTensorMapInterleave::bytes_32) &&
         is_at_most(tensor.swizzle, CuTensorMapSwizzle::bytes_128) &&
         is_at_most(tensor.promotion, gpu::CuTensorMapL2Promotion::bytes_256) &&
         is_at_most(tensor.fill, CuTensorMapOobFill::nans);
}

bool are_pointers_good(const gpu::CuTensorMap* map, const CuTiledTensor& tensor) {
  return map != nullptr && reinterpret_cast<std::uintptr_t>(map) % kMapAlignBytes == 0 &&
         tensor.rank >= 1 && tensor.rank <= TensorMap::kRankMax && tensor.address != 0 &&
         tensor.address % kAlignBytes == 0 && tensor.extents != nullptr && tensor.box != nullptr &&
         tensor.element_strides != nullptr && (tensor.strides != nullptr || tensor.rank == 1);
}

std::uint32_t swizzle_bytes(CuTensorMapSwizzle swizzle) {
  if (swizzle == CuTensorMapSwizzle::none) return 0;
  return 16U << static_cast<unsigned>(swizzle);
}

TensorMap describe(const CuTiledTensor& tensor) {
  TensorMap map;
  map.element = static_cast<TensorElement>(tensor.type);
  map.rank = tensor.rank;
  map.swizzle_bytes = swizzle_bytes(tensor.swizzle);
  map.is_nan_fill = tensor.fill == CuTensorMapOobFill::nans;
  map.address = tensor.address;
  map.strides[0] = size_bytes(map.element);
  for (std::size_t i = 0; i < tensor.rank; ++i) {
    map.extents[i] = tensor.extents[i];
    map.box[i] = tensor.box[i];
    map.steps[i] = tensor.element_strides[i];
    if (i > 0) map.strides[i] = tensor.strides[i - 1];
  }
  return map;
}

bool is_valid(const TensorMap& map) {
  for (std::size_t i = 0; i < map.rank; ++i) {
    const bool is_good = map.extents[i] >= 1 && map.extents[i] <= kExtentMax && map.box[i] >= 1 &&
                         map.box[i] <= kBoxMax && map.steps[i] >= 1 &&
                         map.steps[i] <= kElementStrideMax;
    if (!is_good) return false;
    if (i > 0 && (map.strides[i] % kAlignBytes != 0 || map.strides[i] >= kStrideEnd)) return false;
  }
  const bool is_row_good = map.row_bytes() % kAlignBytes == 0 &&
                           (map.swizzle_bytes == 0 || map.row_bytes() <= map.swizzle_bytes);
  return is_row_good && (!map.is_nan_fill || is_float(map.element));
}

}  // namespace

// Interleaved tensors are what no kernel of attention uses.
CuResult SimulatedDriver::cuTensorMapEncodeTiled(gpu::CuTensorMap* map,
                                                 const CuTiledTensor& tensor) {
  if (!is_initialised_) return CuResult::not_initialized;
  if (!are_enums_good(tensor) || !are_pointers_good(map, tensor)) return CuResult::invalid_value;
  if (tensor.interleave != gpu::CuTensorMapInterleave::none) return CuResult::not_supported;
  const TensorMap described = describe(tensor);
  if (!is_valid(described)) return CuResult::invalid_value;
  *map = std::bit_cast<gpu::CuTensorMap>(encode(described));
  return CuResult::success;
}

}  // namespace cpverify::sim
