#include "support/check.hpp"

#include <cstdio>
#include <cstdlib>

namespace cpverify {

void check_failed(const char* expression, const char* file, int line) noexcept {
  // Not fmt: the heap may be what is broken.
  std::fputs("cpverify: internal error: check failed: ", stderr);
  std::fputs(expression, stderr);
  std::fprintf(stderr, "\n  at %s:%d\n", file, line);
  std::abort();
}

}  // namespace cpverify
