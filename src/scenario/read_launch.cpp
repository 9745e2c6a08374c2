#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cpverify/dtype.hpp"
#include "cpverify/ids.hpp"
#include "cpverify/launch.hpp"
#include "cpverify/scenario.hpp"
#include "numerics/convert.hpp"
#include "scenario/schema.hpp"
#include "scenario/sections.hpp"
#include "scenario/yaml_value.hpp"

// Kernels that run without an attention problem.
namespace cpverify::scenario {
namespace {

/// Keys of the file that describe the problem which such a scenario does not have.
constexpr std::array<std::string_view, 11> kProblemKeys{
    "system", "model",    "topology", "strategies", "attention_kernel", "dcp",
    "cache",  "requests", "trace",    "scheduler",  "padding"};

// Source: CUDA C++ Programming Guide, "Compute capabilities", table of technical specifications.
constexpr std::array<std::int64_t, 3> kMaxGrid{0x7fffffff, 65535, 65535};
constexpr std::array<std::int64_t, 3> kMaxBlock{1024, 1024, 64};
constexpr std::int64_t kMaxBlockThreads = 1024;
constexpr std::int64_t kMaxSharedBytes = std::int64_t{227} * 1024;

std::int64_t least(DType dtype) noexcept {
  if (dtype == DType::u8) return 0;
  return dtype == DType::i32 ? std::numeric_limits<std::int32_t>::min()
                             : std::numeric_limits<std::int64_t>::min();
}

std::int64_t most(DType dtype) noexcept {
  if (dtype == DType::u8) return 255;
  return dtype == DType::i32 ? std::numeric_limits<std::int32_t>::max()
                             : std::numeric_limits<std::int64_t>::max();
}

bool is_float(DType dtype) noexcept {
  return dtype == DType::f32 || dtype == DType::f16 || dtype == DType::bf16;
}

/// One element, little endian.
std::vector<std::byte> element_bytes(const Value& value, DType dtype) {
  if (is_float(dtype)) {
    const std::array number{static_cast<float>(value.real())};
    return numerics::narrow(dtype, number);
  }
  const std::int64_t number = value.whole_number({least(dtype), most(dtype)});
  std::vector<std::byte> bytes(size_bytes(dtype));
  std::memcpy(bytes.data(), &number, bytes.size());
  return bytes;
}

std::vector<std::byte> list_bytes(const Value& value, DType dtype) {
  std::vector<std::byte> bytes;
  for (const Value& entry : value.list()) {
    const std::vector<std::byte> element = element_bytes(entry, dtype);
    bytes.insert(bytes.end(), element.begin(), element.end());
  }
  return bytes;
}

BufferId find_buffer(const Value& value, const LaunchSpec& launch) {
  const std::string word = value.identifier();
  std::vector<std::string> known;
  known.reserve(launch.buffers.size());
  for (const LaunchBuffer& buffer : launch.buffers) known.push_back(buffer.name);
  const auto found = std::find(known.begin(), known.end(), word);
  if (found == known.end()) {
    if (known.empty())
      value.fail(fmt::format("unknown buffer {}; 'buffers' is missing", in_quotes(word)));
    value.fail(unknown_word("buffer", word, known));
  }
  return BufferId{static_cast<std::uint32_t>(found - known.begin())};
}

void read_content(const Map& map, LaunchBuffer& buffer) {
  const std::optional<Value> elements = map.find("elements");
  const std::optional<Value> values = map.find("values");
  const std::optional<Value> fill = map.find("fill");
  const auto element = static_cast<std::int64_t>(size_bytes(buffer.dtype));
  if (!values || elements) {
    buffer.elements = map.require("elements").whole_number({0, kMaxLaunchBytes / element});
  }
  if (fill) buffer.fill = choice(*fill, kBufferFills);
  if (!values) return;
  if (fill) fill->fail("'fill' and 'values' both say what the buffer holds; leave one out");
  buffer.fill = BufferFill::values;
  buffer.values = list_bytes(*values, buffer.dtype);
  const auto count = static_cast<std::int64_t>(buffer.values.size()) / element;
  if (elements && count != buffer.elements) {
    values->fail(
        fmt::format("'values' has {} entries, but 'elements' is {}", count, buffer.elements));
  }
  buffer.elements = count;
}

LaunchBuffer read_buffer(const Value& value, const LaunchSpec& launch) {
  const Map map{value, Section::buffer};
  LaunchBuffer buffer;
  const Value name = map.require("name");
  buffer.name = name.identifier();
  for (const LaunchBuffer& other : launch.buffers) {
    if (other.name == buffer.name)
      name.fail(fmt::format("two buffers are named '{}'", buffer.name));
  }
  buffer.dtype = choice(map.require("dtype"), kBufferDTypes);
  read_content(map, buffer);
  return buffer;
}

void read_buffers(const Map& map, LaunchSpec& launch) {
  const std::optional<Value> value = map.find("buffers");
  if (!value) return;
  std::int64_t total = 0;
  for (const Value& entry : value->list()) {
    launch.buffers.push_back(read_buffer(entry, launch));
    const LaunchBuffer& buffer = launch.buffers.back();
    total += buffer.elements * static_cast<std::int64_t>(size_bytes(buffer.dtype));
    if (total > kMaxLaunchBytes) {
      entry.fail(fmt::format("the buffers have more than {} bytes in all", kMaxLaunchBytes));
    }
  }
}

/// A number, or a list of up to three: x, y, z.
std::array<std::uint32_t, 3> read_extents(const Value& value,
                                          const std::array<std::int64_t, 3>& limits) {
  std::array<std::uint32_t, 3> extents{1, 1, 1};
  const std::vector<Value> entries =
      value.node().IsSequence() ? value.list() : std::vector<Value>{value};
  if (entries.size() > extents.size()) {
    value.fail(fmt::format("'{}' has {} entries; expected x, y and z at most", value.name(),
                           entries.size()));
  }
  for (std::size_t i = 0; i < entries.size(); ++i) {
    extents[i] = static_cast<std::uint32_t>(entries[i].whole_number({1, limits[i]}));
  }
  return extents;
}

std::array<std::uint32_t, 3> read_block(const Value& value) {
  const std::array<std::uint32_t, 3> block = read_extents(value, kMaxBlock);
  const std::int64_t threads = std::int64_t{block[0]} * block[1] * block[2];
  if (threads > kMaxBlockThreads) {
    value.fail(
        fmt::format("'block' has {} threads; expected at most {}", threads, kMaxBlockThreads));
  }
  return block;
}

KernelArgument read_scalar(const Value& value) {
  constexpr std::int64_t kMax32 = std::numeric_limits<std::uint32_t>::max();
  if (value.name() == "f32") return static_cast<float>(value.real());
  if (value.name() == "f64") return __builtin_bit_cast(std::int64_t, value.real());
  if (value.name() == "s64") return value.whole_number({least(DType::i64), most(DType::i64)});
  if (value.name() == "u64") return static_cast<std::int64_t>(value.seed());
  if (value.name() == "s32") {
    return static_cast<std::int32_t>(value.whole_number({least(DType::i32), most(DType::i32)}));
  }
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(value.whole_number({0, kMax32})));
}

/// The name of a buffer; a map of one with an offset in elements; or a map of type and number.
KernelArgument read_argument(const Value& value, const LaunchSpec& launch) {
  if (!value.node().IsMap()) return BufferRef{find_buffer(value, launch), 0};
  const Map map{value, Section::argument};
  const std::optional<Value> buffer = map.find("buffer");
  const std::optional<Value> offset = map.find("offset");
  const std::size_t allowed = offset ? 2 : 1;
  if (map.values().size() != allowed || (offset && !buffer)) {
    value.fail(
        "an argument is one number with its type, like {s32: 4}, or a buffer, with or "
        "without 'offset'");
  }
  if (!buffer) return read_scalar(map.values().front());
  BufferRef place{find_buffer(*buffer, launch), 0};
  // Outside the buffer too: what a kernel does with such a pointer is what the scenario asks.
  if (offset) place.offset_elems = offset->whole_number({-kMaxLaunchBytes, kMaxLaunchBytes});
  return place;
}

Launch read_kernel(const Map& map, const LaunchSpec& launch) {
  Launch kernel;
  kernel.module = launch.module;
  kernel.entry = map.require("entry").text();
  const std::optional<Value> grid = map.find("grid");
  if (grid) kernel.grid = read_extents(*grid, kMaxGrid);
  const std::optional<Value> block = map.find("block");
  if (block) kernel.block = read_block(*block);
  const std::optional<Value> shared = map.find("shared_bytes");
  if (shared) {
    kernel.shared_bytes = static_cast<std::uint32_t>(shared->whole_number({0, kMaxSharedBytes}));
  }
  const std::optional<Value> arguments = map.find("arguments");
  if (!arguments) return kernel;
  for (const Value& entry : arguments->list()) {
    kernel.arguments.push_back(read_argument(entry, launch));
  }
  return kernel;
}

LaunchStep read_step(const Value& value, const LaunchSpec& launch) {
  const Map map{value, Section::launch_step};
  const std::optional<Value> freed = map.find("free");
  if (!freed) return {read_kernel(map, launch), map.require("entry").where()};
  if (map.values().size() > 1) value.fail("'free' stands alone: it launches nothing");
  const BufferId buffer = find_buffer(*freed, launch);
  for (const LaunchStep& step : launch.steps) {
    const auto* const earlier = std::get_if<FreeBuffer>(&step.action);
    if (earlier != nullptr && earlier->buffer == buffer) freed->fail("the buffer is freed twice");
  }
  return {FreeBuffer{buffer}, freed->where()};
}

void read_module(const Map& map, const std::filesystem::path& folder, LaunchSpec& launch) {
  const std::optional<Value> file = map.find("file");
  const Value given = file ? *file : map.require("module");
  launch.where = given.where();
  if (!file) {
    launch.module = given.text();
    return;
  }
  if (map.find("module")) file->fail("'file' and 'module' both name the kernels; leave one out");
  const std::filesystem::path path{file->text()};
  if (path.extension() != ".ptx") file->fail("'file' must be PTX text and end in .ptx");
  launch.file = path.is_absolute() ? path : folder / path;
  launch.module = path.stem().string();
}

}  // namespace

