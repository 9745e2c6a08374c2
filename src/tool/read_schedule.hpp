#pragma once

#include <string>

#include "cpverify/schedule.hpp"

namespace cpverify::tool {

/// POLICY or POLICY:SEED, and +its behind it for independent threads. Throws InputError when it is
/// neither, with the nearest policy.
[[nodiscard]] ScheduleSpec read_schedule(const std::string& text);

}  // namespace cpverify::tool
