#pragma once

#include <string>

#include "cpverify/launch.hpp"

namespace cpverify::verify_detail {

/// Compares every launch with the entry that it names: a driver takes a pointer per parameter on
/// trust, and has one word for all that is wrong with block and shared memory. Throws InputError at
/// the launch, or where the PTX file is named when it cannot be read.
void check_launches(const LaunchSpec& spec, const std::string& kernel_directory);

}  // namespace cpverify::verify_detail
