#include "sim/machine/mbarrier.hpp"

#include <cstdint>
#include <string>

#include <fmt/format.h>

namespace cpverify::sim {
namespace {

/// Our layout of the opaque 64 bits: pending and expected arrivals, bytes (two's complement), and
/// the low bits of the phase.
constexpr std::uint32_t kCountBits = 20;
constexpr std::uint32_t kTxBits = 21;
constexpr std::uint32_t kPhasePosition = 2 * kCountBits + kTxBits;
constexpr std::uint64_t kTxMask = (1ULL << kTxBits) - 1;

}  // namespace

void Mbarrier::complete_if_due() noexcept {
  if (pending_ != 0 || tx_count_ != 0) return;
  ++phase_;
  pending_ = expected_;
}

std::string Mbarrier::arrive(std::uint32_t count, Arrival arrival) {
  if (count == 0 || count > kCountMax) {
    return fmt::format("an arrival counts from 1 to {}, not {}", kCountMax, count);
  }
  if (count > pending_) {
    return fmt::format("{} arrivals where {} of {} are pending", count, pending_, expected_);
  }
  const bool may_complete = arrival == Arrival::whole || arrival == Arrival::drop;
  if (!may_complete && count == pending_ && tx_count_ == 0) {
    return fmt::format("an arrival with .noComplete completes phase {}", phase_);
  }
  if (arrival == Arrival::drop || arrival == Arrival::drop_no_complete) expected_ -= count;
  pending_ -= count;
  complete_if_due();
  return {};
}

std::string Mbarrier::add_bytes(std::int64_t bytes) {
  const std::int64_t sum = tx_count_ + bytes;
  if (sum > std::int64_t{kCountMax} || sum < -std::int64_t{kCountMax}) {
    return fmt::format("its tx-count would be {} bytes, at most {} are possible", sum, kCountMax);
  }
  tx_count_ = sum;
  complete_if_due();
  return {};
}

std::string Mbarrier::expect_one_more() {
  if (pending_ == kCountMax) return fmt::format("more than {} arrivals are pending", kCountMax);
  ++pending_;
  return {};
}

std::uint64_t Mbarrier::bits() const noexcept {
  return std::uint64_t{pending_} | std::uint64_t{expected_} << kCountBits |
         (static_cast<std::uint64_t>(tx_count_) & kTxMask) << (2 * kCountBits) |
         phase_ << kPhasePosition;
}

bool Mbarrier::is_recent(std::uint64_t token) const noexcept {
  return ((bits() >> kPhasePosition) - (token >> kPhasePosition)) % 8 <= 1;
}

bool Mbarrier::is_over(std::uint64_t token) const noexcept {
  return (token ^ (phase_ << kPhasePosition)) >> kPhasePosition != 0;
}

bool Mbarrier::is_parity_over(std::uint32_t parity) const noexcept {
  return (phase_ & 1U) != (parity & 1U);
}

std::uint32_t Mbarrier::pending_of(std::uint64_t token) noexcept {
  return static_cast<std::uint32_t>(token) & kCountMax;
}

}  // namespace cpverify::sim
