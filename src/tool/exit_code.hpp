#pragma once

namespace cpverify::tool {

/// What the process returns; 134 is abort() from CPVERIFY_CHECK.
inline constexpr int kExitPassed = 0;
inline constexpr int kExitFindings = 1;
inline constexpr int kExitInput = 2;
inline constexpr int kExitEnvironment = 3;

}  // namespace cpverify::tool
