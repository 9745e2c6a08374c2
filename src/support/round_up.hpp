#pragma once

#include <cstdint>

#include "support/check.hpp"

namespace cpverify {

/// The least multiple of `multiple` (> 0) that is at least `value` (>= 0).
[[nodiscard]] inline std::int64_t round_up(std::int64_t value, std::int64_t multiple) {
  CPVERIFY_CHECK(multiple > 0);
  return (value + multiple - 1) / multiple * multiple;
}

}  // namespace cpverify
