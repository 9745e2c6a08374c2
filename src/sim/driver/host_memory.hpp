#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "sim/driver/fault_log.hpp"
#include "sim/driver/operation.hpp"
#include "sim/driver/work.hpp"

namespace cpverify::sim {

struct Context;

/// Page-locked host memory: of cuMemHostAlloc or cuMemHostRegister.
struct PinnedRange {
  std::byte* begin = nullptr;
  std::size_t size_bytes = 0;
  bool is_registered = false;
  unsigned flags = 0;
  std::uint64_t address = 0;  ///< On devices; 0 for registered memory.
  std::uint32_t number = 0;   ///< In order of creation, from 1: what reports call it.
  const Context* context = nullptr;
};

/// Pinned memory, and the races of the host with asynchronous copies from and to it. Accesses of
/// the host are not visible; what is seen is that bytes have changed. A source is compared at the
/// end of its copy with what it was at the call; a target is filled with a pattern at the call,
/// which must still be there when the copy writes it. A host that reads a target too early gets the
/// pattern, which is not reported.
class HostMemory {
 public:
  explicit HostMemory(FaultLog& faults) : faults_{faults} {}

  /// False when a byte of it is pinned already. Sets the number.
  [[nodiscard]] bool add(PinnedRange range);
  void remove(const PinnedRange& range) { ranges_.erase(range.begin); }
  template <class Predicate>
  void remove_if(Predicate predicate) {
    std::erase_if(ranges_, [&](const auto& entry) { return predicate(entry.second); });
  }
  /// The range that holds all of these bytes; null for pageable memory.
  [[nodiscard]] const PinnedRange* find(const void* pointer, std::size_t size_bytes) const noexcept;
  /// The range that holds an address of the devices.
  [[nodiscard]] const PinnedRange* find_address(std::uint64_t address) const noexcept;

  /// Begins to watch a copy; its operation is set when it is enqueued.
  [[nodiscard]] std::shared_ptr<PendingCopy> begin_upload(const std::byte* source,
                                                          std::size_t size_bytes);
  [[nodiscard]] std::shared_ptr<PendingCopy> begin_download(std::byte* target,
                                                            std::size_t size_bytes);
  [[nodiscard]] std::shared_ptr<const bool> begin_host_function();

  /// The copy is about to move its bytes: a fault when they have changed.
  void check(const PendingCopy& copy);
  /// `write` of host memory by `operation` is right when it comes before a copy that reads it.
  void write_as(const Operation& operation, const std::function<void()>& write);

 private:
  void forget_finished();

  FaultLog& faults_;
  std::map<std::byte*, PinnedRange, std::less<>> ranges_;
  std::uint32_t count_ = 0;
  std::vector<std::weak_ptr<PendingCopy>> copies_;
  std::vector<std::weak_ptr<const bool>> functions_;
};

}  // namespace cpverify::sim
