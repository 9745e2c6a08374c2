#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "sim/driver/fault_log.hpp"
#include "sim/driver/operation.hpp"
#include "sim/machine/global_memory.hpp"

namespace cpverify::sim {

/// Finds operations that touch one byte, at least one of them to write it, and that no stream,
/// event, graph or synchronisation orders, in whatever order they ran.
///
/// Remembers for each byte the operations that touched it and are not covered by a later one, as
/// intervals: FastTrack with sets of bytes for variables. Source: Flanagan, Freund 2009,
/// "FastTrack: efficient and precise dynamic race detection".
class StreamRaces {
 public:
  StreamRaces(FaultLog& faults, const GlobalMemory& memory) : faults_{faults}, memory_{memory} {}

  /// `operation` has run and touched these bytes. One fault per earlier operation and allocation.
  void record(const OperationRef& operation, const Footprint& footprint);
  /// The bytes are gone; addresses are not used twice.
  void forget(std::uint64_t address, std::uint64_t size_bytes);

 private:
  struct Access {
    OperationRef operation;
    Uses uses = 0;
  };
  struct Interval {
    std::uint64_t end = 0;
    std::vector<Access> accesses;
  };
  using Intervals = std::map<std::uint64_t, Interval>;  ///< By first byte; disjoint.
  /// Bytes of one allocation over which two operations race.
  struct Race {
    OperationRef earlier;
    const Allocation* allocation = nullptr;
    std::uint64_t first = 0;
    std::uint64_t bytes = 0;
    Uses earlier_uses = 0;
    Uses later_uses = 0;
  };

  /// Lets an interval that holds `address` end before it.
  void split(std::uint64_t address);
  /// Joins neighbours with the same history; returns the interval behind.
  Intervals::iterator merge_left(Intervals::iterator right);
  void touch(const OperationRef& operation, const Span& span);
  /// Races of the interval, which is then the operation's too.
  void add(const OperationRef& operation, const Span& part, Interval& interval);
  void note(const Access& earlier, const Span& part);
  void report(const Operation& operation);

  FaultLog& faults_;
  const GlobalMemory& memory_;
  Intervals intervals_;
  std::vector<Race> races_;  ///< Of the operation being recorded.
};

}  // namespace cpverify::sim
