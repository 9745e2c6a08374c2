#pragma once

#include "sim/isa/syntax.hpp"
#include "sim/isa/type.hpp"
#include "sim/machine/async_work.hpp"
#include "sim/machine/tensor_map.hpp"

namespace cpverify::sim {

/// What cp.reduce.async.bulk does with elements of a type; null when it cannot be done.
[[nodiscard]] BulkCopy::Combine find_combine(Type type, Reduce op) noexcept;
[[nodiscard]] BulkCopy::Combine find_combine(TensorElement element, Reduce op) noexcept;

}  // namespace cpverify::sim
