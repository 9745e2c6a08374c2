#pragma once

#include <cstdint>
#include <string>

#include "cpverify/fault.hpp"
#include "cpverify/observer.hpp"
#include "sim/isa/insn.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/machine/async_work.hpp"
#include "sim/machine/warp.hpp"

namespace cpverify::sim {

/// One lane of a bulk instruction.
struct BulkLane {
  Warp* warp = nullptr;
  const Insn* insn = nullptr;
  std::uint32_t lane = 0;

  template <class T>
  [[nodiscard]] T value(std::uint32_t row) const {
    return warp->row<const T>(row)[lane];
  }
};

/// Bytes that a copy reads or writes.
struct BulkRange {
  std::uint32_t row = 0;  ///< Register with the address.
  Space space = Space::shared;
  AccessKind kind = AccessKind::async_read;
  std::uint64_t size_bytes = 0;
  std::uint32_t align_bytes = 16;  ///< A power of two.
};

/// Finds the memory object and the offset in it; false when the range is not in one or misaligned,
/// after reporting it.
[[nodiscard]] bool find_range(const BulkLane& lane, const BulkRange& range, BulkCopy::Side& side,
                              std::uint64_t& offset);

/// An instruction with operands that it cannot have. Always false.
bool report_operands(const BulkLane& lane, const std::string& detail);

/// Sets the mbarrier of a copy from its address; false when it is none, after reporting it.
[[nodiscard]] bool find_counter(const BulkLane& lane, std::uint32_t row, BulkCopy& copy);

}  // namespace cpverify::sim
