#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <thread>
#include <vector>

namespace cpverify::reference {

/// Hands out the numbers 0 .. count-1, each once.
class TaskQueue {
 public:
  explicit TaskQueue(std::size_t count) : count_{count} {}
  /// False when none is left.
  bool take(std::size_t& task) {
    task = next_.fetch_add(1, std::memory_order_relaxed);
    return task < count_;
  }

 private:
  std::size_t count_;
  std::atomic<std::size_t> next_{0};
};

/// Runs `worker(queue)` on up to `threads` threads (0: all cores), the caller's among them. A
/// result is independent of who takes which task as long as a task writes only what is its own.
template <class Worker>
void run_workers(std::size_t num_tasks, unsigned threads, const Worker& worker) {
  const std::size_t cores = threads != 0 ? threads : std::thread::hardware_concurrency();
  const std::size_t num_workers = std::min(std::max<std::size_t>(cores, 1), num_tasks);
  TaskQueue queue{num_tasks};
  std::vector<std::jthread> helpers;
  for (std::size_t helper = 1; helper < num_workers; ++helper) {
    helpers.emplace_back([&queue, &worker] { worker(queue); });
  }
  worker(queue);
}

}  // namespace cpverify::reference
