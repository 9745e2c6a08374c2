#pragma once

#include <utility>

#include "cpverify/coverage.hpp"
#include "cpverify/observer.hpp"

namespace cpverify::sim {

/// Adds up what launches execute.
class CoverageObserver final : public Observer {
 public:
  [[nodiscard]] bool wants_counts() const noexcept override { return true; }
  void on_counts(const Coverage::Kernel& kernel, const Coverage::Counts& counts) override {
    coverage_.add(kernel, counts);
  }
  /// Since the last call.
  [[nodiscard]] Coverage take() { return std::exchange(coverage_, {}); }

 private:
  Coverage coverage_;
};

}  // namespace cpverify::sim
