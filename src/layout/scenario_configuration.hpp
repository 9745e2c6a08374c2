#pragma once

#include "cpverify/scenario.hpp"
#include "layout/configuration.hpp"
#include "layout/splits.hpp"

/// A scenario in the words of the configuration rules.
namespace cpverify::layout {

/// The split that a strategy's plan makes of a step.
[[nodiscard]] SplitKind split_kind(StrategyKind strategy);

/// What the scenario's system would be started with to run the strategy. Its ranks are those that
/// the strategy uses: sizes that others use are 1. `scenario.system` must be given.
[[nodiscard]] Configuration scenario_configuration(const Scenario& scenario, StrategyKind strategy);

}  // namespace cpverify::layout
