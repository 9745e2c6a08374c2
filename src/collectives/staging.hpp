#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "collectives/reduction.hpp"
#include "cpverify/reduction.hpp"
#include "gpu/driver_api.hpp"

namespace cpverify::collectives {

/// A reduction on its way: pinned host memory for the inputs of all ranks and the output, from when
/// it is enqueued until the last rank has its result.
struct StagedReduction {
  ReductionSpec spec;
  Reduction reduction;
  std::byte* memory = nullptr;
  std::size_t capacity_bytes = 0;
  std::vector<const std::byte*> inputs;
  std::byte* output = nullptr;
  std::size_t results_left = 0;  ///< 0: may be used again.

  /// Host functions of the driver; `data` is a StagedReduction.
  static void run(void* data);
  static void end_result(void* data);
};

/// The reductions of a clique. Their memory is used again, since freeing it would wait for all
/// work.
class Staging {
 public:
  explicit Staging(gpu::DriverApi& driver) : driver_{driver} {}
  ~Staging();
  Staging(const Staging&) = delete;
  Staging& operator=(const Staging&) = delete;
  Staging(Staging&&) = delete;
  Staging& operator=(Staging&&) = delete;

  /// Sets `staged` to one with room for the inputs of `ranks` and the output, whose result goes to
  /// `results` ranks. The driver's answer when there is no memory.
  [[nodiscard]] gpu::CuResult take(const Reduction& reduction, std::size_t ranks,
                                   std::size_t results, StagedReduction*& staged);

 private:
  gpu::DriverApi& driver_;
  std::vector<std::unique_ptr<StagedReduction>> all_;
};

}  // namespace cpverify::collectives
