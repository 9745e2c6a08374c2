#pragma once

#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "cpverify/fault.hpp"
#include "sim/isa/insn.hpp"
#include "sim/machine/checked_bytes.hpp"

namespace cpverify::sim {

struct Cta;

/// A bulk copy that one thread has issued, whole or as the tile of a tensor.
struct BulkCopy {
  /// A memory object.
  struct Side {
    CheckedBytes* bytes = nullptr;
    MemorySpace space = MemorySpace::shared;
    std::uint64_t base = 0;  ///< Address of its first byte.
  };
  struct Piece {
    static constexpr std::uint64_t kFill = ~0ULL;
    std::uint64_t target = 0;  ///< Offsets in the objects.
    std::uint64_t source = 0;  ///< Or kFill: not from memory.
    std::uint64_t size_bytes = 0;
  };
  /// Adds elements of the source to those of the target, or the like.
  using Combine = void (*)(std::byte* target, const std::byte* source, std::uint64_t size_bytes);

  const Insn* insn = nullptr;
  std::uint32_t warp = 0;
  std::uint32_t lane = 0;
  Side target;
  Side source;
  std::vector<Piece> pieces;
  std::uint64_t fill = 0;  ///< Repeated, from the begin of a piece.
  Combine combine = nullptr;
  std::uint32_t mbarrier = kNoIndex;  ///< Offset of the object that counts its bytes, or
  std::uint32_t group = 0;            ///< its thread's bulk group, set by issue().
  std::uint64_t size_bytes = 0;       ///< That the mbarrier counts.
  bool is_read = false;               ///< The source has been read, the bytes have moved.
};

/// What a CTA has begun and not yet waited for, besides cp.async: bulk copies, and arrivals at
/// mbarriers when all earlier cp.async of a thread have ended. Each is done at the last legal
/// moment: when a wait would fail without it, or at the end of the CTA.
struct AsyncWork {
  /// cp.async.mbarrier.arrive
  struct Arrival {
    const Insn* insn = nullptr;
    std::uint32_t warp = 0;
    std::uint32_t lane = 0;
    std::uint32_t mbarrier = 0;
    std::uint64_t issued = 0;  ///< It waits for so many of the warp's cp.async.
  };
  std::vector<Arrival> arrivals;
  std::vector<BulkCopy> loads;   ///< That an mbarrier counts.
  std::vector<BulkCopy> stores;  ///< Of bulk groups.
  std::map<std::pair<std::uint32_t, std::uint32_t>, std::uint32_t> groups;  ///< [warp, lane]
};

/// From here to its completion a copy owns its bytes; its target counts as unwritten, unless it
/// combines.
void issue(Cta& cta, BulkCopy copy);
/// cp.async.bulk.commit_group and wait_group of one thread: all but its newest `pending` groups
/// have read their source, and written their target unless `is_read_enough`.
void commit_bulk(Cta& cta, std::uint32_t warp, std::uint32_t lane);
void wait_bulk(Cta& cta, std::pair<std::uint32_t, std::uint32_t> thread, std::uint32_t pending,
               bool is_read_enough);
/// Does what the mbarrier object at `offset`, which exists, waits for, if nothing else is missing.
/// True when its phase is complete now.
bool complete_phase(Cta& cta, std::uint32_t offset);
/// The CTA has ended: does what is left, and reports it.
void finish(Cta& cta);

}  // namespace cpverify::sim
