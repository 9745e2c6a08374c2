#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cpverify/finding.hpp"
#include "cpverify/launch.hpp"
#include "gpu/lane.hpp"

namespace cpverify::run {

struct LaunchCapture {
  bool is_complete = false;  ///< False: a fault or a refused launch ended the run.
  std::uint64_t operations = 0;
  /// By BufferId, in the buffers' types; empty when not complete, and for freed buffers.
  std::vector<std::vector<std::byte>> buffers;
  std::vector<Finding> findings;  ///< `step` is the index into LaunchSpec::steps.
  std::uint64_t digest = 0;       ///< FNV-1a over all captured bytes and findings.
  bool has_checkers = true;       ///< False: the lane has none; no finding means nothing.
};

struct LaunchRunOptions {
  std::string kernel_directory;  ///< Holds <module>.ptx; not used when the spec names a file.
  std::uint64_t seed = 0;        ///< Of buffers with random content.
};

/// Runs the launches on device 0, each to its end before the next begins. Throws as run_plans does.
[[nodiscard]] LaunchCapture run_launches(const LaunchSpec& spec, gpu::Lane& lane,
                                         const LaunchRunOptions& options);

}  // namespace cpverify::run
