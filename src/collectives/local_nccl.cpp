#include "collectives/local_nccl.hpp"

#include <cstddef>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "collectives/clique.hpp"
#include "gpu/driver_api.hpp"
#include "gpu/handle_table.hpp"
#include "gpu/nccl_api.hpp"

namespace cpverify::collectives {
namespace {

using gpu::CuDevicePtr;
using gpu::CuResult;
using gpu::CuStream;
using gpu::NcclComm;
using gpu::NcclDataType;
using gpu::NcclResult;

/// 0 for a value that is no ncclDataType_t.
std::size_t element_bytes(NcclDataType type) noexcept {
  switch (type) {
    case NcclDataType::int8:
    case NcclDataType::uint8:
      return 1;
    case NcclDataType::float16:
    case NcclDataType::bfloat16:
      return 2;
    case NcclDataType::int32:
    case NcclDataType::uint32:
    case NcclDataType::float32:
      return 4;
    case NcclDataType::int64:
    case NcclDataType::uint64:
    case NcclDataType::float64:
      return 8;
  }
  return 0;
}

/// A rank's seat in a clique; what an NcclComm stands for.
struct Communicator {
  Clique* clique = nullptr;
  std::size_t rank = 0;
};

class LocalNccl final : public gpu::NcclApi {
 public:
  explicit LocalNccl(gpu::DriverApi& driver) : driver_{driver} {}

  NcclResult ncclCommInitAll(NcclComm* comms, int count, const int* devices) override;
  NcclResult ncclCommDestroy(NcclComm comm) override;
  NcclResult ncclGroupStart() override;
  NcclResult ncclGroupEnd() override;
  NcclResult ncclAllGather(CuDevicePtr send, CuDevicePtr recv, std::size_t count, NcclDataType type,
                           NcclComm comm, CuStream stream) override;
  const char* ncclGetLastError(NcclComm /*comm*/) override { return last_error_.c_str(); }

 private:
  NcclResult fail(NcclResult result, std::string message);
  /// As fail(); inside a group the result is also what ncclGroupEnd will return, as in NCCL.
  NcclResult fail_call(NcclResult result, std::string message);
  [[nodiscard]] std::optional<std::string> problem_of(const GatherCall& call,
                                                      const Communicator& member) const;
  NcclResult run_group();

  gpu::DriverApi& driver_;
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

  auto clique = std::make_unique<Clique>(driver_);
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

std::optional<std::string> LocalNccl::problem_of(const GatherCall& call,
                                                 const Communicator& member) const {
  const std::size_t width = element_bytes(call.type);
  if (width == 0) {
    return fmt::format("ncclAllGather: {} is no data type", static_cast<int>(call.type));
  }
  const std::size_t ranks = member.clique->size();
  if (call.count > std::numeric_limits<std::size_t>::max() / width / ranks) {
    return fmt::format("ncclAllGather: {} elements per rank overflow", call.count);
  }
  if (call.count > 0 && (call.send == 0 || call.recv == 0)) {
    return fmt::format("ncclAllGather: null buffer on rank {}", member.rank);
  }
  return std::nullopt;
}

// NOLINTNEXTLINE(readability-function-size): the public signature.
NcclResult LocalNccl::ncclAllGather(CuDevicePtr send, CuDevicePtr recv, std::size_t count,
                                    NcclDataType type, NcclComm comm, CuStream stream) {
  const Communicator* member = communicators_.find(comm);
  if (member == nullptr) {
    return fail_call(NcclResult::invalid_argument, "ncclAllGather: not a live communicator");
  }
  const GatherCall call{send, recv, count, type, element_bytes(type), stream};
  if (const auto problem = problem_of(call, *member)) {
    return fail_call(NcclResult::invalid_argument, *problem);
  }
  member->clique->add(member->rank, call);
  // A call outside a group is a group of one; that is enough for a clique of one only.
  return depth_ == 0 ? run_group() : NcclResult::success;
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

std::unique_ptr<gpu::NcclApi> make_local_nccl(gpu::DriverApi& driver) {
  return std::make_unique<LocalNccl>(driver);
}

}  // namespace cpverify::collectives
