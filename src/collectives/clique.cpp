#include "collectives/clique.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "gpu/check.hpp"
#include "gpu/driver_api.hpp"
#include "support/check.hpp"

namespace cpverify::collectives {
namespace {

using gpu::CuContext;
using gpu::CuDevicePtr;
using gpu::CuResult;
using gpu::CuStream;

/// Remembers the first failure and skips the calls after it.
class Sequence {
 public:
  template <class Call>
  Sequence& then(const char* name, Call call) {
    if (status_.is_success()) status_ = DriverStatus{call(), name};
    return *this;
  }
  [[nodiscard]] DriverStatus status() const noexcept { return status_; }

 private:
  DriverStatus status_;
};

/// The streams of a rank's calls, in the order of their first use. The first carries the copies.
std::vector<CuStream> streams_of(const std::vector<GatherCall>& calls) {
  std::vector<CuStream> streams;
  for (const GatherCall& call : calls) {
    if (std::find(streams.begin(), streams.end(), call.stream) == streams.end()) {
      streams.push_back(call.stream);
    }
  }
  return streams;
}

/// NCCL allows send inside recv only at the rank's own block.
bool is_overlap_allowed(const GatherCall& call, std::size_t rank, std::size_t ranks) noexcept {
  const std::size_t size = call.size_bytes();
  const bool is_in_place = call.send == call.recv + rank * size;
  const bool is_apart = call.send + size <= call.recv || call.recv + ranks * size <= call.send;
  return size == 0 || is_in_place || is_apart;
}

}  // namespace

std::string DriverStatus::describe() const {
  return fmt::format("{} failed: {}", call, gpu::describe(result));
}

// Results are ignored: a context with a fault refuses, and the owner of the driver cleans up.
Clique::~Clique() {
  for (const Rank& rank : ranks_) {
    if (rank.joined != nullptr) static_cast<void>(driver_.cuEventDestroy(rank.joined));
    if (rank.ready != nullptr) static_cast<void>(driver_.cuEventDestroy(rank.ready));
    if (rank.done != nullptr) static_cast<void>(driver_.cuEventDestroy(rank.done));
    if (rank.context != nullptr) static_cast<void>(driver_.cuDevicePrimaryCtxRelease(rank.device));
  }
}

DriverStatus Clique::open(const std::vector<int>& devices) {
  CuContext previous = nullptr;
  DriverStatus status{driver_.cuCtxGetCurrent(&previous), "cuCtxGetCurrent"};
  if (!status.is_success()) return status;
  for (const int device : devices) {
    if (!status.is_success()) break;
    ranks_.emplace_back();
    status = open_rank(ranks_.back(), device);
  }
  const DriverStatus restored{driver_.cuCtxSetCurrent(previous), "cuCtxSetCurrent"};
  return status.is_success() ? restored : status;
}

DriverStatus Clique::open_rank(Rank& rank, int device) {
  Sequence sequence;
  sequence.then("cuDeviceGet", [&] { return driver_.cuDeviceGet(&rank.device, device); })
      .then("cuDevicePrimaryCtxRetain",
            [&] { return driver_.cuDevicePrimaryCtxRetain(&rank.context, rank.device); })
      .then("cuCtxSetCurrent", [&] { return driver_.cuCtxSetCurrent(rank.context); });
  for (gpu::CuEvent* event : {&rank.joined, &rank.ready, &rank.done}) {
    sequence.then("cuEventCreate",
                  [&] { return driver_.cuEventCreate(event, gpu::kEventDisableTiming); });
  }
  return sequence.status();
}

void Clique::clear_calls() noexcept {
  for (Rank& rank : ranks_) rank.calls.clear();
}

bool Clique::has_calls() const noexcept {
  return std::any_of(ranks_.begin(), ranks_.end(),
                     [](const Rank& rank) { return !rank.calls.empty(); });
}

std::optional<std::string> Clique::mismatch() const {
  std::size_t longest = 0;
  for (const Rank& rank : ranks_) longest = std::max(longest, rank.calls.size());
  for (std::size_t call = 0; call < longest; ++call) {
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      if (auto problem = mismatch_of(rank, call)) {
        return fmt::format("ncclAllGather {} of the group: {}", call, *problem);
      }
    }
  }
  return std::nullopt;
}

