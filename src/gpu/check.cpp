#include "gpu/check.hpp"

#include <string>
#include <string_view>

#include <fmt/format.h>

#include "cpverify/error.hpp"
#include "gpu/driver_api.hpp"
#include "gpu/nccl_api.hpp"

namespace cpverify::gpu {
namespace {

std::string_view public_name(CuResult result) noexcept {
  switch (result) {
    case CuResult::success:
      return "CUDA_SUCCESS";
    case CuResult::invalid_value:
      return "CUDA_ERROR_INVALID_VALUE";
    case CuResult::out_of_memory:
      return "CUDA_ERROR_OUT_OF_MEMORY";
    case CuResult::not_initialized:
      return "CUDA_ERROR_NOT_INITIALIZED";
    case CuResult::no_device:
      return "CUDA_ERROR_NO_DEVICE";
    case CuResult::invalid_device:
      return "CUDA_ERROR_INVALID_DEVICE";
    case CuResult::invalid_context:
      return "CUDA_ERROR_INVALID_CONTEXT";
    case CuResult::invalid_ptx:
      return "CUDA_ERROR_INVALID_PTX";
    case CuResult::invalid_source:
      return "CUDA_ERROR_INVALID_SOURCE";
    case CuResult::invalid_handle:
      return "CUDA_ERROR_INVALID_HANDLE";
    case CuResult::not_found:
      return "CUDA_ERROR_NOT_FOUND";
    case CuResult::illegal_address:
      return "CUDA_ERROR_ILLEGAL_ADDRESS";
    case CuResult::invalid_cluster_size:
      return "CUDA_ERROR_INVALID_CLUSTER_SIZE";
    case CuResult::launch_out_of_resources:
      return "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES";
    case CuResult::launch_timeout:
      return "CUDA_ERROR_LAUNCH_TIMEOUT";
    case CuResult::misaligned_address:
      return "CUDA_ERROR_MISALIGNED_ADDRESS";
    case CuResult::launch_failed:
      return "CUDA_ERROR_LAUNCH_FAILED";
    case CuResult::not_supported:
      return "CUDA_ERROR_NOT_SUPPORTED";
  }
  return "CUDA_ERROR";  // A real driver knows more codes than we name; the number tells.
}

std::string_view public_name(NcclResult result) noexcept {
  switch (result) {
    case NcclResult::success:
      return "ncclSuccess";
    case NcclResult::unhandled_cuda_error:
      return "ncclUnhandledCudaError";
    case NcclResult::system_error:
      return "ncclSystemError";
    case NcclResult::internal_error:
      return "ncclInternalError";
    case NcclResult::invalid_argument:
      return "ncclInvalidArgument";
    case NcclResult::invalid_usage:
      return "ncclInvalidUsage";
    case NcclResult::remote_error:
      return "ncclRemoteError";
    case NcclResult::in_progress:
      return "ncclInProgress";
  }
  return "ncclResult";
}

}  // namespace

std::string describe(CuResult result) {
  return fmt::format("{} ({})", public_name(result), static_cast<int>(result));
}

std::string describe(NcclResult result) {
  return fmt::format("{} ({})", public_name(result), static_cast<int>(result));
}

void cuda_check(CuResult result, const char* call) {
  if (result == CuResult::success) return;
  throw EnvironmentError{fmt::format("{} failed: {}", call, describe(result))};
}

void nccl_check(NcclResult result, const char* call) {
  if (result == NcclResult::success) return;
  throw EnvironmentError{fmt::format("{} failed: {}", call, describe(result))};
}

}  // namespace cpverify::gpu
