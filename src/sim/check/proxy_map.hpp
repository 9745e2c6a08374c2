#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/check/race_order.hpp"

namespace cpverify::sim {

/// Ordinary writes of shared memory that no fence.proxy.async has followed: asynchronous reads
/// (bulk copies, wgmma) may miss them, barriers or not. Any fence behind a write counts, whoever
/// executes it: that may hide a defect, never invent one. Source: PTX ISA, "Proxy-preserved base
/// causality order".
class ProxyMap {
 public:
  explicit ProxyMap(std::uint64_t size_bytes)
      : labels_((size_bytes + kBlockBytes - 1) / kBlockBytes) {}

  void write(std::uint64_t offset, std::uint64_t size_bytes, const RaceLabel& label);
  /// What is before the fence is ordered by it.
  void fence(const RaceOrder& order);
  /// A barrier of all warps: what came before is before whatever comes.
  void synchronise() noexcept;
  void reset() noexcept;
  /// The last writer of one of these bytes that no fence has followed; null for none.
  [[nodiscard]] const RaceLabel* find(std::uint64_t offset,
                                      std::uint64_t size_bytes) const noexcept;

 private:
  static constexpr std::uint64_t kBlockBytes = 16;  ///< Unit of bulk copies.
  struct Entry {
    RaceLabel label{};
    bool is_open = false;
  };

  std::vector<Entry> labels_;
  std::vector<std::size_t> open_;  ///< Blocks that are open.
};

}  // namespace cpverify::sim
