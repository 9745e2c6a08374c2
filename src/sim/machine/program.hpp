#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/isa/kernel_info.hpp"
#include "sim/machine/global_memory.hpp"

namespace cpverify::sim {

struct Kernel;

/// A PTX module loaded on one device: its variables have addresses and its code is decoded.
class Program {
 public:
  /// Parses and decodes `ptx`; allocates and initialises its .global and .const variables. Throws
  /// InputError `file:line:column` when the text is not PTX or asks for what is not supported.
  /// `memory` must outlive the program.
  Program(std::string_view ptx, const std::string& file, GlobalMemory& memory,
          std::uint32_t device);
  ~Program();  ///< Frees the variables.
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;
  Program(Program&&) = delete;
  Program& operator=(Program&&) = delete;

  [[nodiscard]] std::uint32_t device() const noexcept { return device_; }
  /// Null when there is no such .entry. Valid as long as the program.
  [[nodiscard]] const Kernel* find(std::string_view name) const noexcept;
  [[nodiscard]] const std::vector<std::unique_ptr<Kernel>>& kernels() const noexcept {
    return kernels_;
  }

 private:
  GlobalMemory* memory_;
  std::uint32_t device_;
  std::vector<std::uint64_t> variables_;
  std::vector<std::unique_ptr<Kernel>> kernels_;
};

[[nodiscard]] const KernelInfo& kernel_info(const Kernel& kernel) noexcept;

}  // namespace cpverify::sim
