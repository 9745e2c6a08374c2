#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <optional>
#include <utility>

namespace cpverify {

/// Host threads for a wish: 0 is one per core, at least 1.
[[nodiscard]] unsigned thread_count(unsigned asked) noexcept;

/// Calls work(i) for every i below `count`, each once, on at most `threads` threads, of which the
/// caller's is one. The calls may come in any order and overlap: each must write what is its own.
/// All are made even when one throws; then the exception of the least i is thrown.
void for_each_index(std::size_t count, unsigned threads,
                    const std::function<void(std::size_t)>& work);

/// A value that is made ahead of its use, possibly on another thread: an error waits in its place,
/// so that it only matters when somebody asks for the value.
template <class T>
class Made {
 public:
  template <class Make>
  void make(Make&& make_value) noexcept {
    try {
      value_.emplace(std::forward<Make>(make_value)());
    } catch (const std::exception&) {
      error_ = std::current_exception();
    }
  }
  /// Throws what make() met. make() must have returned before.
  [[nodiscard]] const T& get() const {
    if (error_) std::rethrow_exception(error_);
    return value_.value();
  }
  /// Whether make() gave this value.
  [[nodiscard]] bool has(const T& value) const { return value_ == value; }

 private:
  std::optional<T> value_;
  std::exception_ptr error_;
};

}  // namespace cpverify
