#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <numeric>
#include <vector>

#include "cpverify/error.hpp"
#include "layout/intervals.hpp"

/// The sweeps on which the coverage proofs rest.
namespace cpverify::layout {

/// [begin, end) of an axis, on behalf of `item`.
struct Segment {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  std::size_t item = 0;
};

namespace detail {

/// Items that are open at the sweep's position; opening and closing cost O(1).
class OpenSegments {
 public:
  explicit OpenSegments(std::size_t num_segments) : place_(num_segments) {}

  void open(std::size_t segment, std::size_t item) {
    place_[segment] = segments_.size();
    segments_.push_back(segment);
    items_.push_back(item);
  }
  void close(std::size_t segment) {
    const std::size_t hole = place_[segment];
    segments_[hole] = segments_.back();
    items_[hole] = items_.back();
    place_[segments_[hole]] = hole;
    segments_.pop_back();
    items_.pop_back();
  }
  [[nodiscard]] const std::vector<std::size_t>& items() const noexcept { return items_; }

 private:
  std::vector<std::size_t> place_;
  std::vector<std::size_t> segments_;
  std::vector<std::size_t> items_;
};

struct Event {
  std::int64_t position = 0;
  bool is_open = false;
  std::size_t segment = 0;
};

}  // namespace detail

/// Calls visit(begin, end, items) for the consecutive pieces of [from, to) on each of which the
/// same segments are open.
template <class Visit>
void sweep(const std::vector<Segment>& segments, std::int64_t from, std::int64_t to,
           const Visit& visit) {
  std::vector<detail::Event> events;
  events.reserve(2 * segments.size());
  for (std::size_t i = 0; i < segments.size(); ++i) {
    const std::int64_t begin = std::max(segments[i].begin, from);
    const std::int64_t end = std::min(segments[i].end, to);
    if (begin >= end) continue;
    events.push_back({begin, true, i});
    events.push_back({end, false, i});
  }
  std::sort(events.begin(), events.end(),
            [](const detail::Event& a, const detail::Event& b) { return a.position < b.position; });
  detail::OpenSegments open{segments.size()};
  std::int64_t position = from;
  for (const detail::Event& event : events) {
    if (event.position > position) {
      visit(position, event.position, open.items());
      position = event.position;
    }
    if (event.is_open) {
      open.open(event.segment, segments[event.segment].item);
    } else {
      open.close(event.segment);
    }
  }
  if (position < to) visit(position, to, open.items());
}

/// Calls visit(window, items) for classes of residues that together are all integers, such that an
/// item's set contains all or none of a class (its bounds apart). `set_of(item)` is a TokenSet;
/// the window has the classes' period, low and run. Throws InputError when the periods have too
/// little in common.
template <class SetOf, class Visit>
void for_each_residue_window(const std::vector<std::size_t>& items, const SetOf& set_of,
                             const Visit& visit) {
  constexpr std::int64_t kPeriodMax = std::int64_t{1} << 40U;
  constexpr std::int64_t kWindowsMax = std::int64_t{1} << 22U;
  std::int64_t period = 1;
  for (const std::size_t item : items) {
    const std::int64_t factor = period / std::gcd(period, set_of(item).period);
    if (factor > kPeriodMax / set_of(item).period) throw InputError{"periods without a common one"};
    period = factor * set_of(item).period;
  }
  if (period == 1) return visit(TokenSet{}, items);
  std::vector<Segment> segments;
  for (const std::size_t item : items) {
    const TokenSet& set = set_of(item);
    if (set.run == set.period) {
      segments.push_back({0, period, item});
      continue;
    }
    if (period / set.period > kWindowsMax) throw InputError{"periods without a common one"};
    for (std::int64_t low = set.low; low < period; low += set.period) {
      segments.push_back({low, low + set.run, item});
    }
  }
  sweep(segments, 0, period,
        [&](std::int64_t begin, std::int64_t end, const std::vector<std::size_t>& open) {
          visit(TokenSet{0, 0, period, begin, end - begin}, open);
        });
}

/// The members of a window in [begin, end).
[[nodiscard]] inline TokenSet within(TokenSet window, std::int64_t begin,
                                     std::int64_t end) noexcept {
  window.begin = begin;
  window.end = end;
  return window;
}

}  // namespace cpverify::layout
