#include "collectives/clique.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <optional>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "collectives/collective_call.hpp"
#include "collectives/reduction.hpp"
#include "collectives/staging.hpp"
#include "gpu/check.hpp"
#include "gpu/driver_api.hpp"

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
std::vector<CuStream> streams_of(const std::vector<CollectiveCall>& calls) {
  std::vector<CuStream> streams;
  for (const CollectiveCall& call : calls) {
    if (std::find(streams.begin(), streams.end(), call.stream) == streams.end()) {
      streams.push_back(call.stream);
    }
  }
  return streams;
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
    if (rank.reduced != nullptr) static_cast<void>(driver_.cuEventDestroy(rank.reduced));
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

std::vector<CollectiveCall> Clique::collectives_of(const Rank& rank) {
  std::vector<CollectiveCall> calls;
  std::copy_if(rank.calls.begin(), rank.calls.end(), std::back_inserter(calls),
               [](const CollectiveCall& call) { return !call.is_transfer(); });
  return calls;
}

std::vector<CollectiveCall> Clique::transfers_of(const Rank& rank, CallKind kind,
                                                 std::size_t peer) {
  std::vector<CollectiveCall> calls;
  std::copy_if(rank.calls.begin(), rank.calls.end(), std::back_inserter(calls),
               [=](const CollectiveCall& call) {
                 return call.kind == kind && static_cast<std::size_t>(call.root) == peer;
               });
  return calls;
}

std::size_t Clique::ordinal_of(std::size_t rank, std::size_t call) const {
  const auto begin = ranks_[rank].calls.begin();
  return static_cast<std::size_t>(
      std::count_if(begin, begin + static_cast<std::ptrdiff_t>(call),
                    [](const CollectiveCall& earlier) { return !earlier.is_transfer(); }));
}

CollectiveCall Clique::counterpart(std::size_t rank, std::size_t call, std::size_t peer) const {
  return collectives_of(ranks_[peer]).at(ordinal_of(rank, call));
}

std::optional<std::string> Clique::collective_mismatch() const {
  std::vector<std::vector<CollectiveCall>> calls;
  std::size_t longest = 0;
  for (const Rank& rank : ranks_) {
    calls.push_back(collectives_of(rank));
    longest = std::max(longest, calls.back().size());
  }
  for (std::size_t call = 0; call < longest; ++call) {
    const auto caller = std::find_if(calls.begin(), calls.end(),
                                     [call](const auto& own) { return call < own.size(); });
    for (std::size_t rank = 0; rank < ranks_.size(); ++rank) {
      // Rank 0 is asked first, so it has called when another is compared with it.
      const std::optional<std::string> problem =
          call >= calls[rank].size()
              ? fmt::format("rank {} of {} did not call", rank, ranks_.size())
              : difference(calls[rank][call], rank, ranks_.size(), calls[0][call]);
      if (problem) {
        return fmt::format("{} {} of the group: {}", name((*caller)[call].kind), call, *problem);
      }
    }
  }
  return std::nullopt;
}

std::optional<std::string> Clique::transfer_mismatch(std::size_t from, std::size_t to) const {
  const auto sends = transfers_of(ranks_[from], CallKind::send, to);
  const auto recvs = transfers_of(ranks_[to], CallKind::recv, from);
  if (sends.size() != recvs.size()) {
    return fmt::format("rank {} sends {} times to rank {}, which receives {} times", from,
                       sends.size(), to, recvs.size());
  }
  for (std::size_t i = 0; i < sends.size(); ++i) {
    if (sends[i].size_bytes() == recvs[i].size_bytes() && sends[i].type == recvs[i].type) continue;
    return fmt::format(
        "ncclSend {} of rank {} to rank {} has {} elements of type {}, its ncclRecv {} of type {}",
        i, from, to, sends[i].count, static_cast<int>(sends[i].type), recvs[i].count,
        static_cast<int>(recvs[i].type));
  }
  return std::nullopt;
}

std::optional<std::string> Clique::mismatch() const {
  std::optional<std::string> problem = collective_mismatch();
  for (std::size_t from = 0; !problem && from < ranks_.size(); ++from) {
    for (std::size_t to = 0; !problem && to < ranks_.size(); ++to) {
      problem = transfer_mismatch(from, to);
    }
  }
  return problem;
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
// go on to overwrite its send buffer only when all that read it have done so.
DriverStatus Clique::run_in_contexts() {
  find_reads();
  led_.clear();
  DriverStatus status;
  for (std::size_t i = 0; status.is_success() && i < ranks_.size(); ++i) {
    if (!ranks_[i].calls.empty()) status = arrive(ranks_[i]);
  }
  if (status.is_success()) status = lead();
  for (std::size_t i = 0; status.is_success() && i < ranks_.size(); ++i) {
    if (!ranks_[i].calls.empty()) status = exchange(i);
  }
  for (std::size_t i = 0; status.is_success() && i < ranks_.size(); ++i) {
    if (!ranks_[i].calls.empty()) status = depart(i);
  }
  driver_.name_work(nullptr, 0);
  return status;
}

void Clique::find_reads() {
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    Rank& rank = ranks_[i];
    rank.reads.assign(ranks_.size(), false);
    rank.reads[i] = true;
    for (const CollectiveCall& call : rank.calls) {
      const auto root = static_cast<std::size_t>(call.root);
      const bool is_leader = call.kind == CallKind::all_reduce ? i == 0 : i == root;
      switch (call.kind) {
        case CallKind::broadcast:
        case CallKind::recv:
          rank.reads[root] = true;
          break;
        case CallKind::send:
          break;
        case CallKind::reduce:
        case CallKind::all_reduce:
          if (is_leader) rank.reads.assign(ranks_.size(), true);
          break;
        case CallKind::all_gather:
        case CallKind::reduce_scatter:
        case CallKind::all_to_all:
          rank.reads.assign(ranks_.size(), true);
          break;
      }
    }
  }
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

DriverStatus Clique::lead() {
  const Rank& rank = ranks_.front();
  led_.assign(collectives_of(rank).size(), nullptr);
  const auto is_led = [](const CollectiveCall& call) {
    return call.kind == CallKind::all_reduce && call.count > 0;
  };
  if (std::none_of(rank.calls.begin(), rank.calls.end(), is_led)) return {};
  Sequence sequence;
  sequence.then("cuCtxSetCurrent", [&] { return driver_.cuCtxSetCurrent(rank.context); });
  if (rank.reduced == nullptr) {
    sequence.then("cuEventCreate", [&] {
      return driver_.cuEventCreate(&ranks_.front().reduced, gpu::kEventDisableTiming);
    });
  }
  const CuStream stream = rank.calls.front().stream;
  for (const Rank& peer : ranks_) {
    sequence.then("cuStreamWaitEvent",
                  [&] { return driver_.cuStreamWaitEvent(stream, peer.ready, 0); });
  }
  DriverStatus status = sequence.status();
  for (std::size_t call = 0; status.is_success() && call < rank.calls.size(); ++call) {
    if (!is_led(rank.calls[call])) continue;
    const CollectiveCall& ours = rank.calls[call];
    const Reduction reduction{ours.type, ours.op, ours.count, -1};
    StagedReduction*& staged = led_[ordinal_of(0, call)];
    status = {staging_.take(reduction, ranks_.size(), ranks_.size(), staged), "cuMemHostAlloc"};
    if (status.is_success()) status = stage(0, call, 0, *staged);
  }
  if (!status.is_success()) return status;
  return {driver_.cuEventRecord(rank.reduced, stream), "cuEventRecord"};
}

DriverStatus Clique::exchange(std::size_t index) {
  const Rank& rank = ranks_[index];
  const CuStream stream = rank.calls.front().stream;
  Sequence sequence;
  sequence.then("cuCtxSetCurrent", [&] { return driver_.cuCtxSetCurrent(rank.context); });
  for (std::size_t peer = 0; peer < ranks_.size(); ++peer) {
    // A peer without calls has nothing that is read.
    if (!rank.reads[peer] || ranks_[peer].calls.empty()) continue;
    sequence.then("cuStreamWaitEvent",
                  [&] { return driver_.cuStreamWaitEvent(stream, ranks_[peer].ready, 0); });
  }
  if (std::any_of(led_.begin(), led_.end(), [](const auto* led) { return led != nullptr; })) {
    sequence.then("cuStreamWaitEvent",
                  [&] { return driver_.cuStreamWaitEvent(stream, ranks_[0].reduced, 0); });
  }
  DriverStatus status = sequence.status();
  for (std::size_t call = 0; status.is_success() && call < rank.calls.size(); ++call) {
    driver_.name_work(name(rank.calls[call].kind), static_cast<std::uint32_t>(index));
    status = run_call(index, call);
  }
  driver_.name_work(nullptr, 0);
  if (!status.is_success()) return status;
  return {driver_.cuEventRecord(rank.done, stream), "cuEventRecord"};
}

DriverStatus Clique::run_call(std::size_t index, std::size_t call) {
  const CollectiveCall& ours = ranks_[index].calls[call];
  if (ours.count == 0) return {};
  switch (ours.kind) {
    case CallKind::all_gather:
    case CallKind::broadcast:
    case CallKind::all_to_all:
      return copy_blocks(index, call);
    case CallKind::reduce_scatter:
      return reduce_block(index, call, index);
    case CallKind::reduce:
      return static_cast<std::size_t>(ours.root) == index ? reduce_block(index, call, 0)
                                                          : DriverStatus{};
    case CallKind::all_reduce:
      return deliver(index, call, *led_[ordinal_of(index, call)]);
    case CallKind::recv:
      return copy_transfer(index, call);
    case CallKind::send:
      break;
  }
  return {};
}

DriverStatus Clique::copy(std::size_t rank, CuDevicePtr target, const Block& block) {
  if (block.size_bytes == 0 || target == block.source) return {};
  return {driver_.cuMemcpyPeerAsync(target, ranks_[rank].context, block.source,
                                    ranks_[block.peer].context, block.size_bytes,
                                    ranks_[rank].calls.front().stream),
          "cuMemcpyPeerAsync"};
}

DriverStatus Clique::copy_blocks(std::size_t rank, std::size_t call) {
  const CollectiveCall& ours = ranks_[rank].calls[call];
  const std::size_t size = ours.size_bytes();
  if (ours.kind == CallKind::broadcast) {
    const auto root = static_cast<std::size_t>(ours.root);
    return copy(rank, ours.recv, {root, counterpart(rank, call, root).send, size});
  }
  // A transposition takes a peer's block for us.
  const std::size_t offset = ours.kind == CallKind::all_to_all ? rank * size : 0;
  DriverStatus status;
  for (std::size_t peer = 0; status.is_success() && peer < ranks_.size(); ++peer) {
    const CollectiveCall theirs = counterpart(rank, call, peer);
    status = copy(rank, ours.recv + peer * size, {peer, theirs.send + offset, size});
  }
  return status;
}

DriverStatus Clique::copy_transfer(std::size_t rank, std::size_t call) {
  const CollectiveCall& ours = ranks_[rank].calls[call];
  const auto peer = static_cast<std::size_t>(ours.root);
  std::size_t earlier = 0;
  for (std::size_t i = 0; i < call; ++i) {
    const CollectiveCall& other = ranks_[rank].calls[i];
    if (other.kind == CallKind::recv && other.root == ours.root) ++earlier;
  }
  const CollectiveCall theirs = transfers_of(ranks_[peer], CallKind::send, rank).at(earlier);
  return copy(rank, ours.recv, {peer, theirs.send, ours.size_bytes()});
}

DriverStatus Clique::reduce_block(std::size_t rank, std::size_t call, std::size_t block) {
  const CollectiveCall& ours = ranks_[rank].calls[call];
  const Reduction reduction{ours.type, ours.op, ours.count, static_cast<int>(rank)};
  StagedReduction* staged = nullptr;
  DriverStatus status{staging_.take(reduction, ranks_.size(), 1, staged), "cuMemHostAlloc"};
  if (status.is_success()) status = stage(rank, call, block, *staged);
  return status.is_success() ? deliver(rank, call, *staged) : status;
}

DriverStatus Clique::stage(std::size_t rank, std::size_t call, std::size_t block,
                           StagedReduction& staged) {
  const CollectiveCall& ours = ranks_[rank].calls[call];
  const CuStream stream = ranks_[rank].calls.front().stream;
  const std::size_t size = ours.size_bytes();
  staged.spec = reduction_;
  Sequence sequence;
  for (std::size_t peer = 0; peer < ranks_.size(); ++peer) {
    driver_.name_work(name(ours.kind), static_cast<std::uint32_t>(peer));
    auto* const input = staged.memory + peer * size;
    const CuDevicePtr source = counterpart(rank, call, peer).send + block * size;
    sequence.then("cuMemcpyDtoHAsync",
                  [&] { return driver_.cuMemcpyDtoHAsync(input, source, size, stream); });
  }
  driver_.name_work(name(ours.kind), static_cast<std::uint32_t>(rank));
  sequence.then("cuLaunchHostFunc",
                [&] { return driver_.cuLaunchHostFunc(stream, &StagedReduction::run, &staged); });
  return sequence.status();
}

DriverStatus Clique::deliver(std::size_t rank, std::size_t call, StagedReduction& staged) {
  const CollectiveCall& ours = ranks_[rank].calls[call];
  const CuStream stream = ranks_[rank].calls.front().stream;
  Sequence sequence;
  sequence
      .then("cuMemcpyHtoDAsync",
            [&] {
              return driver_.cuMemcpyHtoDAsync(ours.recv, staged.output, ours.size_bytes(), stream);
            })
      .then("cuLaunchHostFunc", [&] {
        return driver_.cuLaunchHostFunc(stream, &StagedReduction::end_result, &staged);
      });
  return sequence.status();
}

DriverStatus Clique::depart(std::size_t index) {
  const Rank& rank = ranks_[index];
  const std::vector<CuStream> streams = streams_of(rank.calls);
  Sequence sequence;
  sequence.then("cuCtxSetCurrent", [&] { return driver_.cuCtxSetCurrent(rank.context); });
  for (const CuStream stream : streams) {
    for (const Rank& peer : ranks_) {
      if (!peer.reads[index] || peer.calls.empty()) continue;
      sequence.then("cuStreamWaitEvent",
                    [&] { return driver_.cuStreamWaitEvent(stream, peer.done, 0); });
    }
  }
  return sequence.status();
}

}  // namespace cpverify::collectives
