#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>

#include "sim/check/special_values.hpp"
#include "sim/machine/global_memory.hpp"
#include "sim/machine/launch.hpp"
#include "sim/machine/machine_code.hpp"
#include "sim/machine/program.hpp"

namespace cpverify::sim {

inline std::string read_ptx(const std::string& name) {
  std::ifstream file{std::string{CPVERIFY_SOURCE_DIR} + "/tests/data/ptx/" + name};
  EXPECT_TRUE(file.good()) << name;
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Parameters of a launch, laid out as a C struct of the same types would be.
class Parameters {
 public:
  template <class... Values>
  explicit Parameters(Values... values) {
    (append(values), ...);
  }
  [[nodiscard]] std::span<const std::byte> bytes() const { return bytes_; }

 private:
  template <class T>
  void append(T value) {
    static_assert(std::is_trivially_copyable_v<T>);
    bytes_.resize((bytes_.size() + sizeof value - 1) / sizeof value * sizeof value);
    bytes_.resize(bytes_.size() + sizeof value);
    std::memcpy(bytes_.data() + bytes_.size() - sizeof value, &value, sizeof value);
  }
  std::vector<std::byte> bytes_;
};

/// One device, with one program at a time.
class SimulatedDevice {
 public:
  explicit SimulatedDevice(VectorWidth width = widest_vectors()) : width_{width} {}

  void load(std::string_view ptx) {
    program_ = std::make_unique<Program>(ptx, "test.ptx", memory_, 0, width_);
  }

  [[nodiscard]] std::uint64_t allocate(std::size_t size_bytes) {
    return memory_.allocate(0, size_bytes);
  }
  template <class T>
  [[nodiscard]] std::uint64_t upload(const std::vector<T>& values) {
    const std::uint64_t address = allocate(values.size() * sizeof(T));
    EXPECT_FALSE(memory_.write(address, std::as_bytes(std::span{values})).has_value());
    return address;
  }
  /// Unwritten bytes come as 0xFF.
  template <class T>
  [[nodiscard]] std::vector<T> download(std::uint64_t address, std::size_t count) {
    std::vector<T> values(count);
    (void)memory_.read(std::as_writable_bytes(std::span{values}), address);
    return values;
  }

  LaunchResult run(std::string_view entry, const LaunchRequest& shape, const Parameters& parameters,
                   std::span<Observer* const> observers = {}) {
    const Kernel* const kernel = program_->find(entry);
    if (kernel == nullptr) {
      ADD_FAILURE() << "no entry " << entry;
      return {};
    }
    LaunchRequest request = shape;
    request.parameters = parameters.bytes();
    // Who asks for one check that costs time gets all.
    if (request.is_race_checked) request.special_values = &special_values_;
    return launch(memory_, *kernel, request, observers);
  }

  [[nodiscard]] GlobalMemory& memory() { return memory_; }
  [[nodiscard]] const Program& program() const { return *program_; }

 private:
  VectorWidth width_;
  GlobalMemory memory_;
  SpecialValueMemory special_values_;
  std::unique_ptr<Program> program_;
};

inline std::string describe(const std::vector<Fault>& faults) {
  std::string text;
  for (const Fault& fault : faults) {
    text +=
        fmt::format("kind {} space {} at {}:{} (ptx line {}) address {:#x} count {} {}\n",
                    static_cast<int>(fault.kind), static_cast<int>(fault.space), fault.source_file,
                    fault.source_line, fault.ptx_line, fault.address, fault.count, fault.detail);
  }
  return text;
}

inline LaunchRequest shape(std::array<std::uint32_t, 3> grid, std::array<std::uint32_t, 3> block,
                           std::uint32_t shared_bytes = 0) {
  LaunchRequest request;
  request.grid = grid;
  request.block = block;
  request.shared_bytes = shared_bytes;
  request.shared_bytes_optin = shared_bytes;
  return request;
}

inline LaunchRequest race_checked(std::array<std::uint32_t, 3> grid,
                                  std::array<std::uint32_t, 3> block) {
  LaunchRequest request = shape(grid, block);
  request.is_race_checked = true;
  return request;
}

}  // namespace cpverify::sim
