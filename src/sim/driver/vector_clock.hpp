#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace cpverify::sim {

/// How much of each timeline (a stream, or the host's view of one) is known to have happened.
class VectorClock {
 public:
  [[nodiscard]] std::uint64_t at(std::uint32_t timeline) const noexcept {
    return timeline < times_.size() ? times_[timeline] : 0;
  }
  void set(std::uint32_t timeline, std::uint64_t time) {
    if (timeline >= times_.size()) times_.resize(timeline + std::size_t{1});
    times_[timeline] = time;
  }
  /// From now on, what `other` knows has happened too.
  void join(const VectorClock& other) {
    if (times_.size() < other.times_.size()) times_.resize(other.times_.size());
    for (std::size_t i = 0; i < other.times_.size(); ++i) {
      times_[i] = std::max(times_[i], other.times_[i]);
    }
  }

 private:
  std::vector<std::uint64_t> times_;
};

}  // namespace cpverify::sim
