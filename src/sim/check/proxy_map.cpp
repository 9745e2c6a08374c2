#include "sim/check/proxy_map.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/check/race_order.hpp"

namespace cpverify::sim {

void ProxyMap::write(std::uint64_t offset, std::uint64_t size_bytes, const RaceLabel& label) {
  const std::uint64_t end = offset + size_bytes;
  for (std::uint64_t at = offset / kBlockBytes * kBlockBytes; at < end; at += kBlockBytes) {
    const std::size_t block = at / kBlockBytes;
    if (!labels_[block].is_open) open_.push_back(block);
    labels_[block] = {label, true};
  }
}

void ProxyMap::fence(const RaceOrder& order) {
  std::erase_if(open_, [&](std::size_t block) {
    if (!order.is_before(labels_[block].label)) return false;
    labels_[block].is_open = false;
    return true;
  });
}

void ProxyMap::synchronise() noexcept {
  for (const std::size_t block : open_) labels_[block].label.time = RaceLabel::kNobody;
}

void ProxyMap::reset() noexcept {
  for (const std::size_t block : open_) labels_[block].is_open = false;
  open_.clear();
}

const RaceLabel* ProxyMap::find(std::uint64_t offset, std::uint64_t size_bytes) const noexcept {
  const std::uint64_t end = offset + size_bytes;
  for (std::uint64_t at = offset / kBlockBytes * kBlockBytes; at < end; at += kBlockBytes) {
    const Entry& entry = labels_[at / kBlockBytes];
    if (entry.is_open) return &entry.label;
  }
  return nullptr;
}

}  // namespace cpverify::sim
