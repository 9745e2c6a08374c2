#include "sim/machine/access.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include <fmt/format.h>

#include "cpverify/fault.hpp"
#include "cpverify/observer.hpp"
#include "sim/isa/insn.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/machine/address_map.hpp"
#include "sim/machine/checked_bytes.hpp"
#include "sim/machine/cluster.hpp"
#include "sim/machine/cta.hpp"
#include "sim/machine/dataflow.hpp"
#include "sim/machine/flow.hpp"
#include "sim/machine/global_memory.hpp"
#include "sim/machine/plain_access.hpp"
#include "sim/machine/warp.hpp"

namespace cpverify::sim {
namespace {

using Addresses = std::array<std::uint64_t, kLanes>;

/// A scan of this many bytes for unwritten ones costs less than 32 single looks.
constexpr std::uint64_t kScanBytesMax = 4096;

bool is_write(AccessKind kind) {
  return kind == AccessKind::write || kind == AccessKind::async_write;
}

MemorySpace memory_space(Space space) {
  switch (space) {
    case Space::shared:
      return MemorySpace::shared;
    case Space::local:
      return MemorySpace::local;
    case Space::param:
      return MemorySpace::param;
    default:
      return MemorySpace::global;
  }
}

void load_addresses(const Warp& warp, const AddressOperand& operand, std::uint32_t lanes,
                    Addresses& addresses) {
  const auto offset = static_cast<std::uint64_t>(operand.offset);
  if (operand.width_bytes == 8) {
    const auto* const row = warp.row<const std::uint64_t>(operand.row);
    for (std::size_t lane = 0; lane < kLanes; ++lane) addresses[lane] = row[lane] + offset;
  } else {
    const auto* const row = warp.row<const std::uint32_t>(operand.row);
    // Wraps at 32 bits: nvcc adds offsets to registers that hold "negative" shared addresses.
    const auto low = static_cast<std::uint32_t>(offset);
    for (std::size_t lane = 0; lane < kLanes; ++lane) addresses[lane] = row[lane] + low;
  }
  if (lanes == kFullMask) return;
  const std::uint64_t first = addresses[static_cast<std::size_t>(std::countr_zero(lanes))];
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    addresses[lane] = ((lanes >> lane) & 1U) != 0 ? addresses[lane] : first;
  }
}

/// The window that a generic address lies in, and its base.
struct Window {
  Space space = Space::global;
  std::uint64_t base = 0;
};

Window find_window(std::uint64_t address) {
  constexpr std::uint64_t kWindowBytes = kSharedWindow;
  if (address >= kLocalWindow && address - kLocalWindow < kWindowBytes) {
    return {Space::local, kLocalWindow};
  }
  if (address >= kParameterWindow && address - kParameterWindow < kWindowBytes) {
    return {Space::param, kParameterWindow};
  }
  if (address >= kSharedWindow && address < kLocalWindow) return {Space::shared, kSharedWindow};
  return {Space::global, 0};
}

/// Sets the offsets of addresses in [base, base + size); true when all accesses fit and are
/// aligned.
bool to_offsets(const Addresses& addresses, std::uint64_t base, std::uint64_t size,
                std::uint32_t access_bytes, Access& access) {
  if (size < access_bytes) return false;
  const std::uint64_t limit = size - access_bytes;
  const std::uint64_t first = addresses[0];
  // Negative offsets and those beyond the limit have the sign bit set in one of the two terms.
  std::uint64_t outside = 0;
  std::uint64_t low_bits = 0;
  std::uint64_t not_dense = 0;
  std::uint64_t not_uniform = 0;
  std::uint64_t* __restrict offsets = access.offsets.data();
  const std::uint64_t* __restrict values = addresses.data();
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    const std::uint64_t offset = values[lane] - base;
    offsets[lane] = offset;
    outside |= offset | (limit - offset);
    low_bits |= values[lane];
    not_dense |= values[lane] ^ (first + lane * access_bytes);
    not_uniform |= values[lane] ^ first;
  }
  access.is_dense = not_dense == 0;
  access.is_uniform = not_uniform == 0;
  return (outside >> 63) == 0 && (low_bits & (access_bytes - 1)) == 0;
}

