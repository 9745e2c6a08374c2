#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "sim/machine/global_memory.hpp"

namespace cpverify::sim {

/// Text of a probe kernel.
inline std::string read_ptx(const std::string& name) {
  std::ifstream file{std::string{CPVERIFY_SOURCE_DIR} + "/tests/data/ptx/" + name};
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

/// Device memory that a benchmark fills, and the parameters of its kernel in their order.
class KernelInputs {
 public:
  /// Address of `count` values that are all the same.
  template <class T>
  std::uint64_t fill(std::size_t count, T value) {
    const std::uint64_t address = memory_.allocate(0, count * sizeof(T));
    (void)memory_.fill(address, std::as_bytes(std::span{&value, 1}), count * sizeof(T));
    return address;
  }
  template <class T>
  std::uint64_t upload(const std::vector<T>& values) {
    const std::uint64_t address = memory_.allocate(0, values.size() * sizeof(T));
    (void)memory_.write(address, std::as_bytes(std::span{values}));
    return address;
  }
  /// The next parameter, at the next multiple of its size.
  template <class T>
  void append(T value) {
    parameters_.resize((parameters_.size() + sizeof value - 1) / sizeof value * sizeof value);
    parameters_.resize(parameters_.size() + sizeof value);
    std::memcpy(parameters_.data() + parameters_.size() - sizeof value, &value, sizeof value);
  }

  GlobalMemory& memory() noexcept { return memory_; }
  [[nodiscard]] const std::vector<std::byte>& parameters() const noexcept { return parameters_; }

 private:
  GlobalMemory memory_;
  std::vector<std::byte> parameters_;
};

}  // namespace cpverify::sim
