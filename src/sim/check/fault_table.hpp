#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "cpverify/fault.hpp"
#include "cpverify/observer.hpp"

namespace cpverify::sim {

/// A fault of a lane of the warp at `point`: who and where, not what.
[[nodiscard]] Fault fault_at(const ExecutionPoint& point, std::uint32_t lane);

/// Faults of one launch, one per (instruction, kind) in order of appearance; later ones of the same
/// pair only count.
class FaultTable {
 public:
  void add(const ExecutionPoint& point, const ViolationEvent& event);
  [[nodiscard]] std::vector<Fault> take() { return std::move(faults_); }

 private:
  std::vector<Fault> faults_;
  std::map<std::pair<std::uint32_t, FaultKind>, std::size_t> places_;
};

}  // namespace cpverify::sim
