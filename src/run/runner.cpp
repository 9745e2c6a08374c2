#include "run/runner.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "cpverify/data.hpp"
#include "cpverify/error.hpp"
#include "cpverify/fault.hpp"
#include "cpverify/finding.hpp"
#include "cpverify/ids.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "gpu/check.hpp"
#include "gpu/driver_api.hpp"
#include "gpu/lane.hpp"
#include "gpu/nccl_api.hpp"
#include "run/call_collective.hpp"
#include "run/communicators.hpp"
#include "run/fault_findings.hpp"
#include "run/rank_device.hpp"
#include "run/upload.hpp"
#include "support/check.hpp"
#include "support/hash.hpp"

namespace cpverify::run {
namespace {

using gpu::cuda_check;
using gpu::CuResult;
using gpu::NcclResult;

class Runner {
 public:
  Runner(const Problem& problem, const std::vector<RequestData>& data, gpu::Lane& lane,
         const RunOptions& options)
      : problem_{problem},
        data_{data},
        lane_{lane},
        options_{options},
        communicators_{lane.nccl()} {}

  RunCapture run(const std::vector<Plan>& plans);

 private:
  [[nodiscard]] bool is_poison() const noexcept { return options_.mode == DataMode::poison; }
  void open_devices(std::size_t count);
  void fill_pools(const Plan& plan);
  void begin_step(const Plan& plan);
  void fill_buffer(RankDevice& device, const Buffer& buffer, const NamedAllocation& target,
                   const Step& step);
  /// False: something of the subject failed and the step is over.
  bool run_operations(const Plan& plan);
  bool issue_until_collective(const Plan& plan, const RankPlan& rank);
  bool issue_collectives(const Plan& plan);
  gpu::NcclComm issue_collective(const Plan& plan, const RankPlan& rank);
  [[nodiscard]] const Collective* waits_for(const RankPlan& rank) const;
  void end_collectives(const Plan& plan);
  bool accept(CuResult result, const Plan& plan, const RankPlan& rank, const std::string& label);
  bool synchronize(const Plan& plan);
  /// Lets what was queued before a failure run, so that its faults are seen too: a copy beyond a
  /// buffer is refused when it is issued, the kernel that overran the buffer before it runs later.
  void drain(const Plan& plan);
  void collect_faults(const Plan& plan);
  bool capture_rank(const RankPlan& rank, RankCapture& capture, bool with_outputs);
  [[nodiscard]] bool has_ended(const Plan& plan, const RankPlan& rank) const;
  [[nodiscard]] Finding new_finding(const Plan& plan, const RankPlan& rank) const;

