#include "support/parallel.hpp"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <exception>
#include <functional>
#include <thread>
#include <vector>

namespace cpverify {

unsigned thread_count(unsigned asked) noexcept {
  return asked != 0 ? asked : std::max(1U, std::thread::hardware_concurrency());
}

void for_each_index(std::size_t count, unsigned threads,
                    const std::function<void(std::size_t)>& work) {
  std::vector<std::exception_ptr> errors(count);
  std::atomic<std::size_t> next{0};
  const auto take_turns = [&] {
    for (std::size_t i = next++; i < count; i = next++) {
      try {
        work(i);
      } catch (const std::exception&) {
        errors[i] = std::current_exception();
      }
    }
  };
  {
    const std::size_t others = std::min<std::size_t>(std::max(1U, threads), count);
    std::vector<std::jthread> pool;
    for (std::size_t i = 1; i < others; ++i) pool.emplace_back(take_turns);
    take_turns();
  }
  for (const std::exception_ptr& error : errors) {
    if (error) std::rethrow_exception(error);
  }
}

}  // namespace cpverify
