#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "gpu/driver_api.hpp"
#include "gpu/nccl_api.hpp"

namespace cpverify::collectives {

/// One rank's ncclAllGather.
struct GatherCall {
  gpu::CuDevicePtr send = 0;
  gpu::CuDevicePtr recv = 0;
  std::size_t count = 0;  ///< Elements per rank.
  gpu::NcclDataType type = gpu::NcclDataType::uint8;
  std::size_t element_bytes = 1;
  gpu::CuStream stream = nullptr;

  [[nodiscard]] std::size_t size_bytes() const noexcept { return count * element_bytes; }
};

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
  explicit Clique(gpu::DriverApi& driver) : driver_{driver} {}
  ~Clique();
  Clique(const Clique&) = delete;
  Clique& operator=(const Clique&) = delete;
  Clique(Clique&&) = delete;
  Clique& operator=(Clique&&) = delete;

  /// Retains the context of each device, in rank order, and makes the events.
  [[nodiscard]] DriverStatus open(const std::vector<int>& devices);
  [[nodiscard]] std::size_t size() const noexcept { return ranks_.size(); }

  void leave() noexcept { ++left_; }
  [[nodiscard]] bool is_empty() const noexcept { return left_ == ranks_.size(); }

  void add(std::size_t rank, const GatherCall& call) { ranks_[rank].calls.push_back(call); }
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
    gpu::CuEvent joined = nullptr;  ///< The other streams of the rank have come this far.
    gpu::CuEvent ready = nullptr;   ///< Everything before the collective is done.
    gpu::CuEvent done = nullptr;    ///< The rank has read what it needs from its peers.
    std::vector<GatherCall> calls;
  };

  [[nodiscard]] std::optional<std::string> mismatch_of(std::size_t rank, std::size_t call) const;
  [[nodiscard]] DriverStatus open_rank(Rank& rank, int device);
  [[nodiscard]] DriverStatus run_in_contexts();
  [[nodiscard]] DriverStatus arrive(const Rank& rank);
  [[nodiscard]] DriverStatus gather(std::size_t rank);
  [[nodiscard]] DriverStatus copy_block(std::size_t rank, std::size_t peer, std::size_t call);
  [[nodiscard]] DriverStatus depart(const Rank& rank);

  gpu::DriverApi& driver_;
  std::vector<Rank> ranks_;
  std::size_t left_ = 0;
};

}  // namespace cpverify::collectives