  const Problem& problem_;
  const std::vector<RequestData>& data_;
  gpu::Lane& lane_;
  const RunOptions& options_;
  std::vector<std::unique_ptr<RankDevice>> devices_;
  Communicators communicators_;      ///< After devices_: destroyed first.
  std::vector<std::size_t> issued_;  ///< Operations of the step, by world rank.
  RunCapture capture_;
};

void Runner::open_devices(std::size_t count) {
  gpu::DriverApi& driver = lane_.driver();
  cuda_check(driver.cuInit(0), "cuInit");
  int available = 0;
  cuda_check(driver.cuDeviceGetCount(&available), "cuDeviceGetCount");
  if (static_cast<std::size_t>(available) < count) {
    throw EnvironmentError{
        fmt::format("the plan needs {} devices, lane {} has {}", count, lane_.name(), available)};
  }
  for (std::size_t i = 0; i < count; ++i) {
    devices_.push_back(std::make_unique<RankDevice>(driver, static_cast<std::uint32_t>(i)));
  }
}

void Runner::fill_pools(const Plan& plan) {
  for (const RankPlan& rank : plan.ranks) {
    RankDevice& device = *devices_.at(rank.rank.value());
    for (const Buffer& buffer : rank.buffers) {
      if (buffer.role != BufferRole::kv_pool) continue;
      device.ensure_pool(buffer);
      const PoolContent content{buffer.name == "k_pool" ? TensorKind::k : TensorKind::v,
                                rank.pool_heads.value_or(rank.heads_kv), is_poison(),
                                rank.kv_shard};
      device.upload(device.pool(buffer.name), initial_pool_bytes(buffer, content, problem_, data_));
    }
    RankCapture initial;
    CPVERIFY_CHECK(capture_rank(rank, initial, false));
    capture_.initial.push_back(std::move(initial));
  }
}

void Runner::fill_buffer(RankDevice& device, const Buffer& buffer, const NamedAllocation& target,
                         const Step& step) {
  switch (buffer.role) {
    case BufferRole::input:
      if (buffer.input && buffer.input->tensor == TensorKind::sinks) {
        device.upload(target, sink_bytes(buffer, sink_logits(problem_.scenario, options_.mode)));
        break;
      }
      device.upload(target, input_bytes(buffer, step, data_,
                                        is_poison() ? std::byte{kNanByte} : std::byte{0}));
      break;
    case BufferRole::metadata:
      device.upload(target, metadata_bytes(buffer));
      break;
    case BufferRole::workspace:
    case BufferRole::output:
      if (is_poison()) device.fill_bytes(target, kNanByte);
      break;
    case BufferRole::kv_pool:
      break;
  }
}

void Runner::begin_step(const Plan& plan) {
  const Step& step = problem_.steps.at(plan.step);
  for (const RankPlan& rank : plan.ranks) {
    RankDevice& device = *devices_.at(rank.rank.value());
    device.begin_step(rank.buffers);
    for (std::uint32_t i = 0; i < rank.buffers.size(); ++i) {
      fill_buffer(device, rank.buffers[i], device.allocation(BufferId{i}), step);
    }
  }
}

Finding Runner::new_finding(const Plan& plan, const RankPlan& rank) const {
  Finding finding;
  finding.strategy = plan.strategy;
  finding.mode = options_.mode;
  finding.step = plan.step;
  finding.rank = rank.rank;
  return finding;
}

/// Whether a finding says why a rank does not go on.
bool Runner::has_ended(const Plan& plan, const RankPlan& rank) const {
  return std::any_of(
      capture_.findings.begin(), capture_.findings.end(), [&](const Finding& finding) {
        return finding.rank == rank.rank && finding.step == plan.step &&
               (finding.check == Check::memcheck || finding.check == Check::synccheck);
      });
}

bool Runner::accept(CuResult result, const Plan& plan, const RankPlan& rank,
                    const std::string& label) {
  if (result == CuResult::success) return true;
  collect_faults(plan);
  if (has_ended(plan, rank)) return false;  // The checkers said it better.
  Finding finding = new_finding(plan, rank);
  finding.check = Check::memcheck;
  finding.kind = "launch_failed";
  finding.detail = fmt::format("{}: {}", label, gpu::describe(result));
  capture_.findings.push_back(std::move(finding));
  return false;
}

const Collective* Runner::waits_for(const RankPlan& rank) const {
  const std::size_t index = issued_.at(rank.rank.value());
  return index < rank.operations.size() ? std::get_if<Collective>(&rank.operations[index].body)
                                        : nullptr;
}

gpu::NcclComm Runner::issue_collective(const Plan& plan, const RankPlan& rank) {
  RankDevice& device = *devices_.at(rank.rank.value());
  const Operation& operation = rank.operations[issued_.at(rank.rank.value())];
  const auto& collective = std::get<Collective>(operation.body);
  const gpu::NcclComm comm = communicators_.of(plan.groups.at(collective.group), rank.rank);
  const CollectiveAddresses addresses{device.address(collective.send),
                                      device.address(collective.recv)};
  call_collective(lane_.nccl(), collective, addresses, comm, device.begin(operation));
  return comm;
}

/// One group call of what every rank waits for.
bool Runner::issue_collectives(const Plan& plan) {
  gpu::NcclApi& nccl = lane_.nccl();
  gpu::nccl_check(nccl.ncclGroupStart(), "ncclGroupStart");
  const RankPlan* last = nullptr;
  gpu::NcclComm last_comm = nullptr;
  for (const RankPlan& rank : plan.ranks) {
    if (waits_for(rank) == nullptr) continue;
    last = &rank;
    last_comm = issue_collective(plan, rank);
  }
  const NcclResult result = nccl.ncclGroupEnd();
  if (result == NcclResult::success) {
    end_collectives(plan);
    return true;
  }
  const std::size_t known = capture_.findings.size();
  collect_faults(plan);
  if (capture_.findings.size() > known) return false;  // A copy beyond a buffer.
  if (result != NcclResult::invalid_usage) gpu::nccl_check(result, "ncclGroupEnd");
  CPVERIFY_CHECK(last != nullptr);
  Finding finding = new_finding(plan, *last);
  finding.rank.reset();
  finding.check = Check::collectives;
  finding.kind = "collective_mismatch";
  finding.detail = nccl.ncclGetLastError(last_comm);
  capture_.findings.push_back(std::move(finding));
  return false;
}

void Runner::end_collectives(const Plan& plan) {
  for (const RankPlan& rank : plan.ranks) {
    if (waits_for(rank) == nullptr) continue;
    const std::size_t index = issued_.at(rank.rank.value())++;
    devices_.at(rank.rank.value())->end(rank.operations[index], index);
  }
}

/// What a rank does on its own, up to its next collective or its end.
bool Runner::issue_until_collective(const Plan& plan, const RankPlan& rank) {
  RankDevice& device = *devices_.at(rank.rank.value());
  std::size_t& index = issued_.at(rank.rank.value());
  for (; index < rank.operations.size() && waits_for(rank) == nullptr; ++index) {
    const Operation& operation = rank.operations[index];
    const gpu::CuStream stream = device.begin(operation);
    CuResult result = CuResult::success;
    if (const auto* launch = std::get_if<Launch>(&operation.body)) {
      result = device.launch(*launch, stream, options_.kernel_directory);
    } else if (const auto* fill = std::get_if<Fill>(&operation.body)) {
      result = device.fill(*fill, stream);
    } else if (const auto* copy = std::get_if<Copy>(&operation.body)) {
      result = device.copy(*copy, stream);
    }
    device.end(operation, index);
    if (!accept(result, plan, rank, operation.label)) return false;
  }
  return true;
}

bool Runner::run_operations(const Plan& plan) {
  issued_.assign(devices_.size(), 0);
  for (const RankPlan& rank : plan.ranks) {
    devices_.at(rank.rank.value())->begin_operations(rank.operations);
  }
  while (true) {
    for (const RankPlan& rank : plan.ranks) {
      if (!issue_until_collective(plan, rank)) return false;
    }
    const bool is_over = std::all_of(plan.ranks.begin(), plan.ranks.end(),
                                     [&](const auto& rank) { return waits_for(rank) == nullptr; });
    if (is_over) return synchronize(plan);
    if (!issue_collectives(plan)) return false;
  }
}

bool Runner::synchronize(const Plan& plan) {
  bool is_clean = true;
  for (const RankPlan& rank : plan.ranks) {
    const CuResult result = devices_.at(rank.rank.value())->synchronize();
    is_clean = accept(result, plan, rank, "synchronisation after the last operation") && is_clean;
  }
  return is_clean;
}

void Runner::drain(const Plan& plan) {
  for (const RankPlan& rank : plan.ranks) {
    static_cast<void>(devices_.at(rank.rank.value())->synchronize());
  }
}

void Runner::collect_faults(const Plan& plan) {
  const FaultContext context{plan.strategy, options_.mode, plan.step};
  for (const Fault& fault : lane_.take_faults()) {
    capture_.findings.push_back(fault_finding(fault, context, devices_));
  }
}

bool Runner::capture_rank(const RankPlan& rank, RankCapture& capture, bool with_outputs) {
  RankDevice& device = *devices_.at(rank.rank.value());
  const auto download = [&device](const NamedAllocation& source, std::vector<std::byte>& bytes) {
    return device.download(source, bytes) == CuResult::success;
  };
  for (std::uint32_t i = 0; with_outputs && i < rank.buffers.size(); ++i) {
    const Buffer& buffer = rank.buffers[i];
    if (buffer.role != BufferRole::output) continue;
    if (!download(device.allocation(BufferId{i}), capture.outputs[buffer.name])) return false;
  }
  return download(device.pool("k_pool"), capture.k_pool) &&
         download(device.pool("v_pool"), capture.v_pool);
}

std::uint64_t digest(const RunCapture& capture) {
  Fnv1a hash;
  const auto add = [&hash](const std::vector<std::byte>& bytes) {
    hash.add(static_cast<std::uint64_t>(bytes.size()));
    hash.add_bytes(bytes.data(), bytes.size());
  };
  for (const StepCapture& step : capture.steps) {
    for (const RankCapture& rank : step.ranks) {
      for (const auto& output : rank.outputs) {
        hash.add(output.first);
        add(output.second);
      }
      add(rank.k_pool);
      add(rank.v_pool);
    }
  }
  for (const Finding& finding : capture.findings) {
    for (const auto& field : finding.fields()) hash.add(field.second);
  }
  return hash.value();
}

RunCapture Runner::run(const std::vector<Plan>& plans) {
  CPVERIFY_CHECK(!plans.empty());
  capture_.has_checkers = lane_.has_checkers();
  open_devices(plans.front().ranks.size());
  fill_pools(plans.front());
  for (const Plan& plan : plans) {
    begin_step(plan);
    StepCapture step;
    step.is_complete = run_operations(plan);
    if (!step.is_complete) drain(plan);
    collect_faults(plan);
    for (std::size_t i = 0; step.is_complete && i < plan.ranks.size(); ++i) {
      RankCapture rank;
      step.is_complete = capture_rank(plan.ranks[i], rank, true);
      step.ranks.push_back(std::move(rank));
    }
    capture_.steps.push_back(std::move(step));
    if (!capture_.steps.back().is_complete) break;
  }
  capture_.digest = digest(capture_);
  return std::move(capture_);
}

}  // namespace

RunCapture run_plans(const Problem& problem, const std::vector<RequestData>& data,
                     const std::vector<Plan>& plans, gpu::Lane& lane, const RunOptions& options) {
  return Runner{problem, data, lane, options}.run(plans);
}

}  // namespace cpverify::run
