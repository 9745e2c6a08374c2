#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "cpverify/coverage.hpp"
#include "cpverify/fault.hpp"

namespace cpverify {

/// An instruction and the warp that executes it.
struct ExecutionPoint {
  std::string_view kernel;
  std::string_view source_file;  ///< Innermost .loc; empty without a line table.
  std::uint32_t source_line = 0;
  std::uint32_t ptx_line = 0;
  std::uint32_t instruction = 0;  ///< Index in the decoded kernel: one number per instruction.
  std::uint32_t device = 0;
  std::array<std::uint32_t, 3> cta{};
  std::uint32_t rank = 0;                ///< Of the CTA in its cluster.
  std::array<std::uint32_t, 3> block{};  ///< Threads of the CTA.
  std::uint32_t warp = 0;                ///< Index in the CTA.
};

/// What an access or a fence orders, from weakest to strongest; volatile counts as relaxed.
enum class MemoryOrder : std::uint8_t { weak, relaxed, acquire, release, acquire_release };

enum class AccessKind : std::uint8_t { read, write, atomic, async_read, async_write };

/// One memory instruction of a warp. Lane i is active when bit i of `lanes` is set.
struct AccessEvent {
  AccessKind kind = AccessKind::read;
  MemorySpace space = MemorySpace::global;
  std::uint32_t lanes = 0;
  std::uint32_t size_bytes = 0;              ///< Of each lane's access.
  std::span<const std::uint64_t> addresses;  ///< [32]; global address, or offset in the space.
  MemoryOrder order = MemoryOrder::weak;
  std::uint32_t rank = 0;             ///< Shared memory: of the CTA, in the cluster, whose it is.
  bool is_cta_scope = false;          ///< Orders the threads of its CTA only; also an atomic.
  std::uint64_t base = 0;             ///< Of the allocation; 0 in the other spaces.
  std::uint64_t object_bytes = 0;     ///< Size of the allocation, or of the space.
  const std::byte* memory = nullptr;  ///< The object's bytes before the access.
  /// Kind write: lane i stores element i of each of these, one after the other.
  std::span<const std::byte* const> stored;
};

/// A load or store by all 32 lanes of a warp, all in one object and written before where it reads:
/// of one place, or of places side by side.
struct PlainAccessEvent {
  AccessKind kind = AccessKind::read;  ///< Or write.
  MemorySpace space = MemorySpace::global;
  bool is_uniform = false;       ///< All lanes at `offset`; else lane i at offset + i * size_bytes.
  std::uint32_t size_bytes = 0;  ///< Of each lane's access.
  std::uint32_t instruction = 0;   ///< As in ExecutionPoint.
  std::uint32_t warp = 0;          ///< As in ExecutionPoint.
  std::uint64_t base = 0;          ///< As in AccessEvent.
  std::uint64_t object_bytes = 0;  ///< As in AccessEvent.
  std::uint64_t offset = 0;        ///< In the object.
};

/// Reads by all 32 lanes of a warp of a row of shared memory each, anywhere, all of it written.
struct PlainRowsEvent {
  std::uint32_t size_bytes = 0;             ///< Of a row, at a multiple of it.
  std::uint32_t instruction = 0;            ///< As in ExecutionPoint.
  std::uint32_t warp = 0;                   ///< As in ExecutionPoint.
  std::array<std::uint32_t, 32> offsets{};  ///< Of each lane's row.
};

/// An access that must not happen, seen by the machine's own tables.
struct ViolationEvent {
  FaultKind kind = FaultKind::illegal_instruction;
  MemorySpace space = MemorySpace::global;
  std::uint32_t lanes = 0;  ///< Which lanes; at least one.
  std::uint32_t size_bytes = 0;
  std::uint64_t address = 0;  ///< First bad byte of the lowest of the lanes.
  std::uint64_t allocation = 0;
  std::uint64_t allocation_bytes = 0;
  std::string_view detail;
};

enum class BarrierEvent : std::uint8_t { arrive, release };

/// What is before an `arrive` is before every `wait` that succeeds after the next `complete`.
enum class MbarrierEvent : std::uint8_t { arrive, complete, wait };

/// A warp of one of the CTAs of a cluster.
struct ClusterWarp {
  std::uint32_t rank = 0;  ///< Of the CTA.
  std::uint32_t warp = 0;  ///< Index in the CTA.
};

/// Sees a run. The machine knows no checker: memcheck, initcheck and all later ones are observers.
/// Calls come in schedule order, from one thread.
class Observer {
 public:
  Observer() = default;
  Observer(const Observer&) = delete;
  Observer& operator=(const Observer&) = delete;
  Observer(Observer&&) = delete;
  Observer& operator=(Observer&&) = delete;
  virtual ~Observer() = default;

