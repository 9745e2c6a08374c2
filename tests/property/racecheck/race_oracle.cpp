#include "property/racecheck/race_oracle.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpverify/observer.hpp"

namespace cpverify::sim {
namespace {

template <class Visit>
void for_each_bit(std::uint32_t bits, Visit visit) {
  for (std::uint32_t i = 0; i < 32; ++i) {
    if ((bits >> i & 1U) != 0) visit(i);
  }
}

}  // namespace

bool RaceOracle::Access::is_pending() const {
  return kind == AccessKind::async_read || kind == AccessKind::async_write;
}

bool RaceOracle::Access::is_write() const {
  return kind != AccessKind::read && kind != AccessKind::async_read;
}

bool RaceOracle::Access::is_strong() const {
  return kind == AccessKind::atomic || order != MemoryOrder::weak;
}

void RaceOracle::begin_cta() {
  ++cta_;
  for (Set& known : known_) known.clear();
  barriers_.clear();
  has_fenced_ = false;
  fenced_.clear();
  acquired_.clear();
}

void RaceOracle::meet(std::uint32_t warps) {
  Set joined;
  for_each_bit(
      warps, [&](std::uint32_t warp) { joined.insert(known_[warp].begin(), known_[warp].end()); });
  for_each_bit(warps, [&](std::uint32_t warp) { known_[warp] = joined; });
}

void RaceOracle::fence() {
  has_fenced_ = true;
  for (std::size_t i = 0; i < all_.size(); ++i) {
    if (all_[i].cta == cta_ && !all_[i].is_pending) fenced_.insert(i);
  }
}

void RaceOracle::arrive(std::uint32_t warp, std::uint32_t barrier) {
  barriers_[barrier].arrived.insert(known_[warp].begin(), known_[warp].end());
}

void RaceOracle::complete_phase(std::uint32_t barrier) {
  Phase& phase = barriers_[barrier];
  phase.complete.insert(phase.arrived.begin(), phase.arrived.end());
  phase.arrived.clear();
}

void RaceOracle::wait(std::uint32_t warp, std::uint32_t barrier) {
  const Set& complete = barriers_[barrier].complete;
  known_[warp].insert(complete.begin(), complete.end());
}

/// Between CTAs: a strong load of a place acquires, a strong store releases what its CTA did before
/// its last fence, or, with a release of its own, before now.
void RaceOracle::synchronise(const Access& access) {
  for_each_bit(access.lanes, [&](std::uint32_t lane) {
    const std::uint64_t place = access.offsets[lane];
    const auto released = released_.find(place);
    if (access.kind != AccessKind::write && released != released_.end()) {
      acquired_.insert(released->second.begin(), released->second.end());
    }
    if (access.kind == AccessKind::read) return;
    if (access.order >= MemoryOrder::release) {
      Set& target = released_[place];
      target.insert(acquired_.begin(), acquired_.end());
      for (std::size_t i = 0; i < all_.size(); ++i) {
        if (all_[i].cta == cta_ && !all_[i].is_pending) target.insert(i);
      }
    } else if (has_fenced_) {
      Set& target = released_[place];
      target.insert(acquired_.begin(), acquired_.end());
      target.insert(fenced_.begin(), fenced_.end());
    }
  });
}

bool RaceOracle::is_racing(const Access& access, std::size_t earlier) const {
  const Kept& kept = all_[earlier];
  if (kept.access.is_shared != access.is_shared) return false;
  if (!kept.access.is_write() && !access.is_write()) return false;
  const bool are_strong = kept.access.is_strong() && access.is_strong();
  if (kept.cta == cta_) {
    return !are_strong && (kept.is_pending || known_[access.warp].count(earlier) == 0);
  }
  if (access.is_shared || acquired_.count(earlier) != 0) return false;
  return !are_strong || kept.access.is_cta_scope || access.is_cta_scope;
}

void RaceOracle::find_races(const Access& access, std::uint32_t lane,
                            std::vector<Race>& races) const {
  for (std::size_t i = 0; i < all_.size(); ++i) {
    const Kept& kept = all_[i];
    const std::uint64_t theirs = kept.access.offsets[kept.lane];
    const std::uint64_t first = std::max(access.offsets[lane], theirs);
    const std::uint64_t end =
        std::min(access.offsets[lane] + access.size_bytes, theirs + kept.access.size_bytes);
    if (first >= end || !is_racing(access, i)) continue;
    for (std::uint64_t byte = first; byte < end; ++byte) {
      races.push_back({access.is_shared, byte, lane, kept.access.id, kept.access.warp, kept.lane,
                       kept.cta != cta_});
    }
  }
}

std::vector<RaceOracle::Race> RaceOracle::add(const Access& access) {
  const bool is_synchronising = !access.is_shared && access.is_strong() && !access.is_cta_scope;
  if (is_synchronising) synchronise(access);
  std::vector<Race> races;
  for_each_bit(access.lanes, [&](std::uint32_t lane) { find_races(access, lane, races); });
  for_each_bit(access.lanes, [&](std::uint32_t lane) {
    all_.push_back({access, lane, cta_, access.is_pending()});
    if (!access.is_pending()) known_[access.warp].insert(all_.size() - 1);
  });
  return races;
}

void RaceOracle::end_copy(std::uint32_t id, std::uint32_t lanes) {
  for (std::size_t i = 0; i < all_.size(); ++i) {
    Kept& kept = all_[i];
    if (kept.access.id != id || !kept.is_pending || (lanes >> kept.lane & 1U) == 0) continue;
    kept.is_pending = false;
    known_[kept.access.warp].insert(i);
  }
}

}  // namespace cpverify::sim
