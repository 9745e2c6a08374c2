#include "sim/driver/module_cache.hpp"

#include <gtest/gtest.h>

#include "cpverify/error.hpp"
#include "unit/sim/lane_program.hpp"

namespace cpverify::sim {
namespace {

TEST(ModuleCache, ParsesOneTextOnce) {
  ModuleCache cache;
  const ModuleAst& first = cache.parse(kernel_text(0, "ret;"));
  EXPECT_EQ(&cache.parse(kernel_text(0, "ret;")), &first);
  const ModuleAst& other = cache.parse(kernel_text(0, "ret; ret;"));
  EXPECT_NE(&other, &first);
  // The texts above are gone: names must not refer to them.
  EXPECT_EQ(cache.parse(kernel_text(0, "ret;")).functions.at(0).name, "k");
}

TEST(ModuleCache, RefusesWrongTextEachTime) {
  ModuleCache cache;
  for (int i = 0; i < 2; ++i) {
    EXPECT_THROW((void)cache.parse(kernel_text(0, "mov.u32 %r1")), InputError) << i;
  }
}

}  // namespace
}  // namespace cpverify::sim
