#include "sim/driver/host_memory.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <limits>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cpverify/fault.hpp"
#include "sim/driver/operation.hpp"
#include "sim/driver/work.hpp"

namespace cpverify::sim {
namespace {

/// A NaN in f16 and bf16, and no likely value of anything else.
constexpr std::byte kPoison{0xfd};

bool has_overlap(const std::byte* begin, std::size_t size_bytes, const PendingCopy& copy) {
  const std::less<> before;
  return before(begin, copy.begin + copy.size_bytes) && before(copy.begin, begin + size_bytes);
}

}  // namespace

bool HostMemory::add(PinnedRange range) {
  const auto after = ranges_.lower_bound(range.begin);
  const std::less<> before;
  if (after != ranges_.end() && before(after->first, range.begin + range.size_bytes)) return false;
  if (after != ranges_.begin()) {
    const PinnedRange& left = std::prev(after)->second;
    if (before(range.begin, left.begin + left.size_bytes)) return false;
  }
  range.number = ++count_;
  ranges_.emplace(range.begin, range);
  return true;
}

const PinnedRange* HostMemory::find(const void* pointer, std::size_t size_bytes) const noexcept {
  const auto* const begin = static_cast<const std::byte*>(pointer);
  const auto after = ranges_.upper_bound(begin);
  if (after == ranges_.begin()) return nullptr;
  const PinnedRange& range = std::prev(after)->second;
  const auto offset = static_cast<std::size_t>(begin - range.begin);
  const bool is_inside = offset < range.size_bytes && size_bytes <= range.size_bytes - offset;
  return is_inside ? &range : nullptr;
}

const PinnedRange* HostMemory::find_address(std::uint64_t address) const noexcept {
  for (const auto& entry : ranges_) {
    const PinnedRange& range = entry.second;
    if (range.address != 0 && address - range.address < range.size_bytes) return &range;
  }
  return nullptr;
}

void HostMemory::forget_finished() {
  std::erase_if(copies_, [](const auto& copy) { return copy.expired(); });
  std::erase_if(functions_, [](const auto& function) { return function.expired(); });
}

std::shared_ptr<PendingCopy> HostMemory::begin_upload(const std::byte* source,
                                                      std::size_t size_bytes) {
  forget_finished();
  auto copy = std::make_shared<PendingCopy>();
  copy->begin = const_cast<std::byte*>(source);  // Never written: it is an upload.
  copy->size_bytes = size_bytes;
  copy->is_upload = true;
  copy->expected.assign(source, source + size_bytes);
  copies_.push_back(copy);
  return copy;
}

std::shared_ptr<PendingCopy> HostMemory::begin_download(std::byte* target, std::size_t size_bytes) {
  forget_finished();
  auto copy = std::make_shared<PendingCopy>();
  copy->begin = target;
  copy->size_bytes = size_bytes;
  // A copy or host function that is still to run may read or write what is there.
  const bool is_in_use =
      !functions_.empty() || std::any_of(copies_.begin(), copies_.end(), [&](const auto& other) {
        return has_overlap(target, size_bytes, *other.lock());
      });
  if (!is_in_use) {
    copy->expected.assign(size_bytes, kPoison);
    std::fill_n(target, size_bytes, kPoison);
  }
  copies_.push_back(copy);
  return copy;
}

std::shared_ptr<const bool> HostMemory::begin_host_function() {
  forget_finished();
  auto token = std::make_shared<const bool>(true);
  functions_.push_back(token);
  return token;
}

void HostMemory::check(const PendingCopy& copy) {
  const auto [expected, found] =
      std::mismatch(copy.expected.begin(), copy.expected.end(), copy.begin);
  if (expected == copy.expected.end()) return;
  const auto first = static_cast<std::size_t>(expected - copy.expected.begin());
  const PinnedRange* const range = find(copy.begin, copy.size_bytes);
  Fault fault;
  fault.kind = FaultKind::race;
  fault.space = MemorySpace::host;
  fault.device = copy.operation->device;
  fault.kernel = copy.operation->call;
  fault.size_bytes = static_cast<std::uint32_t>(
      std::min<std::size_t>(copy.size_bytes, std::numeric_limits<std::uint32_t>::max()));
  const std::size_t offset =
      range == nullptr ? 0 : static_cast<std::size_t>(copy.begin - range->begin);
  fault.address = offset + first;
  fault.detail = fmt::format(
      "{} had not {} byte {} of pinned host buffer {} when the host wrote it; nothing that the "
      "host waited for is after the copy",
      copy.operation->description, copy.is_upload ? "read" : "written", offset + first,
      range == nullptr ? 0 : range->number);
  faults_.add(fault);
}

void HostMemory::write_as(const Operation& operation, const std::function<void()>& write) {
  std::vector<std::shared_ptr<PendingCopy>> later;
  for (const auto& entry : copies_) {
    auto copy = entry.lock();
    if (copy != nullptr && copy->is_upload && copy->operation != nullptr &&
        is_before(operation, *copy->operation)) {
      check(*copy);
      later.push_back(std::move(copy));
    }
  }
  write();
  for (const auto& copy : later) {
    copy->expected.assign(copy->begin, copy->begin + copy->size_bytes);
  }
}

}  // namespace cpverify::sim