/// Looks at one lane alone: what is wrong with an access of `size` bytes at `address`?
struct Diagnosis {
  bool is_bad = false;
  FaultKind kind = FaultKind::out_of_bounds_read;
  std::uint64_t address = 0;
  const Allocation* allocation = nullptr;
  std::string detail;
};

Diagnosis diagnose_range(std::uint64_t address, std::uint64_t size, const AccessShape& shape) {
  Diagnosis diagnosis;
  diagnosis.kind =
      is_write(shape.kind) ? FaultKind::out_of_bounds_write : FaultKind::out_of_bounds_read;
  diagnosis.address = address;
  if (address >= size || shape.size_bytes > size - address) {
    diagnosis.is_bad = true;
    if (address < size) diagnosis.address = size;
  } else if ((address & (shape.size_bytes - 1)) != 0) {
    diagnosis.is_bad = true;
    diagnosis.kind = FaultKind::misaligned;
  }
  return diagnosis;
}

Diagnosis diagnose_global(const LaunchState& launch, std::uint64_t address,
                          const AccessShape& shape) {
  const Allocation* const near = launch.memory->nearest(address);
  Diagnosis diagnosis = diagnose_range(near == nullptr ? address : address - near->base,
                                       near == nullptr ? 0 : near->size_bytes, shape);
  diagnosis.allocation = near;
  if (near == nullptr) return diagnosis;
  diagnosis.address += near->base;
  const bool is_inside = address - near->base < near->size_bytes;
  if (is_inside && !near->is_live) {
    diagnosis.is_bad = true;
    diagnosis.kind = FaultKind::use_after_free;
  } else if (is_inside && !diagnosis.is_bad &&
             !launch.memory->is_reachable(launch.device, near->device)) {
    diagnosis.is_bad = true;
    diagnosis.detail =
        fmt::format("memory of device {}; peer access of device {} to it is not enabled",
                    near->device, launch.device);
  }
  return diagnosis;
}

/// One call of begin_access: its arguments, the state space and the addresses in it.
struct Lookup {
  Warp* warp = nullptr;
  const Insn* insn = nullptr;
  AccessShape shape;
  Space space = Space::global;
  const Addresses* addresses = nullptr;

  [[nodiscard]] LaunchState& launch() const { return *warp->cta->launch; }
  [[nodiscard]] std::uint64_t address(std::size_t lane) const { return (*addresses)[lane]; }
};

/// Parameters are read only: for a write there are none.
std::uint64_t parameter_bytes(const Lookup& lookup) {
  return is_write(lookup.shape.kind) || lookup.shape.kind == AccessKind::atomic
             ? 0
             : lookup.launch().parameters.size();
}

/// Reports the lanes that are bad for the reason of the first bad one.
void report_bad(const Lookup& lookup, std::uint32_t lanes) {
  const LaunchState& launch = lookup.launch();
  const AccessShape& shape = lookup.shape;
  const std::uint64_t size = lookup.space == Space::shared  ? lookup.warp->cta->shared.size()
                             : lookup.space == Space::param ? parameter_bytes(lookup)
                                                            : launch.code->info.local_bytes;
  const auto diagnose = [&](std::uint32_t lane) {
    return lookup.space == Space::global ? diagnose_global(launch, lookup.address(lane), shape)
                                         : diagnose_range(lookup.address(lane), size, shape);
  };
  Diagnosis first;
  ViolationEvent event;
  for (std::uint32_t left = lanes; left != 0; left &= left - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(left));
    const Diagnosis diagnosis = diagnose(lane);
    if (!diagnosis.is_bad) continue;
    if (event.lanes == 0) first = diagnosis;
    if (diagnosis.kind == first.kind) event.lanes |= 1U << lane;
  }
  if (event.lanes == 0) return;
  event.kind = first.kind;
  event.space = memory_space(lookup.space);
  event.size_bytes = shape.size_bytes;
  event.address = first.address;
  event.detail = first.detail;
  if (first.allocation != nullptr) {
    event.allocation = first.allocation->base;
    event.allocation_bytes = first.allocation->size_bytes;
  }
  report(*lookup.warp, lookup.insn, event);
}

