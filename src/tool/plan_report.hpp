#pragma once

#include <optional>
#include <string>
#include <vector>

#include "layout/config_rules.hpp"
#include "layout/configuration.hpp"
#include "layout/cost.hpp"
#include "layout/coverage.hpp"
#include "layout/splits.hpp"

namespace cpverify::tool {

/// What `cpverify plan` knows of a batch.
struct BatchReport {
  layout::BatchSplit batch;
  layout::SplitProblems problems;
  layout::CostModel model;
  layout::BatchCost cost;
  double link_gb_s = 0.0;
};

struct PlanReport {
  layout::Configuration configuration;
  std::vector<layout::BrokenRule> broken;
  std::optional<BatchReport> batch;

  [[nodiscard]] bool is_refused() const { return layout::is_refused(broken); }
  [[nodiscard]] bool is_right() const {
    return !is_refused() && (!batch || batch->problems.empty());
  }
};

[[nodiscard]] std::string plan_text(const PlanReport& report);

/// docs/json.md, "cpverify.configuration", schema_version 1.
[[nodiscard]] std::string plan_json(const PlanReport& report);

}  // namespace cpverify::tool
