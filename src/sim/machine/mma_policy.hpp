#pragma once

#include "sim/machine/handlers.hpp"

namespace cpverify::sim {

/// mma.sync of 16-bit elements with f32 sums, m16n8k16 or m16n8k8, element by element in the order
/// and with the roundings of the launch's policy.
[[nodiscard]] Handler mma_by_policy(bool is_bf16, bool is_k8);

}  // namespace cpverify::sim
