#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cpverify/fault.hpp"
#include "cpverify/observer.hpp"
#include "sim/check/undefined_rules.hpp"
#include "sim/machine/checked_bytes.hpp"
#include "sim/machine/flow.hpp"
#include "sim/machine/warp.hpp"

namespace cpverify::sim {

struct LaunchState;

/// Follows bytes that nobody has written from their load (or from a register that was never
/// written) through registers, shared and local memory to where something depends on them: an
/// address, a guard that decides what happens, an operand of an atomic, of a matrix product or of
/// an instruction between lanes, or a store to global memory. That is an uninitialised read, of the
/// place it came from. Made for one launch; a warp is followed only while it holds such bytes,
/// other than in registers that it has not read yet.
class UndefinedFlow final : public FlowChecker {
 public:
  /// `launch` must outlive the checker.
  explicit UndefinedFlow(LaunchState& launch) : launch_{&launch} {}

  void begin_cta(Cta& cta) override;
  [[nodiscard]] bool is_following(const Warp& warp) const noexcept override {
    return warp.wants_undefined || warp.undefined.is_live();
  }
  void before(const FlowStep& step) override;
  void after(const FlowStep& step) override;

 private:
  /// Which load undefined bytes come from. Its number in origins_, counted from 1, is what
  /// registers and places refer to; other numbers are those of RegisterShadow.
  struct Origin {
    std::uint32_t instruction = 0;
    MemorySpace space = MemorySpace::registers;
    std::uint32_t size_bytes = 0;
    std::uint64_t address = 0;
    std::uint64_t allocation = 0;
  };
  using Place = std::pair<const CheckedBytes*, std::uint64_t>;

  void make_room(Warp& warp) const;
  void forget_places(const CheckedBytes& bytes);
  [[nodiscard]] std::uint32_t add_origin(const Origin& origin);
  [[nodiscard]] std::uint32_t load_origin(const FlowStep& step, const TracedAccess& traced,
                                          std::size_t lane, std::uint64_t offset);
  void check_operand(const FlowStep& step, const FlowOperand& operand);
  [[nodiscard]] std::string_view use_of(const FlowStep& step, const FlowOperand& operand) const;
  void load(const FlowStep& step);
  void load_lane(const FlowStep& step, const TracedAccess& traced, std::size_t lane);
  void store(const FlowStep& step, const TracedAccess& traced);
  void write_targets(const FlowStep& step);
  void report(const FlowStep& step, std::uint32_t lanes, std::uint32_t origin,
              std::string_view use);

  LaunchState* launch_;
  std::vector<Origin> origins_;
  std::map<std::pair<std::uint32_t, std::uint64_t>, std::uint32_t> origin_numbers_;
  std::map<Place, std::uint32_t> places_;  ///< Stored undefined bytes of shared and local memory.
  UndefinedResult result_;
};

}  // namespace cpverify::sim
