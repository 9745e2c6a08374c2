#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "cpverify/observer.hpp"
#include "sim/isa/insn.hpp"
#include "sim/machine/checked_bytes.hpp"
#include "sim/machine/warp.hpp"

namespace cpverify::sim {

struct Cta;

/// Addresses of shared::cluster: those of a CTA's own shared memory as they are, and every CTA's,
/// that of rank r from (r + 1) * kClusterStride. No CTA has as much.
inline constexpr std::uint64_t kClusterStride = 1ULL << 24;

/// CTAs that run at the same time and reach each other's shared memory.
struct Cluster {
  std::array<std::uint32_t, 3> id{};
  std::vector<Cta*> ctas;   ///< By rank.
  std::uint32_t phase = 0;  ///< How often its barrier has completed.
};

/// A place in the shared memory of one of the CTAs.
struct ClusterPlace {
  std::uint32_t rank = 0;
  std::uint64_t offset = 0;
};

/// Where an address of shared::cluster points to, seen from `cta`; the rank may not exist.
[[nodiscard]] ClusterPlace find_place(const Cta& cta, std::uint64_t address) noexcept;

/// The rank of the CTA of the cluster whose shared memory this is.
[[nodiscard]] std::uint32_t rank_of(const Cta& cta, const CheckedBytes& shared) noexcept;

/// Completes the barrier of the cluster when every warp that has not exited has arrived.
void complete_cluster_barrier(Cluster& cluster) noexcept;

/// Lets the warps go on that wait for a barrier which is complete. False when there are none.
bool open_cluster_barrier(Cluster& cluster);

/// Tells the observers of accesses what a warp does at the barrier of the cluster.
void notify_cluster_barrier(const Warp& warp, MbarrierEvent event, MemoryOrder order);

[[nodiscard]] bool has_exited(const Cta& cta) noexcept;

/// Whether an address of the instruction that is not in the CTA's own shared memory may be in that
/// of another one: of those that take a generic address, loads, stores and atomics can.
[[nodiscard]] bool may_leave_cta(const Warp& warp, const Insn* insn) noexcept;

/// An access of a CTA of the cluster that does not exist, or that has exited.
void report_missing_cta(Warp& warp, const Insn* insn, ViolationEvent event, std::uint32_t rank);

}  // namespace cpverify::sim
