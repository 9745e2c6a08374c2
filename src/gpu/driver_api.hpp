#pragma once

#include <array>
#include <cstddef>
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
  invalid_ptx = 218,
  invalid_source = 300,
  invalid_handle = 400,
  not_found = 500,
  illegal_address = 700,
  launch_out_of_resources = 701,
  launch_timeout = 702,
  misaligned_address = 716,
  launch_failed = 719,
  not_supported = 801,
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

/// CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES.
inline constexpr int kFuncAttributeMaxDynamicSharedBytes = 8;
/// CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR.
inline constexpr int kDeviceAttributeComputeMajor = 75;
inline constexpr int kDeviceAttributeComputeMinor = 76;
inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventDisableTiming = 2;

/// CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION.
inline constexpr int kLaunchAttributeCluster = 4;

/// CUlaunchAttribute: of a cluster, value[0] to value[2] are its extents x, y and z.
struct LaunchAttribute {
  int id = 0;
  int padding = 0;
  std::array<unsigned, 16> value{};
};
static_assert(sizeof(LaunchAttribute) == 72, "the layout of the public API");

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

/// The CUDA driver API under its public names and semantics, for the calls that we make. One
/// implementation forwards to libcuda, one is the simulator; nothing above knows which.
///
/// Work on a stream is asynchronous: it may run at any time up to the next synchronisation, and its
/// errors are returned by one. Calls act on the current context (cuCtxSetCurrent).
class DriverApi {
 public:
  virtual ~DriverApi() = default;

  // The names of the public API.
  // NOLINTBEGIN(readability-identifier-naming)
  virtual CuResult cuInit(unsigned flags) = 0;
  virtual CuResult cuDeviceGetCount(int* count) = 0;
  virtual CuResult cuDeviceGet(CuDevice* device, int ordinal) = 0;
  virtual CuResult cuDeviceGetAttribute(int* value, int attribute, CuDevice device) = 0;
  virtual CuResult cuDevicePrimaryCtxRetain(CuContext* context, CuDevice device) = 0;
  virtual CuResult cuDevicePrimaryCtxRelease(CuDevice device) = 0;
  virtual CuResult cuCtxSetCurrent(CuContext context) = 0;
  virtual CuResult cuCtxGetCurrent(CuContext* context) = 0;
  virtual CuResult cuCtxSynchronize() = 0;

  /// `image` is NUL-terminated PTX text (or a cubin where the implementation takes one).
  virtual CuResult cuModuleLoadData(CuModule* module, const void* image) = 0;
  virtual CuResult cuModuleUnload(CuModule module) = 0;
  virtual CuResult cuModuleGetFunction(CuFunction* function, CuModule module, const char* name) = 0;
  virtual CuResult cuFuncSetAttribute(CuFunction function, int attribute, int value) = 0;

  /// not_supported where the driver is older than CUDA 12, or the simulator has no such tensors.
  virtual CuResult cuTensorMapEncodeTiled(CuTensorMap* map, const CuTiledTensor& tensor) = 0;

  virtual CuResult cuMemAlloc(CuDevicePtr* pointer, std::size_t size_bytes) = 0;
  virtual CuResult cuMemFree(CuDevicePtr pointer) = 0;
  virtual CuResult cuMemcpyHtoDAsync(CuDevicePtr target, const void* source, std::size_t size_bytes,
                                     CuStream stream) = 0;
  virtual CuResult cuMemcpyDtoHAsync(void* target, CuDevicePtr source, std::size_t size_bytes,
                                     CuStream stream) = 0;
  virtual CuResult cuMemcpyDtoDAsync(CuDevicePtr target, CuDevicePtr source, std::size_t size_bytes,
                                     CuStream stream) = 0;
  virtual CuResult cuMemcpyPeerAsync(CuDevicePtr target, CuContext target_context,
                                     CuDevicePtr source, CuContext source_context,
                                     std::size_t size_bytes, CuStream stream) = 0;
  virtual CuResult cuMemsetD8Async(CuDevicePtr target, unsigned char value, std::size_t count,
                                   CuStream stream) = 0;
  virtual CuResult cuMemsetD32Async(CuDevicePtr target, unsigned value, std::size_t count,
                                    CuStream stream) = 0;

  virtual CuResult cuStreamCreate(CuStream* stream, unsigned flags) = 0;
  virtual CuResult cuStreamDestroy(CuStream stream) = 0;
  virtual CuResult cuStreamSynchronize(CuStream stream) = 0;
  virtual CuResult cuStreamWaitEvent(CuStream stream, CuEvent event, unsigned flags) = 0;
  virtual CuResult cuEventCreate(CuEvent* event, unsigned flags) = 0;
  virtual CuResult cuEventDestroy(CuEvent event) = 0;
  virtual CuResult cuEventRecord(CuEvent event, CuStream stream) = 0;

  /// `parameters` points to one pointer per kernel parameter, as in the public API.
  struct LaunchConfig {
    unsigned grid_x = 1, grid_y = 1, grid_z = 1;
    unsigned block_x = 1, block_y = 1, block_z = 1;
    unsigned shared_bytes = 0;
    CuStream stream = nullptr;
  };
  virtual CuResult cuLaunchKernel(CuFunction function, const LaunchConfig& config,
                                  void** parameters) = 0;
  virtual CuResult cuLaunchKernelEx(const LaunchConfig& config, const LaunchAttribute* attributes,
                                    unsigned attribute_count, CuFunction function,
                                    void** parameters) = 0;
  // NOLINTEND(readability-identifier-naming)

  /// What cuModuleLoadData has to say of the last image it refused ("" when it accepted it): the
  /// JIT's error log.
  virtual const char* jit_error_log() = 0;
};

}  // namespace cpverify::gpu