/// Finds the allocation of the first lane; keeps the lanes that lie in it.
bool resolve_global(const Lookup& lookup, Access& access) {
  const Addresses& addresses = *lookup.addresses;
  const AccessShape& shape = lookup.shape;
  LaunchState& launch = lookup.launch();
  Allocation*& cached =
      launch.last_allocation[static_cast<std::size_t>(lookup.insn - lookup.warp->code)];
  if (cached != nullptr &&
      to_offsets(addresses, cached->base, cached->size_bytes, shape.size_bytes, access)) {
    access.bytes = &cached->bytes;
    return true;
  }
  const std::uint32_t lanes = access.lanes;
  access.lanes = 0;
  Allocation* allocation = nullptr;
  for (std::uint32_t left = lanes; left != 0; left &= left - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(left));
    const Diagnosis diagnosis = diagnose_global(launch, addresses[lane], shape);
    if (diagnosis.is_bad) {
      report_bad(lookup, lanes);
      return false;
    }
    if (allocation == nullptr) allocation = launch.memory->find(addresses[lane]);
    if (diagnosis.allocation == allocation) access.lanes |= 1U << lane;
  }
  cached = allocation;
  Addresses kept = addresses;
  const std::uint64_t first = addresses[static_cast<std::size_t>(std::countr_zero(access.lanes))];
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    if (((access.lanes >> lane) & 1U) == 0) kept[lane] = first;
  }
  access.bytes = &allocation->bytes;
  return to_offsets(kept, allocation->base, allocation->size_bytes, shape.size_bytes, access);
}

/// Lanes that address the shared memory of one CTA of the cluster, as the first of them does.
[[gnu::noinline]] bool resolve_cluster(const Lookup& lookup, Access& access) {
  const Cta& cta = *lookup.warp->cta;
  const std::uint32_t lanes = access.lanes;
  const std::uint32_t rank =
      find_place(cta, lookup.address(static_cast<std::size_t>(std::countr_zero(lanes)))).rank;
  Addresses offsets{};
  access.lanes = 0;
  for (std::uint32_t left = lanes; left != 0; left &= left - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(left));
    const ClusterPlace place = find_place(cta, lookup.address(lane));
    offsets[lane] = place.offset;
    if (place.rank == rank) access.lanes |= 1U << lane;
  }
  const std::uint64_t first = offsets[static_cast<std::size_t>(std::countr_zero(access.lanes))];
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    if (((access.lanes >> lane) & 1U) == 0) offsets[lane] = first;
  }
  const bool exists = rank < cta.cluster->ctas.size();
  if (!exists || has_exited(*cta.cluster->ctas[rank])) {
    ViolationEvent event;
    event.kind = is_write(lookup.shape.kind) ? FaultKind::out_of_bounds_write
                                             : FaultKind::out_of_bounds_read;
    event.lanes = access.lanes;
    event.size_bytes = lookup.shape.size_bytes;
    event.address = first;
    report_missing_cta(*lookup.warp, lookup.insn, event, rank);
    return false;
  }
  CheckedBytes& shared = cta.cluster->ctas[rank]->shared;
  access.bytes = &shared;
  if (to_offsets(offsets, 0, shared.size(), lookup.shape.size_bytes, access)) return true;
  Lookup there = lookup;
  there.addresses = &offsets;
  report_bad(there, access.lanes);
  return false;
}

bool resolve_shared(const Lookup& lookup, Access& access) {
  const Addresses& addresses = *lookup.addresses;
  const AccessShape& shape = lookup.shape;
  CheckedBytes& shared = lookup.warp->cta->shared;
  access.bytes = &shared;
  if (to_offsets(addresses, 0, shared.size(), shape.size_bytes, access)) return true;
  if (may_leave_cta(*lookup.warp, lookup.insn)) return resolve_cluster(lookup, access);
  report_bad(lookup, access.lanes);
  return false;
}

bool resolve_parameter(const Lookup& lookup, Access& access) {
  access.bytes = &lookup.launch().parameters;
  const std::uint64_t size = parameter_bytes(lookup);
  if (to_offsets(*lookup.addresses, 0, size, lookup.shape.size_bytes, access)) return true;
  report_bad(lookup, access.lanes);
  return false;
}

