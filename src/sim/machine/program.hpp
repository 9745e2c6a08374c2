#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "sim/isa/kernel_info.hpp"
#include "sim/machine/global_memory.hpp"
#include "sim/machine/machine_code.hpp"

namespace cpverify::sim {

struct Kernel;
struct ModuleAst;

/// Allocations that live as long as this object.
class DeviceVariables {
 public:
  explicit DeviceVariables(GlobalMemory& memory) : memory_{&memory} {}
  ~DeviceVariables() {
    for (const std::uint64_t address : addresses_) (void)memory_->free(address);
  }
  DeviceVariables(const DeviceVariables&) = delete;
  DeviceVariables& operator=(const DeviceVariables&) = delete;
  DeviceVariables(DeviceVariables&&) = delete;
  DeviceVariables& operator=(DeviceVariables&&) = delete;

  std::uint64_t add(std::uint32_t device, std::uint64_t size_bytes) {
    addresses_.push_back(memory_->allocate(device, size_bytes));
    return addresses_.back();
  }

 private:
  GlobalMemory* memory_;
  std::vector<std::uint64_t> addresses_;
};

/// A PTX module loaded on one device: its variables have addresses and its code is decoded.
class Program {
 public:
  /// Parses and decodes `ptx`; allocates and initialises its .global and .const variables. Throws
  /// InputError `file:line:column` when the text is not PTX or asks for what is not supported.
  /// `memory` must outlive the program.
  Program(std::string_view ptx, const std::string& file, GlobalMemory& memory, std::uint32_t device,
          VectorWidth width = widest_vectors());
  /// The same for a module that has been parsed, of which nothing is kept.
  Program(const ModuleAst& module, GlobalMemory& memory, std::uint32_t device, VectorWidth width);
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
  DeviceVariables variables_;
  std::uint32_t device_;
  std::vector<std::unique_ptr<Kernel>> kernels_;
};

[[nodiscard]] const KernelInfo& kernel_info(const Kernel& kernel) noexcept;

}  // namespace cpverify::sim
