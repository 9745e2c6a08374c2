#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cpverify/plan.hpp"
#include "gpu/driver_api.hpp"

namespace cpverify::run {

/// One allocation of a rank, by the plan's name for it.
struct NamedAllocation {
  std::string name;
  DType dtype = DType::u8;
  gpu::CuDevicePtr address = 0;  ///< 0 for an empty buffer, which is never allocated.
  std::size_t size_bytes = 0;
};

/// A rank's device: context, streams, loaded modules, persistent pools and the buffers of the
/// current step. Every member makes the rank's context current first.
class RankDevice {
 public:
  /// Throws EnvironmentError when the device cannot be opened.
  RankDevice(gpu::DriverApi& driver, std::uint32_t ordinal);
  ~RankDevice();
  RankDevice(const RankDevice&) = delete;
  RankDevice& operator=(const RankDevice&) = delete;
  RankDevice(RankDevice&&) = delete;
  RankDevice& operator=(RankDevice&&) = delete;

  /// The first stream, on which the uploads are.
  [[nodiscard]] gpu::CuStream stream() const noexcept { return stream_; }
  /// The streams that the operations name, from now on: each begins after the uploads.
  void begin_operations(const std::vector<Operation>& operations);
  /// Lets the operation's stream wait for what it is after, and returns the stream.
  [[nodiscard]] gpu::CuStream begin(const Operation& operation);
  /// The operation has been issued: others may be after it.
  void end(const Operation& operation, std::size_t index);

  /// A pool that outlives steps; the first plan that names it decides its size.
  void ensure_pool(const Buffer& buffer);
  /// Allocates every other buffer of a plan, in BufferId order, and releases the last step's.
  void begin_step(const std::vector<Buffer>& buffers);

  void upload(const NamedAllocation& target, const std::vector<std::byte>& bytes);
  void fill_bytes(const NamedAllocation& target, unsigned char value);
  /// Synchronises the first stream. success also when the buffer is empty.
  [[nodiscard]] gpu::CuResult download(const NamedAllocation& source,
                                       std::vector<std::byte>& bytes);
  /// All streams.
  [[nodiscard]] gpu::CuResult synchronize();

  [[nodiscard]] gpu::CuResult launch(const Launch& launch, gpu::CuStream stream,
                                     const std::string& kernel_directory);
  [[nodiscard]] gpu::CuResult fill(const Fill& fill, gpu::CuStream stream);
  [[nodiscard]] gpu::CuResult copy(const Copy& copy, gpu::CuStream stream);

  /// Gives a buffer's memory back; its address and name stay known.
  void free_buffer(BufferId buffer);
  [[nodiscard]] bool is_freed(BufferId buffer) const;

  [[nodiscard]] const NamedAllocation& allocation(BufferId buffer) const;
  [[nodiscard]] const NamedAllocation& pool(const std::string& name) const;
  [[nodiscard]] gpu::CuDevicePtr address(const BufferRef& place) const;
  /// The allocation that starts at an address; null when none does.
  [[nodiscard]] const NamedAllocation* find_allocation(std::uint64_t address) const;

 private:
  void make_current();
  void forget_events();
  NamedAllocation allocate(const Buffer& buffer);
  void release(NamedAllocation& allocation);
  gpu::CuFunction function(const Launch& launch, const std::string& kernel_directory);
  gpu::CuModule load_module(const std::string& name, const std::string& kernel_directory);

  gpu::DriverApi& driver_;
  gpu::CuDevice device_ = 0;
  gpu::CuContext context_ = nullptr;
  gpu::CuStream stream_ = nullptr;           ///< The first stream.
  std::vector<gpu::CuStream> more_streams_;  ///< Of operations with stream 1, 2, ...
  std::vector<gpu::CuEvent> events_;  ///< By operation: its end; empty while one stream is used.
  std::map<std::string, gpu::CuModule> modules_;
  std::map<std::string, NamedAllocation> pools_;
  std::vector<NamedAllocation> buffers_;  ///< By BufferId; a pool's entry is a copy of pools_'.
  std::vector<bool> is_owned_;            ///< By BufferId: false for pools and freed buffers.
};

}  // namespace cpverify::run
