#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cpverify/dtype.hpp"
#include "cpverify/error.hpp"
#include "cpverify/ids.hpp"

namespace cpverify {

/// A place inside a buffer of the same rank.
struct BufferRef {
  BufferId buffer;
  std::int64_t offset_elems = 0;
};

/// A kernel parameter: a device pointer, .u32/.s32, .u64/.s64 or .f32.
using KernelArgument = std::variant<BufferRef, std::int32_t, std::int64_t, float>;

struct Launch {
  std::string module;  ///< Kernel file without extension, e.g. "attention_mma".
  std::string entry;   ///< extern "C" name in it, e.g. "attention_mma_bf16_d64".
  std::array<std::uint32_t, 3> grid{1, 1, 1};
  std::array<std::uint32_t, 3> block{1, 1, 1};
  std::uint32_t shared_bytes = 0;  ///< Dynamic shared memory.
  std::vector<KernelArgument> arguments;
};

/// What a buffer of a launch scenario holds before the first launch.
enum class BufferFill : std::uint8_t {
  unwritten,  ///< Nobody may read a byte before a kernel has written it.
  zero,
  iota,    ///< Element i is i, rounded or cut to the type.
  random,  ///< Floats uniform in [-1, 1), integers of any bits; a function of seed and name.
  values,  ///< LaunchBuffer::values.
};

struct LaunchBuffer {
  std::string name;
  DType dtype = DType::u8;
  std::int64_t elements = 0;
  BufferFill fill = BufferFill::unwritten;
  std::vector<std::byte> values;  ///< Fill values: little endian, in the buffer's type.
};

/// cuMemFree; what names the buffer afterwards passes the address that it had.
struct FreeBuffer {
  BufferId buffer;
};

/// One entry of `launches`.
struct LaunchStep {
  std::variant<Launch, FreeBuffer> action;
  SourceLocation where;
};

/// Elements that a buffer must hold after the last launch.
struct ExpectedValues {
  BufferId buffer;
  std::int64_t first = 0;         ///< Element.
  std::vector<std::byte> values;  ///< In the buffer's type.
};

/// Kernels that run as they are, on one device, without an attention problem around them.
struct LaunchSpec {
  std::filesystem::path file;  ///< PTX; empty: <module>.ptx in the folder of our own kernels.
  std::string module;
  std::uint64_t instruction_budget = 1;  ///< Warp instructions of one launch; then fault deadlock.
  std::vector<LaunchBuffer> buffers;     ///< Indexed by BufferId.
  std::vector<LaunchStep> steps;
  std::vector<ExpectedValues> expected_values;
  SourceLocation where;  ///< Of the file or module.
};

[[nodiscard]] std::string_view name(BufferFill fill) noexcept;

/// What a buffer is filled with, in its type; empty for fill unwritten.
[[nodiscard]] std::vector<std::byte> initial_bytes(const LaunchBuffer& buffer, std::uint64_t seed);

}  // namespace cpverify
