#include "sim/machine/async_copy.hpp"

#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/machine/checked_bytes.hpp"

namespace cpverify::sim {
namespace {

/// What most copies copy per lane.
constexpr std::uint32_t kWidest = 16;

template <class Visit>
void for_each_lane(std::uint32_t lanes, Visit visit) {
  for (; lanes != 0; lanes &= lanes - 1) visit(static_cast<std::size_t>(std::countr_zero(lanes)));
}

void complete(const AsyncCopies::Copy& copy, std::uint32_t lanes, CheckedBytes& shared) {
  for_each_lane(lanes, [&](std::size_t lane) {
    const std::uint32_t copied = copy.copied_bytes[lane];
    const std::size_t target = copy.target[lane];
    // A constant size saves a call for each lane.
    if (copied == kWidest && copy.size_bytes == kWidest) {
      shared.copy_block(target, *copy.source, copy.offsets[lane], kWidest);
      return;
    }
    if (copied == copy.size_bytes) {
      shared.copy_block(target, *copy.source, copy.offsets[lane], copied);
      return;
    }
    shared.zero(target, copy.size_bytes);
    if (copied > 0) shared.copy_from(target, *copy.source, copy.offsets[lane], copied);
  });
}

}  // namespace

void AsyncCopies::reset() noexcept {
  if (!is_used_) return;
  is_used_ = false;
  copies_.clear();
  issued_ = 0;
  committed_.fill(0);
}

void AsyncCopies::issue(const Copy& copy, CheckedBytes& shared) {
  is_used_ = true;
  copies_.push_back(copy);
  copies_.back().group = committed_;
  copies_.back().sequence = issued_++;
  for_each_lane(copy.lanes, [&](std::size_t lane) {
    if (copy.size_bytes == kWidest) {
      shared.forget_block(copy.target[lane], kWidest);
    } else {
      shared.forget_block(copy.target[lane], copy.size_bytes);
    }
  });
}

void AsyncCopies::commit(std::uint32_t lanes) noexcept {
  is_used_ = true;
  for_each_lane(lanes, [this](std::size_t lane) { ++committed_[lane]; });
}

template <class IsDue>
void AsyncCopies::complete_due(std::uint32_t lanes, CheckedBytes& shared, std::vector<Copy>* done,
                               IsDue is_due) {
  if (done != nullptr) done->reserve(copies_.size());
  for (Copy& copy : copies_) {
    std::uint32_t complete_lanes = 0;
    for (std::size_t lane = 0; lane < copy.group.size(); ++lane) {
      complete_lanes |= static_cast<std::uint32_t>(is_due(copy, lane)) << lane;
    }
    complete_lanes &= copy.lanes & lanes;
    if (complete_lanes == 0) continue;
    complete(copy, complete_lanes, shared);
    if (done != nullptr) {
      done->push_back(copy);
      done->back().lanes = complete_lanes;
    }
    copy.lanes &= ~complete_lanes;
  }
  std::erase_if(copies_, [](const Copy& copy) { return copy.lanes == 0; });
}

void AsyncCopies::wait(std::uint32_t lanes, std::uint32_t pending, CheckedBytes& shared,
                       std::vector<Copy>* done) {
  complete_due(lanes, shared, done, [&](const Copy& copy, std::size_t lane) {
    // Group g is complete when more than `pending` groups follow its begin: g + pending < count.
    // No group is above the count.
    return committed_[lane] - copy.group[lane] > pending;
  });
}

void AsyncCopies::wait_for_first(std::uint64_t issued, std::uint32_t lanes, CheckedBytes& shared,
                                 std::vector<Copy>* done) {
  complete_due(lanes, shared, done,
               [&](const Copy& copy, std::size_t /*lane*/) { return copy.sequence < issued; });
}

void AsyncCopies::wait_all(std::uint32_t lanes, CheckedBytes& shared, std::vector<Copy>* done) {
  commit(lanes);
  wait(lanes, 0, shared, done);
}

}  // namespace cpverify::sim
