#include <cstdint>
#include <optional>

#include "cpverify/scenario.hpp"
#include "cpverify/schedule.hpp"
#include "scenario/schema.hpp"
#include "scenario/sections.hpp"
#include "scenario/yaml_value.hpp"

namespace cpverify::scenario {

void read_schedule(const Map& file, Scenario& scenario) {
  const std::optional<Value> value = file.find("schedule");
  if (!value) return;
  const Map map{*value, Section::schedule};
  ScheduleSpec& schedule = scenario.schedule;
  schedule.policy = choice(map.require("policy"), kSchedulePolicies);
  const std::optional<Value> seed = map.find("seed");
  if (seed && !is_seeded(schedule.policy)) {
    seed->fail("'seed' is for policy random or pct; the others have no choice to make");
  }
  if (seed) schedule.seed = seed->seed();
  const std::optional<Value> threads = map.find("threads");
  if (threads) schedule.threads = choice(*threads, kThreadSchedulings);
  const std::optional<Value> depth = map.find("depth");
  if (depth && schedule.policy != SchedulePolicy::pct) depth->fail("'depth' is for policy pct");
  if (depth) {
    schedule.depth = static_cast<std::uint32_t>(depth->whole_number({1, kMaxScheduleDepth}));
  }
}

}  // namespace cpverify::scenario
