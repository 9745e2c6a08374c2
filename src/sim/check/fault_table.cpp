#include "sim/check/fault_table.hpp"

#include <bit>
#include <cstdint>
#include <string>
#include <utility>

#include "cpverify/fault.hpp"
#include "cpverify/observer.hpp"

namespace cpverify::sim {

Fault fault_at(const ExecutionPoint& point, std::uint32_t lane) {
  const std::uint32_t thread = point.warp * 32 + lane;
  Fault fault;
  fault.device = point.device;
  fault.kernel = point.kernel;
  fault.source_file = point.source_file;
  fault.source_line = point.source_line;
  fault.ptx_line = point.ptx_line;
  fault.cta = point.cta;
  fault.thread = {thread % point.block[0], thread / point.block[0] % point.block[1],
                  thread / point.block[0] / point.block[1]};
  return fault;
}

void FaultTable::add(const ExecutionPoint& point, const ViolationEvent& event) {
  const auto lanes = static_cast<std::uint64_t>(std::popcount(event.lanes));
  const auto [place, is_new] =
      places_.try_emplace(std::pair{point.instruction, event.kind}, faults_.size());
  if (!is_new) {
    faults_[place->second].count += lanes;
    return;
  }
  Fault fault = fault_at(point, static_cast<std::uint32_t>(std::countr_zero(event.lanes)));
  fault.kind = event.kind;
  fault.space = event.space;
  fault.address = event.address;
  fault.size_bytes = event.size_bytes;
  fault.allocation = event.allocation;
  fault.allocation_bytes = event.allocation_bytes;
  fault.count = lanes;
  fault.detail = event.detail;
  faults_.push_back(std::move(fault));
}

}  // namespace cpverify::sim
