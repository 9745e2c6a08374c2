#pragma once

#include <array>
#include <cstdint>

namespace cpverify::gpu {

/// CUresult values that we use. Source: CUDA Driver API manual, "Data types used by CUDA driver".
enum class CuResult : int {
  success = 0,
  invalid_value = 1,
  out_of_memory = 2,
  not_initialized = 3,
  no_device = 100,
  invalid_device = 101,
  invalid_context = 201,
  peer_access_unsupported = 217,
  invalid_ptx = 218,
  invalid_source = 300,
  invalid_handle = 400,
  illegal_state = 401,
  not_found = 500,
  not_ready = 600,
  illegal_address = 700,
  launch_out_of_resources = 701,
  launch_timeout = 702,
  peer_access_already_enabled = 704,
  peer_access_not_enabled = 705,
  host_memory_already_registered = 712,
  host_memory_not_registered = 713,
  misaligned_address = 716,
  launch_failed = 719,
  not_permitted = 800,
  not_supported = 801,
  stream_capture_unsupported = 900,
  stream_capture_invalidated = 901,
  stream_capture_merge = 902,
  stream_capture_unmatched = 903,
  stream_capture_unjoined = 904,
  stream_capture_isolation = 905,
  stream_capture_implicit = 906,
  captured_event = 907,
  graph_exec_update_failure = 910,
  invalid_cluster_size = 912,
};

using CuDevice = int;
using CuDevicePtr = std::uint64_t;
/// Opaque handles, as in the public API. The object behind one belongs to the implementation.
using CuContext = struct CuContextOpaque*;
using CuModule = struct CuModuleOpaque*;
using CuFunction = struct CuFunctionOpaque*;
using CuStream = struct CuStreamOpaque*;
using CuEvent = struct CuEventOpaque*;
using CuGraph = struct CuGraphOpaque*;
using CuGraphNode = struct CuGraphNodeOpaque*;
using CuGraphExec = struct CuGraphExecOpaque*;
/// CUhostFn. It must not call the driver.
using CuHostFunction = void (*)(void*);

/// CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES.
inline constexpr int kFuncAttributeMaxDynamicSharedBytes = 8;
/// CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR.
inline constexpr int kDeviceAttributeComputeMajor = 75;
inline constexpr int kDeviceAttributeComputeMinor = 76;
inline constexpr unsigned kStreamNonBlocking = 1;
/// CU_EVENT_BLOCKING_SYNC, CU_EVENT_DISABLE_TIMING.
inline constexpr unsigned kEventBlockingSync = 1;
inline constexpr unsigned kEventDisableTiming = 2;
/// CU_STREAM_LEGACY and CU_STREAM_PER_THREAD are handles with these values.
inline constexpr std::uintptr_t kStreamLegacy = 1;
inline constexpr std::uintptr_t kStreamPerThread = 2;
/// CU_MEMHOSTALLOC_PORTABLE, _DEVICEMAP, _WRITECOMBINED; the first two are also those of
/// cuMemHostRegister.
inline constexpr unsigned kMemHostAllocPortable = 1;
inline constexpr unsigned kMemHostAllocDeviceMap = 2;
inline constexpr unsigned kMemHostAllocWriteCombined = 4;
/// CU_POINTER_ATTRIBUTE_MEMORY_TYPE, _DEVICE_POINTER, _HOST_POINTER, _DEVICE_ORDINAL,
/// _RANGE_START_ADDR, _RANGE_SIZE.
inline constexpr int kPointerAttributeMemoryType = 2;
inline constexpr int kPointerAttributeDevicePointer = 3;
inline constexpr int kPointerAttributeHostPointer = 4;
inline constexpr int kPointerAttributeDeviceOrdinal = 9;
inline constexpr int kPointerAttributeRangeStart = 11;
inline constexpr int kPointerAttributeRangeSize = 12;
/// CU_MEMORYTYPE_HOST, CU_MEMORYTYPE_DEVICE.
inline constexpr unsigned kMemoryTypeHost = 1;
inline constexpr unsigned kMemoryTypeDevice = 2;

/// CUstreamCaptureMode.
enum class CuCaptureMode : int { global = 0, this_thread = 1, relaxed = 2 };
/// CUstreamCaptureStatus.
enum class CuCaptureStatus : int { none = 0, active = 1, invalidated = 2 };

/// CUtensorMapDataType, CUtensorMapInterleave, CUtensorMapSwizzle, CUtensorMapL2promotion and
/// CUtensorMapFloatOOBfill.
enum class CuTensorMapDataType : int {
  u8,
  u16,
  u32,
  s32,
  u64,
  s64,
  f16,
  f32,
  f64,
  bf16,
  f32_ftz,
  tf32,
  tf32_ftz,
};
enum class CuTensorMapInterleave : int { none, bytes_16, bytes_32 };
enum class CuTensorMapSwizzle : int { none, bytes_32, bytes_64, bytes_128 };
enum class CuTensorMapL2Promotion : int { none, bytes_64, bytes_128, bytes_256 };
enum class CuTensorMapOobFill : int { zeros, nans };

/// CUtensorMap: opaque, a kernel gets it as a __grid_constant__ parameter or in global memory.
struct alignas(64) CuTensorMap {
  std::array<std::uint64_t, 16> opaque{};
};

/// The arguments of cuTensorMapEncodeTiled in their order. Dimension 0 is dense.
struct CuTiledTensor {
  CuTensorMapDataType type = CuTensorMapDataType::u8;
  unsigned rank = 1;
  CuDevicePtr address = 0;
  const std::uint64_t* extents = nullptr;          ///< [rank], elements.
  const std::uint64_t* strides = nullptr;          ///< [rank - 1], bytes, of dimensions 1 and up.
  const std::uint32_t* box = nullptr;              ///< [rank], elements.
  const std::uint32_t* element_strides = nullptr;  ///< [rank]
  CuTensorMapInterleave interleave = CuTensorMapInterleave::none;
  CuTensorMapSwizzle swizzle = CuTensorMapSwizzle::none;
  CuTensorMapL2Promotion promotion = CuTensorMapL2Promotion::none;
  CuTensorMapOobFill fill = CuTensorMapOobFill::zeros;
};

/// CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION.
inline constexpr int kLaunchAttributeCluster = 4;

/// CUlaunchAttribute: of a cluster, value[0] to value[2] are its extents x, y and z.
struct LaunchAttribute {
  int id = 0;
  int padding = 0;
  std::array<unsigned, 16> value{};
};
static_assert(sizeof(LaunchAttribute) == 72, "the layout of the public API");

}  // namespace cpverify::gpu
