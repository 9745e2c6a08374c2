#pragma once

#include <string>

namespace cpverify::verify_detail {

/// Where <module>.ptx is looked for: share/cpverify/kernels beside the bin folder of the running
/// program when it exists (an installed tree may have been moved), else where the build put it.
[[nodiscard]] std::string default_kernel_directory();

}  // namespace cpverify::verify_detail
