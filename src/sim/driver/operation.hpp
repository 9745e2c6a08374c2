#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "sim/driver/vector_clock.hpp"

namespace cpverify::sim {

/// What an operation does with a byte. Strong accesses (atomics, volatile, relaxed and stronger)
/// do not race with each other.
using Uses = std::uint8_t;
inline constexpr Uses kReads = 1;
inline constexpr Uses kWrites = 2;
inline constexpr Uses kStrongReads = 4;
inline constexpr Uses kStrongWrites = 8;

/// An instruction of a kernel that touches an allocation, and the bytes [begin, end) from the first
/// to the last that it touched.
struct AccessSite {
  std::string source_file;  ///< Empty without a line table.
  std::uint32_t source_line = 0;
  std::uint32_t ptx_line = 0;
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  Uses uses = 0;
};
using AccessSites = std::vector<AccessSite>;

/// A piece of work of a stream, as reports name it and as it is ordered among all others. What is
/// before it was decided when it was enqueued: by its stream, by events and by synchronisations.
struct Operation {
  std::string call;         ///< Entry name, API call or collective: Fault::kernel.
  std::string description;  ///< "kernel 'add' on stream 2 of device 0".
  std::uint32_t device = 0;
  std::uint32_t timeline = 0;  ///< Of its stream.
  std::uint64_t time = 0;      ///< Its place on it.
  VectorClock before;          ///< Its own place included.
  /// Of a kernel that has run under racecheck; otherwise empty.
  std::shared_ptr<AccessSites> sites = std::make_shared<AccessSites>();
};
using OperationRef = std::shared_ptr<const Operation>;

[[nodiscard]] inline bool is_before(const Operation& first, const Operation& second) noexcept {
  return second.before.at(first.timeline) >= first.time;
}

/// Bytes [begin, end) of global memory and what was done with every one of them.
struct Span {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  Uses uses = 0;
};
/// Ascending, disjoint.
using Footprint = std::vector<Span>;

}  // namespace cpverify::sim
