#include "sim/machine/global_memory.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <memory>
#include <optional>
#include <span>
#include <utility>

#include "cpverify/fault.hpp"
#include "sim/machine/checked_bytes.hpp"
#include "support/check.hpp"

namespace cpverify::sim {
namespace {

constexpr std::uint64_t kAlignment = 256;
constexpr std::uint64_t kRedZoneBytesMin = 1 << 20;

std::uint64_t align_up(std::uint64_t value) {
  return (value + kAlignment - 1) / kAlignment * kAlignment;
}

/// Addresses cost nothing, so the gap is at least as long as the allocation before it: an index
/// that runs away still lands behind the buffer it belongs to, and is reported as that buffer's.
std::uint64_t red_zone_bytes(std::uint64_t size_bytes) {
  return std::max(kRedZoneBytesMin, align_up(size_bytes));
}

}  // namespace

std::uint64_t GlobalMemory::allocate(std::uint32_t device, std::uint64_t size_bytes) {
  CPVERIFY_CHECK(size_bytes > 0);
  auto allocation = std::make_unique<Allocation>();
  allocation->base = next_base_;
  allocation->size_bytes = size_bytes;
  allocation->device = device;
  allocation->bytes = CheckedBytes{size_bytes};
  next_base_ = align_up(next_base_ + size_bytes) + red_zone_bytes(size_bytes);
  allocations_.push_back(std::move(allocation));
  return allocations_.back()->base;
}

bool GlobalMemory::free(std::uint64_t address) {
  Allocation* const allocation = find(address);
  if (allocation == nullptr || allocation->base != address || !allocation->is_live) return false;
  allocation->is_live = false;
  allocation->bytes = CheckedBytes{};
  return true;
}

std::uint64_t GlobalMemory::live_bytes(std::uint32_t device) const noexcept {
  std::uint64_t sum = 0;
  for (const auto& allocation : allocations_) {
    if (allocation->is_live && allocation->device == device) sum += allocation->size_bytes;
  }
  return sum;
}

bool GlobalMemory::set_reachable(std::uint32_t device, std::uint32_t owner, bool is_reachable) {
  return is_reachable ? peers_.emplace(device, owner).second : peers_.erase({device, owner}) > 0;
}

const Allocation* GlobalMemory::nearest(std::uint64_t address) const noexcept {
  const auto after = std::upper_bound(
      allocations_.begin(), allocations_.end(), address,
      [](std::uint64_t value, const auto& allocation) { return value < allocation->base; });
  return after == allocations_.begin() ? nullptr : std::prev(after)->get();
}

const Allocation* GlobalMemory::find(std::uint64_t address) const noexcept {
  const Allocation* const allocation = nearest(address);
  const bool is_inside =
      allocation != nullptr && address - allocation->base < allocation->size_bytes;
  return is_inside ? allocation : nullptr;
}

Allocation* GlobalMemory::find(std::uint64_t address) noexcept {
  return const_cast<Allocation*>(std::as_const(*this).find(address));
}

std::optional<MemoryProblem> GlobalMemory::check(std::uint64_t address, std::uint64_t size_bytes,
                                                 FaultKind outside) const noexcept {
  if (size_bytes == 0) return std::nullopt;
  const Allocation* const near = nearest(address);
  MemoryProblem problem{outside, address, 0, 0, 1};
  if (near == nullptr) return problem;
  problem.allocation = near->base;
  problem.allocation_bytes = near->size_bytes;
  const std::uint64_t offset = address - near->base;
  if (offset >= near->size_bytes) return problem;
  if (!near->is_live) {
    problem.kind = FaultKind::use_after_free;
    return problem;
  }
  if (size_bytes <= near->size_bytes - offset) return std::nullopt;
  problem.address = near->base + near->size_bytes;
  return problem;
}

std::optional<MemoryProblem> GlobalMemory::read(std::span<std::byte> target,
                                                std::uint64_t source) const {
  if (auto problem = check(source, target.size(), FaultKind::out_of_bounds_read)) return problem;
  if (target.empty()) return std::nullopt;
  const Allocation& allocation = *find(source);
  const std::size_t offset = source - allocation.base;
  std::memcpy(target.data(), allocation.bytes.data() + offset, target.size());
  if (allocation.bytes.is_written(offset, target.size())) return std::nullopt;
  return MemoryProblem{FaultKind::uninitialised_read,
                       allocation.base + allocation.bytes.first_unwritten(offset, target.size()),
                       allocation.base, allocation.size_bytes,
                       allocation.bytes.count_unwritten(offset, target.size())};
}

std::optional<MemoryProblem> GlobalMemory::write(std::uint64_t target,
                                                 std::span<const std::byte> source) {
  if (auto problem = check(target, source.size(), FaultKind::out_of_bounds_write)) return problem;
  if (source.empty()) return std::nullopt;
  Allocation& allocation = *find(target);
  const std::size_t offset = target - allocation.base;
  std::memcpy(allocation.bytes.data() + offset, source.data(), source.size());
  allocation.bytes.mark_written(offset, source.size());
  return std::nullopt;
}

std::optional<MemoryProblem> GlobalMemory::copy(std::uint64_t target, std::uint64_t source,
                                                std::uint64_t size_bytes) {
  if (auto problem = check(source, size_bytes, FaultKind::out_of_bounds_read)) return problem;
  if (auto problem = check(target, size_bytes, FaultKind::out_of_bounds_write)) return problem;
  if (size_bytes == 0) return std::nullopt;
  Allocation& to = *find(target);
  const Allocation& from = *find(source);
  to.bytes.copy_from(target - to.base, from.bytes, source - from.base, size_bytes);
  return std::nullopt;
}

std::optional<MemoryProblem> GlobalMemory::fill(std::uint64_t target,
                                                std::span<const std::byte> pattern,
                                                std::uint64_t size_bytes) {
  CPVERIFY_CHECK(!pattern.empty());
  if (auto problem = check(target, size_bytes, FaultKind::out_of_bounds_write)) return problem;
  if (size_bytes == 0) return std::nullopt;
  Allocation& allocation = *find(target);
  const std::size_t offset = target - allocation.base;
  std::byte* const data = allocation.bytes.data() + offset;
  for (std::uint64_t i = 0; i < size_bytes; ++i) data[i] = pattern[i % pattern.size()];
  allocation.bytes.mark_written(offset, size_bytes);
  return std::nullopt;
}

}  // namespace cpverify::sim