/// Local memory holds the frames of the lanes one after the other.
bool resolve_local(const Lookup& lookup, Access& access) {
  const Addresses& addresses = *lookup.addresses;
  const AccessShape& shape = lookup.shape;
  const std::uint64_t frame = lookup.launch().code->info.local_bytes;
  access.bytes = &lookup.warp->local;
  if (!to_offsets(addresses, 0, frame, shape.size_bytes, access)) {
    report_bad(lookup, access.lanes);
    return false;
  }
  access.is_dense = false;
  access.is_uniform = false;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    // A lane that is not active stays within its own frame: its offset is that of an active one.
    access.offsets[lane] += lane * frame;
  }
  return true;
}

/// True when nothing between the lowest and the highest access is unwritten; false is no answer.
bool is_extent_written(const Access& access, std::uint32_t access_bytes) {
  std::uint64_t low = access.offsets[0];
  std::uint64_t high = access.offsets[0];
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    low = std::min(low, access.offsets[lane]);
    high = std::max(high, access.offsets[lane]);
  }
  const std::uint64_t size = high - low + access_bytes;
  return size <= kScanBytesMax && access.bytes->is_written(low, size);
}

/// Lanes that read an unwritten byte.
std::uint32_t unwritten_lanes(const Access& access, std::uint32_t access_bytes) {
  const CheckedBytes& bytes = *access.bytes;
  const std::uint64_t first = access.offsets[0];
  if (access.is_uniform && bytes.is_block_written(first, access_bytes)) return 0;
  if (access.is_dense && bytes.is_written(first, std::uint64_t{kLanes} * access_bytes)) return 0;
  if (!access.is_dense && !access.is_uniform && is_extent_written(access, access_bytes)) return 0;
  std::uint32_t lanes = 0;
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    const bool is_written = bytes.is_block_written(access.offsets[lane], access_bytes);
    lanes |= static_cast<std::uint32_t>(!is_written) << lane;
  }
  return lanes & access.lanes;
}

void check_written(const Lookup& lookup, const Access& access) {
  const std::uint32_t size_bytes = lookup.shape.size_bytes;
  ViolationEvent event;
  event.lanes = unwritten_lanes(access, size_bytes);
  if (event.lanes == 0) return;
  const auto first = static_cast<std::size_t>(std::countr_zero(event.lanes));
  const std::uint64_t offset = access.offsets[first];
  event.kind = FaultKind::uninitialised_read;
  event.space = memory_space(lookup.space);
  event.size_bytes = size_bytes;
  event.address =
      lookup.address(first) + access.bytes->first_unwritten(offset, size_bytes) - offset;
  if (lookup.space == Space::global) {
    const Allocation* const allocation = lookup.launch().memory->find(event.address);
    event.allocation = allocation->base;
    event.allocation_bytes = allocation->size_bytes;
  }
  report(*lookup.warp, lookup.insn, event);
}

void mark_written(Access& access, std::uint32_t access_bytes) {
  if (access.is_dense) {
    access.bytes->mark_written(access.offsets[0], std::uint64_t{kLanes} * access_bytes);
    return;
  }
  for (std::uint32_t left = access.lanes; left != 0; left &= left - 1) {
    const auto lane = static_cast<std::size_t>(std::countr_zero(left));
    access.bytes->mark_block_written(access.offsets[lane], access_bytes);
  }
}

/// Kept out of line: most launches have no observer that wants to know.
[[gnu::noinline]] void notify(const Lookup& lookup, const Access& access) {
  const auto index = static_cast<std::size_t>(lookup.insn - lookup.warp->code);
  const Modifiers& modifiers = lookup.launch().code->forms[index].modifiers;
  const auto first = static_cast<std::size_t>(std::countr_zero(access.lanes));
  AccessEvent event;
  event.kind = lookup.shape.kind;
  event.space = memory_space(lookup.space);
  event.lanes = access.lanes;
  event.size_bytes = lookup.shape.size_bytes;
  event.addresses = *lookup.addresses;
  event.order = modifiers.order;
  event.is_cta_scope = modifiers.is_cta_scope;
  event.object_bytes = access.bytes->size();
  event.memory = access.bytes->data();
  if (event.space == MemorySpace::global) {
    event.base = lookup.address(first) - access.offsets[first];
  } else if (event.space == MemorySpace::shared) {
    event.rank = rank_of(*lookup.warp->cta, *access.bytes);
    event.addresses = access.offsets;
  }
  std::array<const std::byte*, 4> stored{};
  if (event.kind == AccessKind::write) {
    for (std::size_t i = 0; i < modifiers.vector; ++i) {
      stored[i] = lookup.warp->registers + lookup.insn->r[1 + i];
    }
    event.stored = std::span{stored}.first(modifiers.vector);
  }
  const ExecutionPoint point = execution_point(*lookup.warp, lookup.insn);
  for (Observer* const observer : lookup.launch().access_observers) {
    observer->on_access(point, event);
  }
}

