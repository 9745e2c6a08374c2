#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <variant>
#include <vector>

#include "gpu/driver_types.hpp"
#include "sim/driver/operation.hpp"
#include "sim/machine/launch.hpp"
#include "sim/machine/program.hpp"

namespace cpverify::sim {

/// A point in the work of a stream: reached when everything enqueued before it has run. Outlives
/// the stream.
struct Marker {
  std::shared_ptr<const std::uint64_t> executed;  ///< Null: never set, which counts as reached, as
                                                  ///< an event that was never recorded.
  std::uint64_t position = 0;
  VectorClock before;  ///< What has happened when it is reached.

  [[nodiscard]] bool is_reached() const noexcept {
    return executed == nullptr || *executed >= position;
  }
};

/// A copy from or to pinned host memory, from its call to its end.
struct PendingCopy {
  std::byte* begin = nullptr;
  std::size_t size_bytes = 0;
  bool is_upload = false;
  /// Upload: the source at the call. Download: the poison that the target was filled with, empty
  /// when somebody else may still need what was there.
  std::vector<std::byte> expected;
  OperationRef operation;
};

struct UploadWork {
  std::uint64_t target = 0;
  std::vector<std::byte> bytes;       ///< Captured by the call, as of pageable memory.
  const std::byte* source = nullptr;  ///< Unless null: read when the copy runs.
  std::size_t size_bytes = 0;
  std::shared_ptr<PendingCopy> pending;  ///< Of a pinned source.
};
struct DownloadWork {
  std::byte* target = nullptr;
  std::uint64_t source = 0;
  std::size_t size_bytes = 0;
  std::shared_ptr<PendingCopy> pending;  ///< Of a pinned target.
};
struct CopyWork {
  std::uint64_t target = 0;
  std::uint64_t source = 0;
  std::size_t size_bytes = 0;
};
struct FillWork {
  std::uint64_t target = 0;
  std::vector<std::byte> pattern;
  std::size_t size_bytes = 0;
};
struct LaunchWork {
  const Kernel* kernel = nullptr;
  LaunchRequest request;              ///< Its parameters are set to the bytes below when it runs.
  std::vector<std::byte> parameters;  ///< As the entry lays them out.
};
struct WaitWork {
  Marker marker;
};
/// When an event was reached, in nanoseconds of simulated time.
struct RecordWork {
  std::shared_ptr<std::uint64_t> time_ns;
};
struct HostWork {
  gpu::CuHostFunction function = nullptr;
  void* data = nullptr;
  std::shared_ptr<const bool> token;  ///< Lives until the function has run or been dropped.
};
/// Memory that comes and goes in stream order.
struct AllocateWork {
  std::uint64_t address = 0;
  std::size_t size_bytes = 0;
};
struct FreeWork {
  std::uint64_t address = 0;
  std::size_t size_bytes = 0;
};
using Work = std::variant<UploadWork, DownloadWork, CopyWork, FillWork, LaunchWork, WaitWork,
                          RecordWork, HostWork, AllocateWork, FreeWork>;

/// How reports call a piece of work.
struct WorkName {
  std::string call;         ///< Entry name, API call or collective.
  std::string description;  ///< "kernel 'add'", "ncclAllGather of rank 1".
};

struct WorkItem {
  Work body;
  OperationRef operation;  ///< Null for waits and records.
};

}  // namespace cpverify::sim
