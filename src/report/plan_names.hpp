#pragma once

#include <string>
#include <string_view>

#include "cpverify/plan.hpp"
#include "cpverify/step.hpp"

namespace cpverify::report {

[[nodiscard]] std::string_view name(BufferRole role) noexcept;
[[nodiscard]] std::string_view name(TensorKind tensor) noexcept;
[[nodiscard]] std::string_view name(OutputKind kind) noexcept;
[[nodiscard]] std::string_view name(RowState state) noexcept;

/// "kv_send" or "kv_send + 128"; "?" for a buffer that the rank does not have.
[[nodiscard]] std::string reference_text(const RankPlan& rank, const BufferRef& reference);

}  // namespace cpverify::report
