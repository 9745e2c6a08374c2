#include "sim/driver/footprint_observer.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cpverify/fault.hpp"
#include "cpverify/observer.hpp"
#include "sim/driver/operation.hpp"

namespace cpverify::sim {
namespace {

constexpr std::uint64_t kBits = 64;
constexpr std::uint64_t kLanes = 32;
constexpr std::size_t kRead = 0;
constexpr std::size_t kWrite = 1;
constexpr std::size_t kStrong = 2;

void set_bits(std::vector<std::uint64_t>& words, std::uint64_t begin, std::uint64_t end) {
  if (words.size() * kBits < end) words.resize((end + kBits - 1) / kBits);
  while (begin < end) {
    const std::uint64_t shift = begin % kBits;
    const std::uint64_t count = std::min(end - begin, kBits - shift);
    const std::uint64_t ones = count == kBits ? ~std::uint64_t{0} : (std::uint64_t{1} << count) - 1;
    words[begin / kBits] |= ones << shift;
    begin += count;
  }
}

void append(Footprint& footprint, const Span& span) {
  if (span.uses == 0) return;
  if (!footprint.empty() && footprint.back().end == span.begin &&
      footprint.back().uses == span.uses) {
    footprint.back().end = span.end;
  } else {
    footprint.push_back(span);
  }
}

std::size_t use_of(const AccessEvent& event) noexcept {
  const bool is_atomic = event.kind == AccessKind::atomic;
  const bool is_write =
      is_atomic || event.kind == AccessKind::write || event.kind == AccessKind::async_write;
  const bool is_strong = !event.is_cta_scope && (is_atomic || event.order != MemoryOrder::weak);
  return (is_strong ? kStrong : 0) + (is_write ? kWrite : kRead);
}

}  // namespace

FootprintObserver::Bits& FootprintObserver::bits_of(std::uint64_t base) {
  if (last_ == nullptr || last_base_ != base) {
    last_ = &by_base_[base];
    last_base_ = base;
  }
  return *last_;
}

void FootprintObserver::add_reach(const ExecutionPoint& point, const AccessEvent& event,
                                  std::uint64_t begin, std::uint64_t end) {
  if (reaches_.size() <= point.instruction) reaches_.resize(point.instruction + std::size_t{1});
  std::vector<Reach>& reaches = reaches_[point.instruction];
  const auto use = static_cast<Uses>(1U << use_of(event));
  const auto known = std::find_if(reaches.begin(), reaches.end(), [&](const Reach& reach) {
    return reach.base == event.base && reach.site.uses == use;
  });
  if (known != reaches.end()) {
    known->site.begin = std::min(known->site.begin, begin);
    known->site.end = std::max(known->site.end, end);
    return;
  }
  reaches.push_back(
      {event.base,
       {std::string{point.source_file}, point.source_line, point.ptx_line, begin, end, use}});
}

void FootprintObserver::on_access(const ExecutionPoint& point, const AccessEvent& event) noexcept {
  if (event.space != MemorySpace::global || event.base == 0) return;
  std::vector<std::uint64_t>& words = bits_of(event.base)[use_of(event)];
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t lowest = ~std::uint64_t{0};
  std::uint64_t highest = 0;
  // Most warps touch one run of bytes; it is set at once.
  for (std::uint32_t left = event.lanes; left != 0; left &= left - 1) {
    const std::uint64_t address = event.addresses[static_cast<std::size_t>(std::countr_zero(left))];
    const std::uint64_t offset = address - event.base;
    if (offset != end || begin == end) {
      set_bits(words, begin, end);
      begin = offset;
    }
    end = offset + event.size_bytes;
    lowest = std::min(lowest, address);
    highest = std::max(highest, address + event.size_bytes);
  }
  set_bits(words, begin, end);
  if (lowest < highest) add_reach(point, event, lowest, highest);
}

/// An access whose instruction has been seen there, and which may not be strong.
bool FootprintObserver::on_plain_access(const PlainAccessEvent& event) noexcept {
  if (event.space != MemorySpace::global) return true;
  if (reaches_.size() <= event.instruction) return false;
  const std::size_t use = event.kind == AccessKind::write ? kWrite : kRead;
  const auto uses = static_cast<Uses>(1U << use);
  const std::uint64_t begin = event.base + event.offset;
  const std::uint64_t end = begin + event.size_bytes * (event.is_uniform ? 1 : kLanes);
  for (Reach& reach : reaches_[event.instruction]) {
    if (reach.base != event.base || reach.site.uses != uses) continue;
    reach.site.begin = std::min(reach.site.begin, begin);
    reach.site.end = std::max(reach.site.end, end);
    set_bits(bits_of(event.base)[use], begin - event.base, end - event.base);
    return true;
  }
  return false;
}

void FootprintObserver::add_words(std::uint64_t base, const Bits& bits, Footprint& footprint) {
  std::size_t count = 0;
  for (const std::vector<std::uint64_t>& words : bits) count = std::max(count, words.size());
  for (std::size_t i = 0; i < count; ++i) {
    std::array<std::uint64_t, 4> now{};
    bool is_uniform = true;
    for (std::size_t use = 0; use < now.size(); ++use) {
      now[use] = i < bits[use].size() ? bits[use][i] : 0;
      is_uniform = is_uniform && (now[use] == 0 || now[use] == ~std::uint64_t{0});
    }
    const std::uint64_t step = is_uniform ? kBits : 1;
    for (std::uint64_t bit = 0; bit < kBits; bit += step) {
      Uses uses = 0;
      for (std::size_t use = 0; use < now.size(); ++use) {
        uses = static_cast<Uses>(uses | (((now[use] >> bit) & 1) << use));
      }
      const std::uint64_t begin = base + i * kBits + bit;
      append(footprint, {begin, begin + step, uses});
    }
  }
}

AccessSites FootprintObserver::sites() const {
  AccessSites sites;
  for (const std::vector<Reach>& reaches : reaches_) {
    for (const Reach& reach : reaches) sites.push_back(reach.site);
  }
  return sites;
}

Footprint FootprintObserver::footprint() const {
  Footprint footprint;
  for (const auto& entry : by_base_) add_words(entry.first, entry.second, footprint);
  return footprint;
}

}  // namespace cpverify::sim
