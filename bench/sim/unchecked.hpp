#pragma once

#include "sim/machine/kernel.hpp"

namespace cpverify::sim {

/// The kernel, for vectors of 256 bits, with loads and stores of global memory that look at neither
/// bounds, alignment nor written bytes: what memcheck and initcheck cost is the difference.
/// Everything else keeps theirs: shared memory that is read must have been marked.
[[nodiscard]] Kernel without_checks(const Kernel& kernel);

}  // namespace cpverify::sim
