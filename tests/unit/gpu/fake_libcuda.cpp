// A CUDA driver of the toolkit's exported names. Each call writes its name and arguments down and
// returns 0, so that a test sees what reached the library. Source of the signatures: CUDA Driver
// API manual.

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <sstream>
#include <string>

namespace {

using Handle = void*;

std::string& last_call() {
  static std::string text;
  return text;
}

template <class... Arguments>
int note(const char* name, Arguments... arguments) {
  std::ostringstream text;
  text << name;
  ((text << ' ' << arguments), ...);
  last_call() = text.str();
  return 0;
}

/// Handles are small numbers in the tests; a pointer to a result is not shown.
std::uintptr_t number(const void* handle) {
  return reinterpret_cast<std::uintptr_t>(handle);
}

}  // namespace

extern "C" {

const char* fake_last_call() {
  return last_call().c_str();
}

int cuInit(unsigned flags) {
  return note("cuInit", flags);
}
int cuDeviceGetCount(int* count) {
  *count = 3;
  return note("cuDeviceGetCount");
}
int cuDeviceGet(int*, int ordinal) {
  return note("cuDeviceGet", ordinal);
}
int cuDeviceGetAttribute(int*, int attribute, int device) {
  return note("cuDeviceGetAttribute", attribute, device);
}
int cuDevicePrimaryCtxRetain(Handle*, int device) {
  return note("cuDevicePrimaryCtxRetain", device);
}
int cuDevicePrimaryCtxRelease_v2(int device) {
  return note("cuDevicePrimaryCtxRelease", device);
}
int cuCtxSetCurrent(Handle context) {
  return note("cuCtxSetCurrent", number(context));
}
int cuCtxGetCurrent(Handle*) {
  return note("cuCtxGetCurrent");
}
int cuCtxSynchronize() {
  return note("cuCtxSynchronize");
}
int cuModuleLoadDataEx(Handle*, const void* image, unsigned count, int* options, void** values) {
  const auto* text = static_cast<const char*>(image);
  note("cuModuleLoadDataEx", text, count, options[0], options[1], number(values[1]));
  if (std::strcmp(text, "bad") != 0) return 0;
  std::strcpy(static_cast<char*>(values[0]), "ptxas says no");
  return 218;
}
int cuModuleUnload(Handle module) {
  return note("cuModuleUnload", number(module));
}
int cuModuleGetFunction(Handle*, Handle module, const char* name) {
  return note("cuModuleGetFunction", number(module), name);
}
int cuFuncSetAttribute(Handle function, int attribute, int value) {
  return note("cuFuncSetAttribute", number(function), attribute, value);
}
int cuTensorMapEncodeTiled(void*, int type, unsigned rank, void* address,
                           const std::uint64_t* extents, const std::uint64_t* strides,
                           const std::uint32_t* box, const std::uint32_t* steps, int interleave,
                           int swizzle, int promotion, int fill) {
  return note("cuTensorMapEncodeTiled", type, rank, number(address), extents[1], strides[0], box[1],
              steps[1], interleave, swizzle, promotion, fill);
}
int cuMemAlloc_v2(std::uint64_t*, std::size_t size) {
  return note("cuMemAlloc", size);
}
int cuMemFree_v2(std::uint64_t pointer) {
  return note("cuMemFree", pointer);
}
int cuMemcpyHtoDAsync_v2(std::uint64_t target, const void* source, std::size_t size,
                         Handle stream) {
  return note("cuMemcpyHtoDAsync", target, number(source), size, number(stream));
}
int cuMemcpyDtoHAsync_v2(void* target, std::uint64_t source, std::size_t size, Handle stream) {
  return note("cuMemcpyDtoHAsync", number(target), source, size, number(stream));
}
int cuMemcpyDtoDAsync_v2(std::uint64_t target, std::uint64_t source, std::size_t size,
                         Handle stream) {
  return note("cuMemcpyDtoDAsync", target, source, size, number(stream));
}
int cuMemcpyPeerAsync(std::uint64_t target, Handle target_context, std::uint64_t source,
                      Handle source_context, std::size_t size, Handle stream) {
  return note("cuMemcpyPeerAsync", target, number(target_context), source, number(source_context),
              size, number(stream));
}
int cuMemsetD8Async(std::uint64_t target, unsigned char value, std::size_t count, Handle stream) {
  return note("cuMemsetD8Async", target, static_cast<int>(value), count, number(stream));
}
int cuMemsetD32Async(std::uint64_t target, unsigned value, std::size_t count, Handle stream) {
  return note("cuMemsetD32Async", target, value, count, number(stream));
}
int cuStreamCreate(Handle*, unsigned flags) {
  return note("cuStreamCreate", flags);
}
int cuStreamDestroy_v2(Handle stream) {
  return note("cuStreamDestroy", number(stream));
}
int cuStreamSynchronize(Handle stream) {
  return note("cuStreamSynchronize", number(stream));
}
int cuStreamWaitEvent(Handle stream, Handle event, unsigned flags) {
  return note("cuStreamWaitEvent", number(stream), number(event), flags);
}
int cuEventCreate(Handle*, unsigned flags) {
  return note("cuEventCreate", flags);
}
int cuEventDestroy_v2(Handle event) {
  return note("cuEventDestroy", number(event));
}
int cuEventRecord(Handle event, Handle stream) {
  return note("cuEventRecord", number(event), number(stream));
}
struct Attribute {
  int id, padding;
  unsigned value[16];
};
struct Config {
  unsigned gx, gy, gz, bx, by, bz, shared;
  Handle stream;
  const Attribute* attributes;
  unsigned count;
};
int cuLaunchKernelEx(const Config* c, Handle function, void** parameters, void** extra) {
  return note("cuLaunchKernelEx", number(function), c->gx, c->gy, c->gz, c->bx, c->by, c->bz,
              c->shared, number(c->stream), c->count, c->attributes->id, c->attributes->value[0],
              c->attributes->value[1], c->attributes->value[2], number(parameters), number(extra));
}
int cuLaunchKernel(Handle function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by,
                   unsigned bz, unsigned shared, Handle stream, void** parameters, void** extra) {
  return note("cuLaunchKernel", number(function), gx, gy, gz, bx, by, bz, shared, number(stream),
              number(parameters), number(extra));
}
}
