// Our declarations of the public API against NVIDIA's headers, where those are installed. Most of
// it is decided by the compiler.

#include <memory>

#include <cuda.h>
#include <gtest/gtest.h>
#include <nccl.h>

#include "gpu/cuda_driver.hpp"
#include "gpu/driver_api.hpp"
#include "gpu/nccl_api.hpp"

namespace cpverify::gpu {
namespace {

static_assert(sizeof(CuDevicePtr) == sizeof(CUdeviceptr));
static_assert(sizeof(CuDevice) == sizeof(CUdevice));
static_assert(sizeof(CuStream) == sizeof(CUstream));
static_assert(sizeof(CuResult) == sizeof(CUresult));
static_assert(sizeof(NcclResult) == sizeof(ncclResult_t));
static_assert(sizeof(NcclDataType) == sizeof(ncclDataType_t));

static_assert(kFuncAttributeMaxDynamicSharedBytes ==
              int{CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES});
static_assert(kDeviceAttributeComputeMajor == int{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR});
static_assert(kDeviceAttributeComputeMinor == int{CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR});
static_assert(kStreamNonBlocking == unsigned{CU_STREAM_NON_BLOCKING});
static_assert(kEventDisableTiming == unsigned{CU_EVENT_DISABLE_TIMING});

TEST(NvidiaHeaders, HaveOurResultsOfTheDriver) {
  const auto same = [](CuResult ours, CUresult theirs) {
    EXPECT_EQ(static_cast<int>(ours), static_cast<int>(theirs));
  };
  same(CuResult::success, CUDA_SUCCESS);
  same(CuResult::invalid_value, CUDA_ERROR_INVALID_VALUE);
  same(CuResult::out_of_memory, CUDA_ERROR_OUT_OF_MEMORY);
  same(CuResult::not_initialized, CUDA_ERROR_NOT_INITIALIZED);
  same(CuResult::no_device, CUDA_ERROR_NO_DEVICE);
  same(CuResult::invalid_device, CUDA_ERROR_INVALID_DEVICE);
  same(CuResult::invalid_context, CUDA_ERROR_INVALID_CONTEXT);
  same(CuResult::invalid_ptx, CUDA_ERROR_INVALID_PTX);
  same(CuResult::invalid_source, CUDA_ERROR_INVALID_SOURCE);
  same(CuResult::invalid_handle, CUDA_ERROR_INVALID_HANDLE);
  same(CuResult::not_found, CUDA_ERROR_NOT_FOUND);
  same(CuResult::illegal_address, CUDA_ERROR_ILLEGAL_ADDRESS);
  same(CuResult::launch_out_of_resources, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  same(CuResult::launch_timeout, CUDA_ERROR_LAUNCH_TIMEOUT);
  same(CuResult::misaligned_address, CUDA_ERROR_MISALIGNED_ADDRESS);
  same(CuResult::launch_failed, CUDA_ERROR_LAUNCH_FAILED);
  same(CuResult::not_supported, CUDA_ERROR_NOT_SUPPORTED);
  EXPECT_EQ(CU_JIT_ERROR_LOG_BUFFER, 5);
  EXPECT_EQ(CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, 6);
}

TEST(NvidiaHeaders, HaveOurTensorMaps) {
  const auto same = [](auto ours, auto theirs) {
    EXPECT_EQ(static_cast<int>(ours), static_cast<int>(theirs));
  };
  EXPECT_EQ(sizeof(CuTensorMap), sizeof(CUtensorMap));
  same(CuTensorMapDataType::u8, CU_TENSOR_MAP_DATA_TYPE_UINT8);
  same(CuTensorMapDataType::s64, CU_TENSOR_MAP_DATA_TYPE_INT64);
  same(CuTensorMapDataType::f16, CU_TENSOR_MAP_DATA_TYPE_FLOAT16);
  same(CuTensorMapDataType::bf16, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
  same(CuTensorMapDataType::tf32_ftz, CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ);
  same(CuTensorMapInterleave::bytes_32, CU_TENSOR_MAP_INTERLEAVE_32B);
  same(CuTensorMapSwizzle::bytes_32, CU_TENSOR_MAP_SWIZZLE_32B);
  same(CuTensorMapSwizzle::bytes_128, CU_TENSOR_MAP_SWIZZLE_128B);
  same(CuTensorMapL2Promotion::bytes_256, CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
  same(CuTensorMapOobFill::nans, CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA);
}

TEST(NvidiaHeaders, HaveOurResultsAndTypesOfNccl) {
  const auto same = [](auto ours, auto theirs) {
    EXPECT_EQ(static_cast<int>(ours), static_cast<int>(theirs));
  };
  same(NcclResult::success, ncclSuccess);
  same(NcclResult::unhandled_cuda_error, ncclUnhandledCudaError);
  same(NcclResult::system_error, ncclSystemError);
  same(NcclResult::internal_error, ncclInternalError);
  same(NcclResult::invalid_argument, ncclInvalidArgument);
  same(NcclResult::invalid_usage, ncclInvalidUsage);
  same(NcclResult::remote_error, ncclRemoteError);
  same(NcclResult::in_progress, ncclInProgress);
  same(NcclDataType::int8, ncclInt8);
  same(NcclDataType::uint8, ncclUint8);
  same(NcclDataType::int32, ncclInt32);
  same(NcclDataType::uint32, ncclUint32);
  same(NcclDataType::int64, ncclInt64);
  same(NcclDataType::uint64, ncclUint64);
  same(NcclDataType::float16, ncclFloat16);
  same(NcclDataType::float32, ncclFloat32);
  same(NcclDataType::float64, ncclFloat64);
  same(NcclDataType::bfloat16, ncclBfloat16);
}

#ifdef CPVERIFY_CUDA_STUB
// The toolkit's link stub exports every function of the driver and answers each with an error, so
// opening it proves that all names we ask for exist.
TEST(NvidiaHeaders, StubLibraryExportsEveryFunctionWeCall) {
  const std::unique_ptr<DriverApi> driver = open_cuda_driver(CPVERIFY_CUDA_STUB);
  EXPECT_EQ(static_cast<int>(driver->cuInit(0)), static_cast<int>(CUDA_ERROR_STUB_LIBRARY));
}
#endif

}  // namespace
}  // namespace cpverify::gpu
