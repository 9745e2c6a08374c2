#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <vector>

#include "cpverify/observer.hpp"
#include "sim/driver/operation.hpp"

namespace cpverify::sim {

/// Which bytes of global memory a launch reads and writes: a bit per byte and use.
class FootprintObserver final : public Observer {
 public:
  [[nodiscard]] bool wants_accesses() const noexcept override { return true; }
  void on_access(const ExecutionPoint& point, const AccessEvent& event) noexcept override;
  [[nodiscard]] bool on_plain_access(const PlainAccessEvent& event) noexcept override;

  [[nodiscard]] Footprint footprint() const;
  /// In the order of the kernel's text.
  [[nodiscard]] AccessSites sites() const;

 private:
  /// By use: reads, writes, strong reads, strong writes.
  using Bits = std::array<std::vector<std::uint64_t>, 4>;

  /// What one instruction did in one allocation.
  struct Reach {
    std::uint64_t base = 0;
    AccessSite site;
  };

  void add_reach(const ExecutionPoint& point, const AccessEvent& event, std::uint64_t begin,
                 std::uint64_t end);
  [[nodiscard]] Bits& bits_of(std::uint64_t base);
  static void add_words(std::uint64_t base, const Bits& bits, Footprint& footprint);

  std::map<std::uint64_t, Bits> by_base_;
  std::uint64_t last_base_ = 0;
  Bits* last_ = nullptr;
  std::vector<std::vector<Reach>> reaches_;  ///< By instruction.
};

}  // namespace cpverify::sim
