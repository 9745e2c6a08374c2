#pragma once

namespace cpverify {

/// Prints the broken invariant to stderr and aborts (exit 134). Never returns.
[[noreturn]] void check_failed(const char* expression, const char* file, int line) noexcept;

}  // namespace cpverify

/// States an invariant of our own code; on in all builds. A user's mistake is an InputError
/// instead.
#define CPVERIFY_CHECK(expression) \
  ((expression) ? static_cast<void>(0) : ::cpverify::check_failed(#expression, __FILE__, __LINE__))
