#pragma once

/// Small PTX modules for tests of the driver.
namespace cpverify::test_support {

/// add(pointer, count, value): adds `value` to `count` words, one thread each.
inline constexpr const char* kAddPtx = R"(.version 7.0
.target sm_80
.address_size 64

.visible .entry add(
  .param .u64 add_pointer,
  .param .u32 add_count,
  .param .u32 add_value
)
{
  .reg .pred %p<2>;
  .reg .b32 %r<8>;
  .reg .b64 %rd<5>;

  ld.param.u64 %rd1, [add_pointer];
  ld.param.u32 %r1, [add_count];
  ld.param.u32 %r2, [add_value];
  mov.u32 %r3, %ctaid.x;
  mov.u32 %r4, %ntid.x;
  mov.u32 %r5, %tid.x;
  mad.lo.s32 %r6, %r3, %r4, %r5;
  setp.ge.u32 %p1, %r6, %r1;
  @%p1 bra DONE;
  cvta.to.global.u64 %rd2, %rd1;
  mul.wide.u32 %rd3, %r6, 4;
  add.s64 %rd4, %rd2, %rd3;
  ld.global.u32 %r7, [%rd4];
  add.s32 %r7, %r7, %r2;
  st.global.u32 [%rd4], %r7;
DONE:
  ret;
}
)";

/// Kernels that go wrong or want much shared memory:
/// store(pointer): writes one word; abort(): traps; both(small, large, small): parameters of mixed
/// size, stores 64-bit `large` + both small ones to the pointer; shared(pointer): stores the word
/// that it first put at the end of 64 KiB of dynamic shared memory.
inline constexpr const char* kOddPtx = R"(.version 7.0
.target sm_80
.address_size 64

.extern .shared .align 16 .b8 pool[];

.visible .entry store(
  .param .u64 store_pointer
)
{
  .reg .b32 %r<2>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [store_pointer];
  cvta.to.global.u64 %rd2, %rd1;
  mov.u32 %r1, 7;
  st.global.u32 [%rd2], %r1;
  ret;
}

.visible .entry abort()
{
  trap;
}

.visible .entry both(
  .param .u32 both_first,
  .param .u64 both_large,
  .param .u32 both_last,
  .param .u64 both_pointer
)
{
  .reg .b32 %r<3>;
  .reg .b64 %rd<8>;
  ld.param.u32 %r1, [both_first];
  ld.param.u64 %rd1, [both_large];
  ld.param.u32 %r2, [both_last];
  ld.param.u64 %rd2, [both_pointer];
  cvta.to.global.u64 %rd3, %rd2;
  cvt.u64.u32 %rd4, %r1;
  cvt.u64.u32 %rd5, %r2;
  add.s64 %rd6, %rd1, %rd4;
  add.s64 %rd7, %rd6, %rd5;
  st.global.u64 [%rd3], %rd7;
  ret;
}

.visible .entry shared(
  .param .u64 shared_pointer
)
{
  .reg .b32 %r<5>;
  .reg .b64 %rd<3>;
  ld.param.u64 %rd1, [shared_pointer];
  cvta.to.global.u64 %rd2, %rd1;
  mov.u32 %r1, pool;
  add.s32 %r2, %r1, 65532;
  mov.u32 %r3, 99;
  st.shared.u32 [%r2], %r3;
  ld.shared.u32 %r4, [%r2];
  st.global.u32 [%rd2], %r4;
  ret;
}
)";

}  // namespace cpverify::test_support
