#pragma once

#include "sim/machine/handlers.hpp"

namespace cpverify::sim {

/// mma.sync of 16-bit elements with f32 sums, m16n8k16 or m16n8k8, element by element in the order
/// and with the roundings of the launch's policy.
[[nodiscard]] Handler mma_by_policy(bool is_bf16, bool is_k8);

/// The same, all elements at once while the policy is fma_chain; each build of the machine has its
/// own.
[[nodiscard]] Handler mma_by_chain(bool is_bf16, bool is_k8);

}  // namespace cpverify::sim
