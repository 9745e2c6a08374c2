#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "cpverify/fault.hpp"

namespace cpverify::sim {

/// Faults of many launches, one per (kernel, instruction, kind, device) in the order of their first
/// occurrence; counts add up. Where there is no instruction, the allocation and what is said of it
/// tell faults apart.
class FaultLog {
 public:
  void add(const Fault& fault);
  /// Hands the faults over and begins anew.
  [[nodiscard]] std::vector<Fault> take();

 private:
  using Key =
      std::tuple<std::string, std::uint32_t, FaultKind, std::uint32_t, std::uint64_t, std::string>;

  std::vector<Fault> faults_;
  std::map<Key, std::size_t> index_;
};

}  // namespace cpverify::sim
