#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "cpverify/fault.hpp"
#include "cpverify/observer.hpp"
#include "gpu/driver_types.hpp"
#include "sim/check/special_values.hpp"
#include "sim/driver/fault_log.hpp"
#include "sim/driver/host_memory.hpp"
#include "sim/driver/operation.hpp"
#include "sim/driver/sim_driver.hpp"
#include "sim/driver/stream_races.hpp"
#include "sim/driver/streams.hpp"
#include "sim/driver/work.hpp"
#include "sim/machine/global_memory.hpp"

namespace cpverify::sim {

/// Does the work of streams on the machine, and keeps what its checkers see.
class Executor {
 public:
  /// Where the work takes effect, and who hears of faults. All outlive the executor.
  struct Parts {
    GlobalMemory& memory;
    HostMemory& host;
    FaultLog& faults;
  };
  /// `observers` see every launch, and must outlive the executor.
  Executor(const Parts& parts, std::vector<Observer*> observers, const SimOptions& options)
      : memory_{parts.memory},
        host_{parts.host},
        faults_{parts.faults},
        races_{parts.faults, parts.memory},
        observers_{std::move(observers)},
        is_race_checked_{options.is_race_checked},
        is_nan_checked_{options.is_nan_checked} {}

  /// Work of a context with a sticky error is dropped. A fault of a kernel, or of a copy whose
  /// memory is gone, makes its error sticky.
  void execute(Context& context, WorkItem& item);
  [[nodiscard]] bool is_in_host_function() const noexcept { return is_in_host_function_; }

  /// An API call is about to access memory: invalid_value, and a Fault that names the call, when a
  /// byte of the range is not in one live allocation.
  struct HostAccess {
    std::string call;
    gpu::CuDevice device = 0;
    FaultKind outside = FaultKind::out_of_bounds_read;
    std::string who = "a host call";  ///< Begins the fault's detail.
  };
  [[nodiscard]] gpu::CuResult check(const HostAccess& access, std::uint64_t address,
                                    std::size_t size_bytes);
  /// Memory was freed: what touched it is of no interest any more.
  void forget(std::uint64_t address, std::size_t size_bytes) { races_.forget(address, size_bytes); }

 private:
  using Problem = std::optional<MemoryProblem>;
  struct Piece {
    Context& context;
    OperationRef operation;
  };

  void run(const Piece& piece, UploadWork& work);
  void run(const Piece& piece, DownloadWork& work);
  void run(const Piece& piece, CopyWork& work);
  void run(const Piece& piece, FillWork& work);
  void run(const Piece& piece, LaunchWork& work);
  void run(const Piece& piece, WaitWork& work);
  void run(const Piece& piece, RecordWork& work);
  void run(const Piece& piece, HostWork& work);
  void run(const Piece& piece, AllocateWork& work);
  void run(const Piece& piece, FreeWork& work);

  /// A problem other than unwritten bytes is a fault and sticky; otherwise the bytes were touched.
  void finish(const Piece& piece, const Problem& problem, const Footprint& footprint);
  void fail(const Piece& piece, const MemoryProblem& problem);

  GlobalMemory& memory_;
  HostMemory& host_;
  FaultLog& faults_;
  StreamRaces races_;
  std::vector<Observer*> observers_;
  bool is_race_checked_;
  bool is_nan_checked_;
  SpecialValueMemory special_values_;
  bool is_in_host_function_ = false;
  std::uint64_t time_ns_ = 0;  ///< Simulated: one piece of work after the other.
};

}  // namespace cpverify::sim
