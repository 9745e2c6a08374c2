#include "sim/check/race_order.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpverify/observer.hpp"

namespace cpverify::sim {
namespace {

void add(std::vector<bool>& target, const std::vector<bool>& more) {
  if (target.size() < more.size()) target.resize(more.size());
  for (std::size_t i = 0; i < more.size(); ++i) {
    if (more[i]) target[i] = true;
  }
}

}  // namespace

void WarpOrder::begin_cta() noexcept {
  warp_ = 0;
  tick();
  first_ = now_;
  home_ = now_;
  // Only barriers of some warps write there.
  if (has_clocks_) known_ = {};
  has_clocks_ = false;
}

void WarpOrder::synchronise() noexcept {
  tick();
  first_ = now_;
}

void WarpOrder::synchronise(std::uint32_t warps) noexcept {
  is_partial_ = true;
  has_clocks_ = true;
  Clocks joined{};
  for (std::size_t warp = 0; warp < kWarps; ++warp) {
    if ((warps >> warp & 1U) == 0) continue;
    for (std::size_t i = 0; i < kWarps; ++i) joined[i] = std::max(joined[i], known_[warp][i]);
    joined[warp] = now_ | (RaceLabel::kTick - 1);
  }
  for (std::size_t warp = 0; warp < kWarps; ++warp) {
    if ((warps >> warp & 1U) != 0) known_[warp] = joined;
  }
  tick();
}

void WarpOrder::release(Clocks& target) noexcept {
  is_partial_ = true;
  const Clocks& known = known_[warp_];
  for (std::size_t i = 0; i < kWarps; ++i) target[i] = std::max(target[i], known[i]);
  target[warp_] = now_ | (RaceLabel::kTick - 1);
  tick();
}

void WarpOrder::acquire(const Clocks& source) noexcept {
  is_partial_ = true;
  has_clocks_ = true;
  Clocks& known = known_[warp_];
  for (std::size_t i = 0; i < kWarps; ++i) known[i] = std::max(known[i], source[i]);
}

bool WarpOrder::is_before(const RaceLabel& earlier) const noexcept {
  if (earlier.time == RaceLabel::kNobody) return true;
  if (earlier.is_async()) return false;
  return earlier.time < first_ || earlier.warp() == warp_ ||
         earlier.time <= known_[warp_][earlier.warp()];
}

void CtaOrder::begin_stretch() {
  const std::array<std::uint32_t, 3> cta = ctas_.back();
  ctas_.push_back(cta);
}

void CtaOrder::begin_cta(const std::array<std::uint32_t, 3>& cta) {
  first_ = static_cast<std::uint32_t>(ctas_.size());
  fenced_ = first_;
  ctas_.push_back(cta);
  acquired_.clear();
}

void CtaOrder::run_cta(const std::array<std::uint32_t, 3>& cta) {
  if (ctas_.back() != cta) ctas_.push_back(cta);
}

void CtaOrder::fence() {
  fenced_ = static_cast<std::uint32_t>(ctas_.size());
  begin_stretch();
}

void CtaOrder::synchronise(std::uint64_t address, AccessKind kind, MemoryOrder order) {
  const bool is_write = kind != AccessKind::read;
  const bool is_read = kind != AccessKind::write;
  const auto known = released_.find(address);
  if (is_read && known != released_.end()) add(acquired_, known->second);
  if (!is_write) return;
  const bool is_release = order >= MemoryOrder::release;
  const std::uint32_t end = is_release ? static_cast<std::uint32_t>(ctas_.size()) : fenced_;
  if (end == first_) return;
  Times& times = released_[address];
  add(times, acquired_);
  if (times.size() < end) times.resize(end);
  std::fill(times.begin() + first_, times.begin() + end, true);
  if (is_release) begin_stretch();
}

bool CtaOrder::is_before(const RaceLabel& earlier) const noexcept {
  const std::uint32_t index = earlier.time / RaceLabel::kTick;
  if (index == RaceLabel::kNobody || index >= first_) return true;
  return index < acquired_.size() && acquired_[index];
}

void LaunchOrder::begin_cta(const std::array<std::uint32_t, 3>& cta) {
  ctas_.begin_cta(cta);
  warps_->begin_cta();
  starts_.push_back(warps_->time());
}

void LaunchOrder::fence() {
  ctas_.fence();
  follow();
}

void LaunchOrder::synchronise(std::uint64_t address, AccessKind kind, MemoryOrder order) {
  ctas_.synchronise(address, kind, order);
  follow();
}

/// A new stretch of the CTA is one of its warps.
void LaunchOrder::follow() {
  if (starts_.size() > ctas_.time() / RaceLabel::kTick) return;
  warps_->tick();
  starts_.push_back(warps_->time());
}

std::uint32_t LaunchOrder::cta_time(const RaceLabel& label) const {
  const auto next = std::upper_bound(starts_.begin(), starts_.end(), label.time);
  return static_cast<std::uint32_t>(next - starts_.begin() - 1) * RaceLabel::kTick;
}

const std::array<std::uint32_t, 3>& LaunchOrder::cta_of(const RaceLabel& label) const {
  return ctas_.cta_at(cta_time(label));
}

bool LaunchOrder::is_before(const RaceLabel& earlier) const noexcept {
  if (earlier.time >= warps_->times().home) return warps_->is_before(earlier);
  if (earlier.time == RaceLabel::kNobody) return true;
  // A copy that its CTA has not waited for is before nothing.
  if (!ctas_.is_partial() || earlier.is_async()) return false;
  return ctas_.is_before({cta_time(earlier), earlier.packed});
}

}  // namespace cpverify::sim
