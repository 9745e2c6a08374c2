#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "cpverify/dtype.hpp"
#include "cpverify/error.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "mutants/defects.hpp"
#include "unit/plan/plan_probe.hpp"

namespace cpverify::mutants {

/// The scenario that tests of defects write their steps for: cp 2, four query heads and two KV
/// heads of 32, blocks of 4 tokens.
inline Scenario small_scenario(DType dtype = DType::f32) {
  Scenario scenario;
  scenario.topology = {2, 1};
  scenario.model.num_heads_q = 4;
  scenario.model.num_heads_kv = 2;
  scenario.model.head_dim = 32;
  scenario.model.dtype = dtype;
  scenario.cache.block_size = 4;
  return scenario;
}

/// A problem, its plans, and a defect that is put into them.
class DefectSubject : public testing::Test {
 protected:
  /// Makes the plan of step 0.
  void plan_by(StrategyKind strategy) { plans_ = {make_plan(problem_, 0, strategy)}; }

  void put_in(const std::string& defect) {
    spec_.defect = defect;
    inject(spec_, problem_, plans_);
  }
  /// what() of the InputError that putting a defect in throws.
  std::string refusal(const std::string& defect) {
    try {
      put_in(defect);
    } catch (const InputError& error) {
      return error.what();
    }
    return "no error";
  }
  /// Of step 0.
  const RankPlan& rank(std::size_t index) { return plans_.at(0).ranks.at(index); }
  const std::vector<std::int64_t>& values(std::size_t index, const std::string& name) {
    return test::buffer_named(rank(index), name).values;
  }
  Problem& problem() { return problem_; }
  std::vector<Plan>& plans() { return plans_; }
  /// Parameters and place of the defect that is put in next.
  InjectSpec& spec() { return spec_; }

 private:
  Problem problem_;
  std::vector<Plan> plans_;
  InjectSpec spec_;
};

}  // namespace cpverify::mutants
