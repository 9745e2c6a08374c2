#include "collectives/local_nccl.hpp"

#include <cstddef>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "collectives/clique.hpp"
#include "collectives/collective_call.hpp"
#include "collectives/reduction.hpp"
#include "cpverify/reduction.hpp"
#include "gpu/driver_api.hpp"
#include "gpu/handle_table.hpp"
#include "gpu/nccl_api.hpp"

namespace cpverify::collectives {
namespace {

using gpu::CuDevicePtr;
using gpu::CuStream;
using gpu::NcclComm;
using gpu::NcclDataType;
using gpu::NcclRedOp;
using gpu::NcclResult;

/// A rank's seat in a clique; what an NcclComm stands for.
struct Communicator {
  Clique* clique = nullptr;
  std::size_t rank = 0;
};

class LocalNccl final : public gpu::NcclApi {
 public:
  LocalNccl(gpu::DriverApi& driver, ReductionSpec reduction)
      : driver_{driver}, reduction_{std::move(reduction)} {}

  NcclResult ncclCommInitAll(NcclComm* comms, int count, const int* devices) override;
  NcclResult ncclCommDestroy(NcclComm comm) override;
  NcclResult ncclGroupStart() override;
  NcclResult ncclGroupEnd() override;
  NcclResult ncclAllGather(CuDevicePtr send, CuDevicePtr recv, std::size_t count, NcclDataType type,
                           NcclComm comm, CuStream stream) override {
    return call(comm, {CallKind::all_gather, send, recv, count, type, stream, NcclRedOp::sum, 0});
  }
  NcclResult ncclCommCount(NcclComm comm, int* count) override;
  NcclResult ncclCommUserRank(NcclComm comm, int* rank) override;
  NcclResult ncclCommCuDevice(NcclComm comm, int* device) override;
  // NOLINTBEGIN(readability-function-size): the public signatures.
  NcclResult ncclAllReduce(CuDevicePtr send, CuDevicePtr recv, std::size_t count, NcclDataType type,
                           NcclRedOp op, NcclComm comm, CuStream stream) override {
    return call(comm, {CallKind::all_reduce, send, recv, count, type, stream, op, 0});
  }
  NcclResult ncclReduceScatter(CuDevicePtr send, CuDevicePtr recv, std::size_t count,
                               NcclDataType type, NcclRedOp op, NcclComm comm,
                               CuStream stream) override {
    return call(comm, {CallKind::reduce_scatter, send, recv, count, type, stream, op, 0});
  }
  NcclResult ncclReduce(CuDevicePtr send, CuDevicePtr recv, std::size_t count, NcclDataType type,
                        NcclRedOp op, int root, NcclComm comm, CuStream stream) override {
    return call(comm, {CallKind::reduce, send, recv, count, type, stream, op, root});
  }
  NcclResult ncclBroadcast(CuDevicePtr send, CuDevicePtr recv, std::size_t count, NcclDataType type,
                           int root, NcclComm comm, CuStream stream) override {
    return call(comm, {CallKind::broadcast, send, recv, count, type, stream, NcclRedOp::sum, root});
  }
  NcclResult ncclSend(CuDevicePtr send, std::size_t count, NcclDataType type, int peer,
                      NcclComm comm, CuStream stream) override {
    return call(comm, {CallKind::send, send, 0, count, type, stream, NcclRedOp::sum, peer});
  }
  NcclResult ncclRecv(CuDevicePtr recv, std::size_t count, NcclDataType type, int peer,
                      NcclComm comm, CuStream stream) override {
    return call(comm, {CallKind::recv, 0, recv, count, type, stream, NcclRedOp::sum, peer});
  }
  NcclResult ncclAlltoAll(CuDevicePtr send, CuDevicePtr recv, std::size_t count, NcclDataType type,
                          NcclComm comm, CuStream stream) override {
    return call(comm, {CallKind::all_to_all, send, recv, count, type, stream, NcclRedOp::sum, 0});
  }
  // NOLINTEND(readability-function-size)
  const char* ncclGetErrorString(NcclResult result) override;
  const char* ncclGetLastError(NcclComm /*comm*/) override { return last_error_.c_str(); }

 private:
  NcclResult fail(NcclResult result, std::string message);
  /// As fail(); inside a group the result is also what ncclGroupEnd will return, as in NCCL.
  NcclResult fail_call(NcclResult result, std::string message);
  /// Adds a rank's call to the open group, or runs it as a group of one.
  NcclResult call(NcclComm comm, const CollectiveCall& call);
  NcclResult run_group();