std::optional<std::string> Clique::mismatch_of(std::size_t rank, std::size_t call) const {
  if (call >= ranks_[rank].calls.size()) {
    return fmt::format("rank {} of {} did not call", rank, ranks_.size());
  }
  const GatherCall& ours = ranks_[rank].calls[call];
  const GatherCall& first = ranks_[0].calls[call];  // Rank 0 was asked first, so it has called.
  if (ours.count != first.count || ours.type != first.type) {
    return fmt::format("rank {} sends {} elements of type {}, rank 0 sends {} of type {}", rank,
                       ours.count, static_cast<int>(ours.type), first.count,
                       static_cast<int>(first.type));
  }
  if (!is_overlap_allowed(ours, rank, ranks_.size())) {
    return fmt::format("send of rank {} overlaps recv other than in place (at recv + rank * count)",
                       rank);
  }
  return std::nullopt;
}

DriverStatus Clique::run() {
  if (!has_calls()) return {};
  CuContext previous = nullptr;
  DriverStatus status{driver_.cuCtxGetCurrent(&previous), "cuCtxGetCurrent"};
  if (!status.is_success()) return status;
  status = run_in_contexts();
  const DriverStatus restored{driver_.cuCtxSetCurrent(previous), "cuCtxSetCurrent"};
  return status.is_success() ? restored : status;
}

// A rank may read a peer's send buffer only when the peer's stream has filled it, and a stream may
// go on to overwrite its send buffer only when all peers have read it.
DriverStatus Clique::run_in_contexts() {
  DriverStatus status;
  for (std::size_t i = 0; status.is_success() && i < ranks_.size(); ++i) status = arrive(ranks_[i]);
  for (std::size_t i = 0; status.is_success() && i < ranks_.size(); ++i) status = gather(i);
  for (std::size_t i = 0; status.is_success() && i < ranks_.size(); ++i) status = depart(ranks_[i]);
  return status;
}

DriverStatus Clique::arrive(const Rank& rank) {
  const std::vector<CuStream> streams = streams_of(rank.calls);
  Sequence sequence;
  sequence.then("cuCtxSetCurrent", [&] { return driver_.cuCtxSetCurrent(rank.context); });
  for (std::size_t i = 1; i < streams.size(); ++i) {
    sequence.then("cuEventRecord", [&] { return driver_.cuEventRecord(rank.joined, streams[i]); })
        .then("cuStreamWaitEvent",
              [&] { return driver_.cuStreamWaitEvent(streams[0], rank.joined, 0); });
  }
  sequence.then("cuEventRecord", [&] { return driver_.cuEventRecord(rank.ready, streams[0]); });
  return sequence.status();
}

DriverStatus Clique::gather(std::size_t index) {
  const Rank& rank = ranks_[index];
  const CuStream stream = rank.calls.front().stream;
  Sequence sequence;
  sequence.then("cuCtxSetCurrent", [&] { return driver_.cuCtxSetCurrent(rank.context); });
  for (const Rank& peer : ranks_) {
    sequence.then("cuStreamWaitEvent",
                  [&] { return driver_.cuStreamWaitEvent(stream, peer.ready, 0); });
  }
  DriverStatus status = sequence.status();
  for (std::size_t call = 0; call < rank.calls.size(); ++call) {
    for (std::size_t peer = 0; status.is_success() && peer < ranks_.size(); ++peer) {
      status = copy_block(index, peer, call);
    }
  }
  if (!status.is_success()) return status;
  return {driver_.cuEventRecord(rank.done, stream), "cuEventRecord"};
}

DriverStatus Clique::copy_block(std::size_t rank, std::size_t peer, std::size_t call) {
  const GatherCall& ours = ranks_[rank].calls[call];
  const GatherCall& theirs = ranks_[peer].calls[call];
  const std::size_t size = ours.size_bytes();
  CPVERIFY_CHECK(size == theirs.size_bytes());
  const CuDevicePtr target = ours.recv + peer * size;
  if (size == 0 || target == theirs.send) return {};
  return {driver_.cuMemcpyPeerAsync(target, ranks_[rank].context, theirs.send, ranks_[peer].context,
                                    size, ranks_[rank].calls.front().stream),
          "cuMemcpyPeerAsync"};
}

DriverStatus Clique::depart(const Rank& rank) {
  const std::vector<CuStream> streams = streams_of(rank.calls);
  Sequence sequence;
  sequence.then("cuCtxSetCurrent", [&] { return driver_.cuCtxSetCurrent(rank.context); });
  for (const CuStream stream : streams) {
    for (const Rank& peer : ranks_) {
      sequence.then("cuStreamWaitEvent",
                    [&] { return driver_.cuStreamWaitEvent(stream, peer.done, 0); });
    }
  }
  return sequence.status();
}

}  // namespace cpverify::collectives
