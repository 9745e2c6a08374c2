#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "cpverify/fault.hpp"
#include "cpverify/observer.hpp"
#include "gpu/driver_api.hpp"
#include "sim/check/special_values.hpp"
#include "sim/driver/fault_log.hpp"
#include "sim/driver/sim_driver.hpp"
#include "sim/driver/streams.hpp"
#include "sim/machine/global_memory.hpp"

namespace cpverify::sim {

/// Does the work of streams on the machine, and keeps what its checkers see.
class Executor {
 public:
  /// `observers` see every launch, and must outlive the executor.
  Executor(GlobalMemory& memory, FaultLog& faults, std::vector<Observer*> observers,
           const SimOptions& options)
      : memory_{memory},
        faults_{faults},
        observers_{std::move(observers)},
        is_race_checked_{options.is_race_checked},
        is_nan_checked_{options.is_nan_checked} {}

  /// Work of a context with a sticky error is dropped. A fault of a kernel makes its error sticky.
  void execute(Context& context, Work& work);

  /// An API call is about to access memory: invalid_value, and a Fault that names the call, when a
  /// byte of the range is not in one live allocation.
  struct HostAccess {
    const char* call = "";
    gpu::CuDevice device = 0;
    FaultKind outside = FaultKind::out_of_bounds_read;
  };
  [[nodiscard]] gpu::CuResult check(const HostAccess& access, std::uint64_t address,
                                    std::size_t size_bytes);

 private:
  void run(Context& context, UploadWork& work);
  void run(Context& context, DownloadWork& work);
  void run(Context& context, CopyWork& work);
  void run(Context& context, FillWork& work);
  void run(Context& context, LaunchWork& work);
  void run(Context& context, WaitWork& work);

  GlobalMemory& memory_;
  FaultLog& faults_;
  std::vector<Observer*> observers_;
  bool is_race_checked_;
  bool is_nan_checked_;
  SpecialValueMemory special_values_;
};

}  // namespace cpverify::sim
