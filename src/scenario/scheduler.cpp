#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cpverify/error.hpp"
#include "cpverify/ids.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "scenario/block_pool.hpp"
#include "support/check.hpp"

// The scheduler's rules are in docs/scenario.md; the tests work examples of them by hand.
namespace cpverify {
namespace {

constexpr std::size_t kMaxSteps = std::size_t{1} << 16;
/// Over all rows of all steps; every rank's plan repeats them.
constexpr std::size_t kMaxTableEntries = std::size_t{1} << 24;

std::int64_t blocks_for(std::int64_t tokens, std::int64_t block_size) noexcept {
  return (tokens + block_size - 1) / block_size;
}

class Scheduler {
 public:
  explicit Scheduler(const Scenario& scenario)
      : scenario_{scenario},
        block_size_{scenario.block_tokens()},
        progress_(scenario.requests.size()),
        arrival_order_(scenario.requests.size()) {
    CPVERIFY_CHECK(block_size_ >= 1);
    std::iota(arrival_order_.begin(), arrival_order_.end(), std::size_t{0});
    // Ties by place in the file, so that the order is total.
    std::sort(arrival_order_.begin(), arrival_order_.end(),
              [&scenario](std::size_t one, std::size_t other) {
                return std::pair{scenario.requests[one].arrival_step, one} <
                       std::pair{scenario.requests[other].arrival_step, other};
              });
    for (std::size_t i = 0; i < progress_.size(); ++i) {
      if (!request(i).shared_prefix) continue;
      progress_[i].is_shared = true;
      progress_[request(i).shared_prefix->request.value()].is_shared = true;
    }
  }

  /// Block tables and slots are in terms of BlockCounter's numbers.
  [[nodiscard]] Problem run() {
    Problem problem;
    problem.scenario = scenario_;
    place_cached(problem);
    while (advance_clock()) {
      problem.steps.push_back(next_step(static_cast<std::uint32_t>(problem.steps.size())));
      check_size(problem);
      ++clock_;
    }
    return problem;
  }

  [[nodiscard]] std::int32_t blocks_taken() const noexcept { return blocks_.taken(); }

 private:
  struct Progress {
    std::int64_t computed = 0;
    bool is_started = false;
    bool is_shared = false;  ///< Its blocks may be those of another request too.
    std::vector<std::int32_t> table;
  };

  [[nodiscard]] const RequestSpec& request(std::size_t index) const {
    return scenario_.requests[index];
  }
  [[nodiscard]] std::int64_t prompt_end(std::size_t index) const {
    return request(index).cached_prefix + request(index).prompt;
  }
  [[nodiscard]] bool is_finished(std::size_t index) const {
    return progress_[index].computed >= request(index).total_tokens();
  }
  [[nodiscard]] bool is_waiting(std::size_t index) const {
    return request(index).arrival_step <= clock_ && !is_finished(index);
  }

  void place_cached(Problem& problem) {
    for (std::size_t i = 0; i < progress_.size(); ++i) {
      const std::int64_t cached = request(i).cached_prefix;
      progress_[i].computed = cached;
      grow_table(progress_[i], cached);
      for (std::int64_t position = 0; position < cached; ++position) {
        problem.cached.push_back({RequestId{static_cast<std::uint32_t>(i)}, position,
                                  slot(progress_[i].table, position)});
      }
    }
  }

  [[nodiscard]] std::int64_t slot(const std::vector<std::int32_t>& table,
                                  std::int64_t position) const {
    const std::int64_t block = table[static_cast<std::size_t>(position / block_size_)];
    return block * block_size_ + position % block_size_;
  }

  void grow_table(Progress& progress, std::int64_t tokens) {
    const auto needed = static_cast<std::size_t>(blocks_for(tokens, block_size_));
    while (progress.table.size() < needed) progress.table.push_back(blocks_.take());
  }

  /// Blocks of a shared prefix stay: a later request may hit them.
  void free_finished() {
    for (std::size_t i = 0; i < progress_.size(); ++i) {
      if (!is_finished(i) || progress_[i].is_shared) continue;
      for (const std::int32_t block : progress_[i].table) blocks_.give_back(block);
      progress_[i].table.clear();
    }
  }

  /// Moves the clock to the next step that has work; false when nothing is left to do.
  [[nodiscard]] bool advance_clock() {
    std::int64_t earliest = std::numeric_limits<std::int64_t>::max();
    for (std::size_t i = 0; i < progress_.size(); ++i) {
      if (!is_finished(i)) earliest = std::min(earliest, request(i).arrival_step);
    }
    clock_ = std::max(clock_, earliest);
    return earliest != std::numeric_limits<std::int64_t>::max();
  }