  /// Asked once per launch; on_access is called only when true, since it costs time.
  [[nodiscard]] virtual bool wants_accesses() const noexcept { return false; }
  virtual void on_access(const ExecutionPoint& /*point*/, const AccessEvent& /*event*/) noexcept {}
  /// Comes first where most accesses are of this shape, and costs less. False: the observer needs
  /// on_access(). That follows also when another observer needs it, so that it may come twice.
  [[nodiscard]] virtual bool on_plain_access(const PlainAccessEvent& /*event*/) noexcept {
    return false;
  }
  /// The same for rows.
  [[nodiscard]] virtual bool on_plain_rows(const PlainRowsEvent& /*event*/) noexcept {
    return false;
  }
  virtual void on_violation(const ExecutionPoint& /*point*/,
                            const ViolationEvent& /*event*/) noexcept {}
  virtual void on_barrier(const ExecutionPoint& /*point*/, std::uint32_t /*barrier*/,
                          BarrierEvent /*event*/) noexcept {}

  /// Asked at the beginning and the end of a launch; counting costs time.
  [[nodiscard]] virtual bool wants_counts() const noexcept { return false; }
  /// At the end of a launch, also of one that a fault ended: what it executed.
  virtual void on_counts(const Coverage::Kernel& /*kernel*/, const Coverage::Counts& /*counts*/) {}

  /// Those below come only to observers that want accesses.
  /// A CTA starts, when those before it have ended; those of a cluster start one after the other,
  /// by rank.
  virtual void on_cta(const std::array<std::uint32_t, 3>& /*cta*/) noexcept {}
  /// Bit i: warp i of the CTA with this rank. What these warps did so far is before what they do
  /// from now on.
  virtual void on_ordered(std::uint32_t /*rank*/, std::uint32_t /*warps*/) noexcept {}
  /// Lanes of a warp have met at a bar.warp.sync; the same as above for them.
  virtual void on_lanes_ordered(std::uint32_t /*warp*/, std::uint32_t /*lanes*/) noexcept {}
  /// An asynchronous access, issued earlier by the same lanes, has ended.
  virtual void on_completed(const ExecutionPoint& /*point*/,
                            const AccessEvent& /*event*/) noexcept {}
  virtual void on_fence(const ExecutionPoint& /*point*/) noexcept {}
  /// Orders ordinary and asynchronous accesses of shared memory: fence.proxy.async.
  virtual void on_proxy_fence(const ExecutionPoint& /*point*/) noexcept {}
  /// `offset` is that of the mbarrier object in shared memory.
  virtual void on_mbarrier(const ExecutionPoint& /*point*/, std::uint32_t /*offset*/,
                           MbarrierEvent /*event*/) noexcept {}
  /// The barrier of the cluster, of which warps that have exited arrive when it completes. `order`
  /// is that of an arrival: relaxed, or release.
  virtual void on_cluster_barrier(const ClusterWarp& /*warp*/, MbarrierEvent /*event*/,
                                  MemoryOrder /*order*/) noexcept {}
};

}  // namespace cpverify