/// A load into registers may meet unwritten bytes: what counts is what becomes of them. True when
/// it has to be done again, by a warp that is followed.
bool must_follow(const Lookup& lookup, const Access& access) {
  Warp& warp = *lookup.warp;
  if (warp.wants_undefined || warp.undefined.is_live()) return false;
  if (unwritten_lanes(access, lookup.shape.size_bytes) == 0) return false;
  warp.wants_undefined = true;
  warp.next = lookup.insn;
  return true;
}

[[gnu::noinline]] void trace(const Lookup& lookup, const Access& access) {
  TracedAccess traced;
  traced.kind = lookup.shape.kind;
  traced.space = memory_space(lookup.space);
  traced.size_bytes = lookup.shape.size_bytes;
  traced.access = access;
  traced.addresses = *lookup.addresses;
  if (traced.space == MemorySpace::global) {
    const auto first = static_cast<std::size_t>(std::countr_zero(access.lanes));
    traced.allocation = lookup.address(first) - access.offsets[first];
  }
  lookup.warp->trace->push_back(traced);
}

bool is_register_load(const Lookup& lookup) {
  const auto index = static_cast<std::size_t>(lookup.insn - lookup.warp->code);
  return lookup.shape.kind == AccessKind::read &&
         lookup.launch().flow->insns[index].kind == FlowKind::load;
}

/// Sets lookup.space and access from the address operand; `addresses` is what lookup points to.
inline bool resolve(Lookup& lookup, const AddressOperand& address, Addresses& addresses,
                    Access& access) {
  const Warp& warp = *lookup.warp;
  load_addresses(warp, address, access.lanes, addresses);
  if (address.space == Space::generic) {
    const Window window =
        find_window(addresses[static_cast<std::size_t>(std::countr_zero(access.lanes))]);
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
      if (find_window(addresses[lane]).space != window.space) access.lanes &= ~(1U << lane);
    }
    load_addresses(warp, address, access.lanes, addresses);
    for (std::uint64_t& value : addresses) value -= window.base;
    lookup.space = window.space;
  }
  if (lookup.space == Space::shared) return resolve_shared(lookup, access);
  if (lookup.space == Space::local) return resolve_local(lookup, access);
  if (lookup.space == Space::param) return resolve_parameter(lookup, access);
  return resolve_global(lookup, access);
}

}  // namespace

bool locate(Warp& warp, const Insn* insn, std::uint32_t lanes, const AccessRequest& request,
            Access& access) {
  alignas(64) Addresses addresses;  // NOLINT(cppcoreguidelines-pro-type-member-init): set below.
  Lookup lookup{&warp, insn, request.shape, request.address.space, &addresses};
  access.lanes = lanes;
  return resolve(lookup, request.address, addresses, access);
}

bool begin_access(Warp& warp, const Insn* insn, std::uint32_t lanes, const AccessRequest& request,
                  Access& access) {
  alignas(64) Addresses addresses;  // NOLINT(cppcoreguidelines-pro-type-member-init): set below.
  Lookup lookup{&warp, insn, request.shape, request.address.space, &addresses};
  access.lanes = lanes;
  if (!resolve(lookup, request.address, addresses, access)) return false;
  const bool is_all_written = access.bytes->is_all_written();
  const bool is_load = !is_all_written && is_register_load(lookup);
  if (is_load && must_follow(lookup, access)) return false;
  if (warp.trace != nullptr) trace(lookup, access);
  if (!lookup.launch().access_observers.empty()) notify(lookup, access);
  if (is_all_written || is_load) return true;
  const AccessKind kind = request.shape.kind;
  if (kind == AccessKind::read || kind == AccessKind::atomic) check_written(lookup, access);
  if (kind == AccessKind::write || kind == AccessKind::atomic) {
    mark_written(access, request.shape.size_bytes);
  }
  return true;
}

}  // namespace cpverify::sim
