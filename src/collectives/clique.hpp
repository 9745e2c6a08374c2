#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "collectives/collective_call.hpp"
#include "collectives/staging.hpp"
#include "cpverify/reduction.hpp"
#include "gpu/driver_api.hpp"
#include "gpu/nccl_api.hpp"

namespace cpverify::collectives {

/// The first driver call that failed, if one did.
struct DriverStatus {
  gpu::CuResult result = gpu::CuResult::success;
  const char* call = "";

  [[nodiscard]] bool is_success() const noexcept { return result == gpu::CuResult::success; }
  /// "cuMemcpyPeerAsync failed: CUDA_ERROR_INVALID_VALUE (1)".
  [[nodiscard]] std::string describe() const;
};

/// The communicators that one ncclCommInitAll made, and the calls of the open group on them.
class Clique {
 public:
  /// `reduction` decides in which order sums are taken.
  Clique(gpu::DriverApi& driver, ReductionSpec reduction)
      : driver_{driver}, reduction_{std::move(reduction)}, staging_{driver} {}
  ~Clique();
  Clique(const Clique&) = delete;
  Clique& operator=(const Clique&) = delete;
  Clique(Clique&&) = delete;
  Clique& operator=(Clique&&) = delete;

  /// Retains the context of each device, in rank order, and makes the events.
  [[nodiscard]] DriverStatus open(const std::vector<int>& devices);
  [[nodiscard]] std::size_t size() const noexcept { return ranks_.size(); }
  [[nodiscard]] gpu::CuDevice device(std::size_t rank) const { return ranks_.at(rank).device; }
  [[nodiscard]] const ReductionSpec& reduction() const noexcept { return reduction_; }

  void leave() noexcept { ++left_; }
  [[nodiscard]] bool is_empty() const noexcept { return left_ == ranks_.size(); }

  void add(std::size_t rank, const CollectiveCall& call) { ranks_[rank].calls.push_back(call); }
  void clear_calls() noexcept;
  [[nodiscard]] bool has_calls() const noexcept;

  /// What a real NCCL would hang on or corrupt: a member that does not call, calls that differ.
  [[nodiscard]] std::optional<std::string> mismatch() const;
  /// Enqueues the calls of all ranks, which must match. Keeps the current context.
  [[nodiscard]] DriverStatus run();

 private:
  struct Rank {
    gpu::CuDevice device = 0;
    gpu::CuContext context = nullptr;
    gpu::CuEvent joined = nullptr;   ///< The other streams of the rank have come this far.
    gpu::CuEvent ready = nullptr;    ///< Everything before the collective is done.
    gpu::CuEvent done = nullptr;     ///< The rank has read what it needs from its peers.
    gpu::CuEvent reduced = nullptr;  ///< Rank 0 has the sums of all-reduces; made when needed.
    std::vector<CollectiveCall> calls;
    std::vector<bool> reads;  ///< By peer: the rank reads its send buffer in this group.
  };

  /// The collectives of a rank, or its sends to or recvs from a peer, in the order of the calls.
  [[nodiscard]] static std::vector<CollectiveCall> collectives_of(const Rank& rank);
  [[nodiscard]] static std::vector<CollectiveCall> transfers_of(const Rank& rank, CallKind kind,
                                                                std::size_t peer);
  /// Which of the rank's collectives a call is; the others' calls with that number belong to it.
  [[nodiscard]] std::size_t ordinal_of(std::size_t rank, std::size_t call) const;
  [[nodiscard]] CollectiveCall counterpart(std::size_t rank, std::size_t call,
                                           std::size_t peer) const;
  [[nodiscard]] std::optional<std::string> collective_mismatch() const;
  [[nodiscard]] std::optional<std::string> transfer_mismatch(std::size_t from,
                                                             std::size_t to) const;
  [[nodiscard]] DriverStatus open_rank(Rank& rank, int device);
  [[nodiscard]] DriverStatus run_in_contexts();
  void find_reads();
  [[nodiscard]] DriverStatus arrive(const Rank& rank);
  /// Rank 0 takes the sums of all-reduces: nobody may write its recv, which may be its send, before
  /// all sends have been read.
  [[nodiscard]] DriverStatus lead();
  [[nodiscard]] DriverStatus exchange(std::size_t rank);
  [[nodiscard]] DriverStatus run_call(std::size_t rank, std::size_t call);
  [[nodiscard]] DriverStatus depart(std::size_t rank);

  /// A block of `size_bytes` of a peer's send buffer.
  struct Block {
    std::size_t peer = 0;
    gpu::CuDevicePtr source = 0;
    std::size_t size_bytes = 0;
  };
  [[nodiscard]] DriverStatus copy(std::size_t rank, gpu::CuDevicePtr target, const Block& block);
  [[nodiscard]] DriverStatus copy_blocks(std::size_t rank, std::size_t call);
  [[nodiscard]] DriverStatus copy_transfer(std::size_t rank, std::size_t call);
  /// Reduces block `block` of the ranks' call and delivers it to the rank.
  [[nodiscard]] DriverStatus reduce_block(std::size_t rank, std::size_t call, std::size_t block);
  [[nodiscard]] DriverStatus stage(std::size_t rank, std::size_t call, std::size_t block,
                                   StagedReduction& staged);
  [[nodiscard]] DriverStatus deliver(std::size_t rank, std::size_t call, StagedReduction& staged);

  gpu::DriverApi& driver_;
  ReductionSpec reduction_;
  Staging staging_;
  std::vector<Rank> ranks_;
  std::vector<StagedReduction*> led_;  ///< By collective of the group: the all-reduce, or null.
  std::size_t left_ = 0;
};

}  // namespace cpverify::collectives
