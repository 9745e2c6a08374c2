#include "sim/machine/explore.hpp"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <vector>

#include "sim/machine/schedule.hpp"
#include "support/check.hpp"

namespace cpverify::sim {
namespace {

/// One of `options` ready warps was taken.
struct Choice {
  std::size_t taken = 0;
  std::size_t options = 0;
};

/// Repeats the choices of a path and takes the first option at every choice behind it.
class PathSchedule final : public Schedule {
 public:
  PathSchedule(std::vector<Choice>& path, const ExploreBounds& bounds)
      : path_{&path}, bounds_{&bounds} {}

  [[nodiscard]] std::uint32_t resident_ctas() const noexcept override { return bounds_->warps; }
  [[nodiscard]] std::optional<Turn> pick(std::span<const Candidate> candidates) override {
    std::vector<std::size_t> ready;
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      if (candidates[i].is_ready) ready.push_back(i);
    }
    if (ready.empty()) return std::nullopt;
    return Turn{ready[choose(ready.size())], kSliceInstructions, 1};
  }
  [[nodiscard]] std::uint64_t fair_turns(std::size_t count) const noexcept override {
    return bounds_->choices + 2 * count;
  }
  [[nodiscard]] bool has_met_bound() const noexcept { return has_met_bound_; }

 private:
  /// At the beginning every warp is ready.
  std::size_t choose(std::size_t options) {
    if (options == 1) return 0;
    is_too_wide_ = is_too_wide_ || options > bounds_->warps;
    if (is_too_wide_ || next_ == bounds_->choices) {
      has_met_bound_ = true;
      return turn_++ % options;
    }
    if (next_ == path_->size()) path_->push_back({0, options});
    // Another number of options would mean that the run did not start from the same memory.
    CPVERIFY_CHECK((*path_)[next_].options == options);
    return (*path_)[next_++].taken;
  }

  std::vector<Choice>* path_;
  const ExploreBounds* bounds_;
  std::size_t next_ = 0;
  std::size_t turn_ = 0;
  bool is_too_wide_ = false;
  bool has_met_bound_ = false;
};

/// The next path in depth-first order; false when this was the last.
bool advance(std::vector<Choice>& path) {
  while (!path.empty() && path.back().taken + 1 == path.back().options) path.pop_back();
  if (path.empty()) return false;
  ++path.back().taken;
  return true;
}

}  // namespace

Exploration explore(const std::function<void(Schedule&)>& run, const ExploreBounds& bounds) {
  Exploration result;
  result.is_complete = true;
  std::vector<Choice> path;
  bool has_more = true;
  while (has_more && result.runs < bounds.runs) {
    PathSchedule schedule{path, bounds};
    run(schedule);
    ++result.runs;
    if (schedule.has_met_bound()) result.is_complete = false;
    has_more = advance(path);
  }
  if (has_more) result.is_complete = false;
  return result;
}

}  // namespace cpverify::sim