void read_launch(const Map& file, Scenario& scenario) {
  for (const std::string_view key : kProblemKeys) {
    const std::optional<Value> given = file.find(key);
    if (given)
      given->fail(fmt::format("'{}' is for attention, and 'launch' runs kernels as they are", key));
  }
  const std::optional<Value> inject = file.find("inject");
  if (inject) inject->fail("'inject' changes plans of attention, and 'launch' has none");
  const Map map{file.require("launch"), Section::launch};
  LaunchSpec launch;
  read_module(map, scenario.path.parent_path(), launch);
  const std::optional<Value> budget = map.find("instruction_budget");
  launch.instruction_budget = static_cast<std::uint64_t>(
      budget ? budget->whole_number({1, kMaxInstructionBudget}) : kDefaultInstructionBudget);
  read_buffers(map, launch);
  for (const Value& entry : map.require("launches").list()) {
    launch.steps.push_back(read_step(entry, launch));
  }
  scenario.launch = std::move(launch);
  scenario.strategies = {StrategyKind::launch};
  scenario.data.modes = {DataMode::random};
}

void read_expected_values(const Map& expect, Scenario& scenario) {
  const std::optional<Value> value = expect.find("values");
  if (!value) return;
  if (!scenario.launch) value->fail("'values' is for scenarios with 'launch'");
  LaunchSpec& launch = *scenario.launch;
  for (const Value& entry : value->list()) {
    const Map map{entry, Section::expected_values};
    ExpectedValues expected;
    expected.buffer = find_buffer(map.require("buffer"), launch);
    const LaunchBuffer& buffer = launch.buffers[expected.buffer.value()];
    const std::optional<Value> first = map.find("first");
    if (first) expected.first = first->whole_number({0, buffer.elements});
    const Value values = map.require("values");
    expected.values = list_bytes(values, buffer.dtype);
    const auto count = static_cast<std::int64_t>(expected.values.size() / size_bytes(buffer.dtype));
    if (expected.first + count > buffer.elements) {
      values.fail(fmt::format("element {} is the last of 'values', and '{}' has {}",
                              expected.first + count - 1, buffer.name, buffer.elements));
    }
    launch.expected_values.push_back(std::move(expected));
  }
}

}  // namespace cpverify::scenario
