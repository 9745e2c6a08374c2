#include "run/launch_runner.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "cpverify/fault.hpp"
#include "cpverify/finding.hpp"
#include "cpverify/ids.hpp"
#include "cpverify/launch.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "gpu/check.hpp"
#include "gpu/driver_api.hpp"
#include "gpu/lane.hpp"
#include "run/fault_findings.hpp"
#include "run/rank_device.hpp"
#include "support/hash.hpp"

namespace cpverify::run {
namespace {

using gpu::CuResult;

class LaunchRunner {
 public:
  LaunchRunner(const LaunchSpec& spec, gpu::Lane& lane, const LaunchRunOptions& options)
      : spec_{spec},
        lane_{lane},
        options_{options},
        folder_{spec.file.empty() ? options.kernel_directory : spec.file.parent_path().string()} {}

  LaunchCapture run();

 private:
  [[nodiscard]] RankDevice& device() noexcept { return *devices_.front(); }
  void open();
  /// False: the subject failed and nothing after it runs.
  bool execute(std::uint32_t index);
  void collect_faults(std::uint32_t step);
  bool download();

  const LaunchSpec& spec_;
  gpu::Lane& lane_;
  const LaunchRunOptions& options_;
  std::string folder_;
  std::vector<std::unique_ptr<RankDevice>> devices_;  ///< One; a list is what findings look into.
  LaunchCapture capture_;
};

void LaunchRunner::open() {
  gpu::cuda_check(lane_.driver().cuInit(0), "cuInit");
  devices_.push_back(std::make_unique<RankDevice>(lane_.driver(), 0));
  std::vector<Buffer> buffers;
  for (const LaunchBuffer& source : spec_.buffers) {
    Buffer buffer;
    buffer.name = source.name;
    buffer.dtype = source.dtype;
    buffer.shape = {source.elements};
    buffers.push_back(std::move(buffer));
  }
  device().begin_step(buffers);
  for (std::uint32_t i = 0; i < buffers.size(); ++i) {
    const std::vector<std::byte> bytes = initial_bytes(spec_.buffers[i], options_.seed);
    if (!bytes.empty()) device().upload(device().allocation(BufferId{i}), bytes);
  }
  // An upload that fails here fails for a reason of the lane's own.
  gpu::cuda_check(device().synchronize(), "cuStreamSynchronize");
}

void LaunchRunner::collect_faults(std::uint32_t step) {
  const FaultContext context{StrategyKind::launch, DataMode::random, step};
  for (const Fault& fault : lane_.take_faults()) {
    capture_.findings.push_back(fault_finding(fault, context, devices_));
  }
}

bool LaunchRunner::execute(std::uint32_t index) {
  const LaunchStep& step = spec_.steps[index];
  if (const auto* freed = std::get_if<FreeBuffer>(&step.action)) {
    device().free_buffer(freed->buffer);
    return true;
  }
  const auto& launch = std::get<Launch>(step.action);
  CuResult result = device().launch(launch, device().stream(), folder_);
  if (result == CuResult::success) result = device().synchronize();
  const std::size_t known = capture_.findings.size();
  collect_faults(index);
  if (result == CuResult::success) return true;
  if (capture_.findings.size() > known) return false;
  Finding finding;
  finding.check = Check::memcheck;
  finding.kind = "launch_failed";
  finding.strategy = StrategyKind::launch;
  finding.step = index;
  finding.rank = RankId{0};
  finding.kernel = launch.entry;
  finding.detail = gpu::describe(result);
  capture_.findings.push_back(std::move(finding));
  return false;
}

bool LaunchRunner::download() {
  capture_.buffers.resize(spec_.buffers.size());
  for (std::uint32_t i = 0; i < spec_.buffers.size(); ++i) {
    if (device().is_freed(BufferId{i})) continue;
    const CuResult result =
        device().download(device().allocation(BufferId{i}), capture_.buffers[i]);
    if (result != CuResult::success) return false;
  }
  return true;
}

std::uint64_t digest(const LaunchCapture& capture) {
  Fnv1a hash;
  for (const std::vector<std::byte>& bytes : capture.buffers) {
    hash.add(static_cast<std::uint64_t>(bytes.size()));
    hash.add_bytes(bytes.data(), bytes.size());
  }
  for (const Finding& finding : capture.findings) {
    for (const auto& field : finding.fields()) hash.add(field.second);
  }
  return hash.value();
}

LaunchCapture LaunchRunner::run() {
  capture_.has_checkers = lane_.has_checkers();
  open();
  bool is_running = true;
  for (std::uint32_t i = 0; is_running && i < spec_.steps.size(); ++i) {
    is_running = execute(i);
    ++capture_.operations;
  }
  capture_.is_complete = is_running && download();
  if (!capture_.is_complete) capture_.buffers.clear();
  capture_.digest = digest(capture_);
  return std::move(capture_);
}

}  // namespace

LaunchCapture run_launches(const LaunchSpec& spec, gpu::Lane& lane,
                           const LaunchRunOptions& options) {
  return LaunchRunner{spec, lane, options}.run();
}

}  // namespace cpverify::run
