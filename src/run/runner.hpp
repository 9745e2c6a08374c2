#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "cpverify/data.hpp"
#include "cpverify/finding.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/step.hpp"
#include "gpu/lane.hpp"

namespace cpverify::run {

/// What one rank holds after one step, as raw bytes in the buffers' own dtypes.
struct RankCapture {
  std::map<std::string, std::vector<std::byte>> outputs;  ///< Buffers of role output, by name.
  std::vector<std::byte> k_pool;  ///< [num_blocks, block_size, num_heads_kv of the rank, head_dim]
  std::vector<std::byte> v_pool;
};

struct StepCapture {
  bool is_complete = false;  ///< False: a fault ended the step; nothing of it can be compared.
  std::vector<RankCapture> ranks;
};

struct RunCapture {
  std::vector<RankCapture> initial;  ///< Pools before step 0 (outputs empty).
  std::vector<StepCapture> steps;    ///< Up to and including the first that is not complete.
  std::vector<Finding> findings;     ///< memcheck, initcheck and collectives, in the plan's terms.
  std::uint64_t digest = 0;          ///< FNV-1a over all captured bytes and faults.
  bool has_checkers = true;          ///< False: the lane has none; no finding means nothing.
};

struct RunOptions {
  std::string kernel_directory;  ///< Holds <module>.ptx.
  DataMode mode = DataMode::random;
};

/// Executes the plans of all steps on a lane, in order, on persistent KV pools.
///
/// Fills before step 0: every pool byte gets a canary pattern (mode poison: NaN of the dtype), then
/// the problem's cached tokens are written at their slots. In mode poison pad rows of inputs are
/// NaN and fresh workspace and output buffers are filled with NaN; otherwise pad rows are zero and
/// fresh buffers stay unwritten. All ranks issue operation i before any issues i + 1; collectives
/// of one index are issued inside one NCCL group. Throws EnvironmentError when a kernel file is
/// missing or the lane fails for a reason of its own, InputError when a module does not load.
[[nodiscard]] RunCapture run_plans(const Problem& problem, const std::vector<RequestData>& data,
                                   const std::vector<Plan>& plans, gpu::Lane& lane,
                                   const RunOptions& options);

}  // namespace cpverify::run
