#pragma once

#include <cstdint>

#include "gpu/driver_types.hpp"

namespace cpverify::sim {

struct Stream;

/// A capture: from cuStreamBeginCapture to cuStreamEndCapture, shared by all streams that joined.
struct Capture {
  gpu::CuGraph graph = nullptr;
  const Stream* origin = nullptr;
  gpu::CuCaptureMode mode = gpu::CuCaptureMode::global;
  std::uint64_t id = 0;
  bool is_invalid = false;
  bool has_ended = false;
};

}  // namespace cpverify::sim
