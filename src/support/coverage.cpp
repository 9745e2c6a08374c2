#include "cpverify/coverage.hpp"

#include <cstddef>

#include "support/check.hpp"

namespace cpverify {

void Coverage::add(const Kernel& kernel, const Counts& counts) {
  CPVERIFY_CHECK(counts.instructions.size() == kernel.second.size());
  Counts& sum = kernels[kernel];
  sum.launches += counts.launches;
  sum.instructions.resize(counts.instructions.size());
  for (std::size_t i = 0; i < counts.instructions.size(); ++i) {
    sum.instructions[i].executed += counts.instructions[i].executed;
    sum.instructions[i].skipped += counts.instructions[i].skipped;
  }
}

void Coverage::merge(const Coverage& other) {
  for (const auto& [kernel, counts] : other.kernels) add(kernel, counts);
}

}  // namespace cpverify
