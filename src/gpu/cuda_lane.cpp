#include <memory>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "cpverify/error.hpp"
#include "cpverify/fault.hpp"
#include "gpu/check.hpp"
#include "gpu/cuda_driver.hpp"
#include "gpu/driver_api.hpp"
#include "gpu/lane.hpp"
#include "gpu/nccl_api.hpp"
#include "gpu/nccl_library.hpp"

namespace cpverify::gpu {
namespace {

class CudaLane final : public Lane {
 public:
  CudaLane() : driver_{open_cuda_driver("libcuda.so.1")}, nccl_{open_nccl("libnccl.so.2")} {}

  [[nodiscard]] std::string_view name() const noexcept override { return "cuda"; }
  [[nodiscard]] DriverApi& driver() noexcept override { return *driver_; }
  [[nodiscard]] NcclApi& nccl() noexcept override { return *nccl_; }
  [[nodiscard]] std::vector<Fault> take_faults() override { return {}; }
  [[nodiscard]] bool has_checkers() const noexcept override { return false; }

 private:
  std::unique_ptr<DriverApi> driver_;
  std::unique_ptr<NcclApi> nccl_;
};

}  // namespace

std::unique_ptr<Lane> open_cuda_lane(int device_count) {
  auto lane = std::make_unique<CudaLane>();
  int available = 0;
  const CuResult started = lane->driver().cuInit(0);
  if (started != CuResult::no_device) {
    cuda_check(started, "cuInit");
    cuda_check(lane->driver().cuDeviceGetCount(&available), "cuDeviceGetCount");
  }
  if (available < device_count) {
    throw EnvironmentError{
        fmt::format("lane cuda needs {} GPUs, this machine shows {}; use a machine with more (or "
                    "check CUDA_VISIBLE_DEVICES), or run with --lane sim",
                    device_count, available)};
  }
  return lane;
}

}  // namespace cpverify::gpu
