#pragma once

#include <string>

#include "cpverify/schedule.hpp"

namespace cpverify::tool {

/// POLICY or POLICY:SEED. Throws InputError when it is neither, with the nearest policy.
[[nodiscard]] ScheduleSpec read_schedule(const std::string& word);

}  // namespace cpverify::tool