  [[nodiscard]] Step next_step(std::uint32_t index) {
    if (scenario_.cache.reuse == CacheReuse::finished) free_finished();
    std::vector<StepRow> rows;
    const std::int64_t limit = scenario_.scheduler.max_batched_tokens;
    std::int64_t budget = limit > 0 ? limit : std::numeric_limits<std::int64_t>::max();
    for (const RowState state : {RowState::decode, RowState::prefill}) {
      for (const std::size_t i : arrival_order_) {
        if (budget == 0) break;
        if (!is_waiting(i) || state_of(i) != state) continue;
        rows.push_back(schedule(i, state, budget));
        budget -= rows.back().scheduled;
      }
    }
    CPVERIFY_CHECK(!rows.empty());
    std::sort(rows.begin(), rows.end(),
              [](const StepRow& one, const StepRow& other) { return one.request < other.request; });
    // Only now, so that prefix hits see what was computed before this step.
    for (StepRow& row : rows) commit(row);
    return {index, std::move(rows)};
  }

  [[nodiscard]] RowState state_of(std::size_t index) const {
    return progress_[index].computed >= prompt_end(index) ? RowState::decode : RowState::prefill;
  }

  [[nodiscard]] StepRow schedule(std::size_t index, RowState state, std::int64_t budget) {
    Progress& progress = progress_[index];
    if (!progress.is_started) take_prefix_hit(index);
    progress.is_started = true;
    StepRow row;
    row.request = RequestId{static_cast<std::uint32_t>(index)};
    row.computed = progress.computed;
    row.state = state;
    row.scheduled =
        state == RowState::decode ? 1 : std::min(budget, prompt_end(index) - progress.computed);
    return row;
  }

  void take_prefix_hit(std::size_t index) {
    const RequestSpec& spec = request(index);
    if (!spec.shared_prefix) return;
    // The last prompt token is always computed, for its output starts the decoding.
    const std::int64_t usable = std::min(spec.shared_prefix->tokens, spec.prompt - 1);
    const std::int64_t blocks = usable / block_size_;
    const Progress& source = progress_[spec.shared_prefix->request.value()];
    if (source.computed < blocks * block_size_) return;
    Progress& progress = progress_[index];
    CPVERIFY_CHECK(progress.table.empty());
    CPVERIFY_CHECK(std::ssize(source.table) >= blocks);
    progress.table.assign(source.table.begin(), source.table.begin() + blocks);
    progress.computed = blocks * block_size_;
  }

  void commit(StepRow& row) {
    Progress& progress = progress_[row.request.value()];
    progress.computed = row.computed + row.scheduled;
    grow_table(progress, progress.computed);
    row.block_table = progress.table;
    row.slots.reserve(static_cast<std::size_t>(row.scheduled));
    for (std::int64_t position = row.computed; position < progress.computed; ++position) {
      row.slots.push_back(slot(progress.table, position));
    }
    table_entries_ += row.block_table.size();
  }

  void check_size(const Problem& problem) const {
    if (problem.steps.size() <= kMaxSteps && table_entries_ <= kMaxTableEntries) return;
    const SourceLocation where{scenario_.path.string()};
    throw InputError{where, fmt::format("the requests take more than {} steps or {} block table "
                                        "entries; expected fewer decode tokens, a larger "
                                        "max_batched_tokens or a larger block_size",
                                        kMaxSteps, kMaxTableEntries)};
  }

  const Scenario& scenario_;
  std::int64_t block_size_ = 0;
  std::vector<Progress> progress_;
  std::vector<std::size_t> arrival_order_;
  scenario::BlockCounter blocks_;
  std::int64_t clock_ = 0;
  std::size_t table_entries_ = 0;
};

/// Turns block numbers into physical ids, in tables and in slots alike.
class PhysicalBlocks {
 public:
  explicit PhysicalBlocks(const Problem& problem)
      : ids_{scenario::physical_ids(problem.scenario.cache, problem.num_blocks)},
        block_size_{problem.block_tokens()} {}

  [[nodiscard]] std::int32_t id(std::int32_t number) const {
    return ids_[static_cast<std::size_t>(number)];
  }
  [[nodiscard]] std::int64_t slot(std::int64_t numbered) const {
    const std::int64_t block = ids_[static_cast<std::size_t>(numbered / block_size_)];
    return block * block_size_ + numbered % block_size_;
  }

 private:
  std::vector<std::int32_t> ids_;
  std::int64_t block_size_ = 0;
};

}  // namespace

Problem make_problem(const Scenario& scenario) {
  Scheduler scheduler{scenario};
  Problem problem = scheduler.run();
  problem.num_blocks = scenario::pool_size(scenario, scheduler.blocks_taken());
  const PhysicalBlocks physical{problem};
  for (CachedToken& token : problem.cached) token.slot = physical.slot(token.slot);
  for (Step& step : problem.steps) {
    for (StepRow& row : step.rows) {
      for (std::int32_t& block : row.block_table) block = physical.id(block);
      for (std::int64_t& slot : row.slots) slot = physical.slot(slot);
    }
  }
  return problem;
}

}  // namespace cpverify
