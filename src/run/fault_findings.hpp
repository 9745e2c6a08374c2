#pragma once

#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "cpverify/fault.hpp"
#include "cpverify/finding.hpp"
#include "cpverify/step.hpp"
#include "run/rank_device.hpp"

namespace cpverify::run {

/// The stable snake_case name of a kind; Finding::kind of a fault.
[[nodiscard]] std::string_view name(FaultKind kind) noexcept;

/// Which cell and step a fault belongs to.
struct FaultContext {
  StrategyKind strategy = StrategyKind::single;
  DataMode mode = DataMode::random;
  std::uint32_t step = 0;
};

/// Says a machine fault in the plan's terms: rank, buffer, element.
[[nodiscard]] Finding fault_finding(const Fault& fault, const FaultContext& context,
                                    const std::vector<std::unique_ptr<RankDevice>>& devices);

}  // namespace cpverify::run