  gpu::DriverApi& driver_;
  ReductionSpec reduction_;
  gpu::HandleTable<NcclComm, Communicator> communicators_;
  std::vector<std::unique_ptr<Clique>> cliques_;
  int depth_ = 0;
  NcclResult group_result_ = NcclResult::success;
  std::string last_error_;
};

NcclResult LocalNccl::fail(NcclResult result, std::string message) {
  last_error_ = std::move(message);
  return result;
}

NcclResult LocalNccl::fail_call(NcclResult result, std::string message) {
  if (depth_ > 0 && group_result_ == NcclResult::success) group_result_ = result;
  return fail(result, std::move(message));
}

NcclResult LocalNccl::ncclCommInitAll(NcclComm* comms, int count, const int* devices) {
  if (comms == nullptr || count < 1) {
    return fail(
        NcclResult::invalid_argument,
        fmt::format("ncclCommInitAll: {} communicators asked for, at least 1 expected", count));
  }
  std::vector<int> ordinals(static_cast<std::size_t>(count));
  std::iota(ordinals.begin(), ordinals.end(), 0);
  if (devices != nullptr) ordinals.assign(devices, devices + count);
  if (std::set<int>(ordinals.begin(), ordinals.end()).size() != ordinals.size()) {
    return fail(NcclResult::invalid_usage, "ncclCommInitAll: a device is listed twice");
  }

  auto clique = std::make_unique<Clique>(driver_, reduction_);
  const DriverStatus status = clique->open(ordinals);
  if (!status.is_success()) return fail(NcclResult::unhandled_cuda_error, status.describe());
  for (std::size_t rank = 0; rank < ordinals.size(); ++rank) {
    comms[rank] =
        communicators_.insert(std::make_unique<Communicator>(Communicator{clique.get(), rank}));
  }
  cliques_.push_back(std::move(clique));
  return NcclResult::success;
}

NcclResult LocalNccl::ncclCommDestroy(NcclComm comm) {
  const Communicator* member = communicators_.find(comm);
  if (member == nullptr) {
    return fail(NcclResult::invalid_argument, "ncclCommDestroy: not a live communicator");
  }
  Clique* clique = member->clique;
  if (clique->has_calls()) {
    return fail_call(NcclResult::invalid_usage,
                     "ncclCommDestroy: the open group has calls of this communicator");
  }
  communicators_.erase(comm);
  clique->leave();
  std::erase_if(cliques_, [](const auto& candidate) { return candidate->is_empty(); });
  return NcclResult::success;
}

NcclResult LocalNccl::ncclGroupStart() {
  ++depth_;
  return NcclResult::success;
}

NcclResult LocalNccl::ncclGroupEnd() {
  if (depth_ == 0) return fail(NcclResult::invalid_usage, "ncclGroupEnd without ncclGroupStart");
  if (--depth_ > 0) return NcclResult::success;
  return run_group();
}

NcclResult LocalNccl::call(NcclComm comm, const CollectiveCall& call) {
  const Communicator* member = communicators_.find(comm);
  if (member == nullptr) {
    return fail_call(NcclResult::invalid_argument,
                     fmt::format("{}: not a live communicator", name(call.kind)));
  }
  const std::size_t ranks = member->clique->size();
  std::optional<std::string> problem = problem_of(call, member->rank, ranks);
  if (!problem && call.is_reduction() && !is_valid(reduction_, ranks)) {
    problem = fmt::format("{}: policy {} does not fit {} ranks", name(call.kind), text(reduction_),
                          ranks);
  }
  if (problem) return fail_call(NcclResult::invalid_argument, *problem);
  member->clique->add(member->rank, call);
  // A call outside a group is a group of one; that is enough for a clique of one only.
  return depth_ == 0 ? run_group() : NcclResult::success;
}

NcclResult LocalNccl::ncclCommCount(NcclComm comm, int* count) {
  const Communicator* member = communicators_.find(comm);
  if (member == nullptr || count == nullptr) {
    return fail(NcclResult::invalid_argument, "ncclCommCount: no communicator, or no result");
  }
  *count = static_cast<int>(member->clique->size());
  return NcclResult::success;
}

NcclResult LocalNccl::ncclCommUserRank(NcclComm comm, int* rank) {
  const Communicator* member = communicators_.find(comm);
  if (member == nullptr || rank == nullptr) {
    return fail(NcclResult::invalid_argument, "ncclCommUserRank: no communicator, or no result");
  }
  *rank = static_cast<int>(member->rank);
  return NcclResult::success;
}

NcclResult LocalNccl::ncclCommCuDevice(NcclComm comm, int* device) {
  const Communicator* member = communicators_.find(comm);
  if (member == nullptr || device == nullptr) {
    return fail(NcclResult::invalid_argument, "ncclCommCuDevice: no communicator, or no result");
  }
  *device = member->clique->device(member->rank);
  return NcclResult::success;
}

const char* LocalNccl::ncclGetErrorString(NcclResult result) {
  switch (result) {
    case NcclResult::success:
      return "no error";
    case NcclResult::unhandled_cuda_error:
      return "unhandled cuda error (run with NCCL_DEBUG=INFO for details)";
    case NcclResult::system_error:
      return "unhandled system error (run with NCCL_DEBUG=INFO for details)";
    case NcclResult::internal_error:
      return "internal error";
    case NcclResult::invalid_argument:
      return "invalid argument";
    case NcclResult::invalid_usage:
      return "invalid usage";
    case NcclResult::remote_error:
      return "remote process exited or there was a network error";
    case NcclResult::in_progress:
      return "NCCL operation in progress";
  }
  return "unknown result code";
}

NcclResult LocalNccl::run_group() {
  NcclResult result = std::exchange(group_result_, NcclResult::success);
  for (std::size_t i = 0; result == NcclResult::success && i < cliques_.size(); ++i) {
    if (const auto mismatch = cliques_[i]->mismatch()) {
      result = fail(NcclResult::invalid_usage, *mismatch);
    }
  }
  for (const auto& clique : cliques_) {
    if (result == NcclResult::success) {
      const DriverStatus status = clique->run();
      if (!status.is_success()) result = fail(NcclResult::unhandled_cuda_error, status.describe());
    }
    clique->clear_calls();
  }
  return result;
}

}  // namespace

std::unique_ptr<gpu::NcclApi> make_local_nccl(gpu::DriverApi& driver,
                                              const ReductionSpec& reduction) {
  return std::make_unique<LocalNccl>(driver, reduction);
}

}  // namespace cpverify::collectives
