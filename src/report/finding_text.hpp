#pragma once

#include <string>

#include "cpverify/finding.hpp"

namespace cpverify::report {

/// Where a finding is, in the field's words, only what is set:
/// "rank 1, step 0, request chat, token 12, head 3, out_local[768], 4 in all".
[[nodiscard]] std::string place_text(const Finding& finding);

}  // namespace cpverify::report
