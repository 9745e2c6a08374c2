#pragma once

#include <array>
#include <cstddef>
#include <string>
#include <string_view>

#include "layout/configuration.hpp"
#include "layout/splits.hpp"

namespace cpverify::layout {

/// What a strategy is, in the words of the comparison table.
struct StrategyFacts {
  SplitKind kind;
  std::string_view splits;    ///< What of the new tokens a rank computes.
  std::string_view cache;     ///< What of the cache a rank stores.
  std::string_view exchange;  ///< What a layer sends.
  std::string_view balance;   ///< Of causal work.
  std::string_view decode;    ///< What becomes of decode rows.
  std::string_view short_requests;
  std::array<std::string_view, 3> names;  ///< In vLLM, vllm-ascend, SGLang; "" where it is not.

  /// The strategy's name in a system; "" when the system has none like it.
  [[nodiscard]] std::string_view name_in(System system) const noexcept {
    const auto index = static_cast<std::size_t>(system);
    return index < names.size() ? names[index] : name(kind);
  }
};

[[nodiscard]] const StrategyFacts& strategy_facts(SplitKind kind) noexcept;

/// docs/strategies.md.
[[nodiscard]] std::string strategies_page();

}  // namespace cpverify::layout
