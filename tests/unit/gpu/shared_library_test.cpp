#include "gpu/shared_library.hpp"

#include <cstddef>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cpverify/error.hpp"

namespace cpverify::gpu {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::ThrowsMessage;

TEST(SharedLibrary, NamesTheLibraryItCannotOpenAndGivesTheAdvice) {
  EXPECT_THAT([] { SharedLibrary("libno_such_thing.so.1", "install something"); },
              ThrowsMessage<EnvironmentError>(
                  AllOf(HasSubstr("libno_such_thing.so.1"), HasSubstr("; install something"))));
}

TEST(SharedLibrary, ResolvesAFunction) {
  const SharedLibrary library{"libc.so.6", "install a C library"};
  std::size_t (*length)(const char*) = nullptr;
  library.resolve(length, "strlen");
  EXPECT_EQ(length("four"), 4U);
}

TEST(SharedLibrary, NamesTheFunctionThatIsMissing) {
  const SharedLibrary library{"libc.so.6", "install a C library"};
  int (*function)(unsigned) = nullptr;
  EXPECT_THAT([&] { library.resolve(function, "cuInit"); },
              ThrowsMessage<EnvironmentError>(AllOf(HasSubstr("libc.so.6 has no function cuInit"),
                                                    HasSubstr("install a C library"))));
}

}  // namespace
}  // namespace cpverify::gpu
