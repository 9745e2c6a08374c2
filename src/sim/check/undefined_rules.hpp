#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "sim/machine/flow.hpp"
#include "sim/machine/register_shadow.hpp"
#include "sim/machine/warp.hpp"

namespace cpverify::sim {

inline constexpr std::uint32_t kRegisterBytesMax = 8;

/// Which bytes of the targets of one instruction become undefined, in which lanes, and from where.
class UndefinedResult {
 public:
  void reset(const FlowStep& step);
  /// Byte `part` of target number `target` takes over what is undefined in byte `from` of `source`.
  void take(std::size_t target, std::uint32_t part, const FlowOperand& source, std::uint32_t from,
            std::uint32_t lanes = kFullMask);
  void mark(std::size_t target, std::uint32_t part, std::size_t lane, std::uint32_t origin);
  /// Every byte of every target takes over every byte of `source`.
  void take_all(const FlowOperand& source, std::uint32_t lanes = kFullMask);

  [[nodiscard]] std::size_t target_count() const noexcept { return targets_.size(); }
  [[nodiscard]] const FlowOperand& target(std::size_t i) const noexcept { return *targets_[i]; }
  [[nodiscard]] std::uint32_t mask(std::size_t target, std::uint32_t part) const noexcept {
    return masks_[target * kRegisterBytesMax + part];
  }
  [[nodiscard]] std::uint32_t origin(std::size_t target, std::uint32_t part,
                                     std::size_t lane) const noexcept {
    return origins_[(target * kRegisterBytesMax + part) * kLanes + lane];
  }

 private:
  const RegisterShadow* shadow_ = nullptr;
  std::vector<const FlowOperand*> targets_;
  std::vector<std::uint32_t> masks_;    ///< [target][byte]
  std::vector<std::uint32_t> origins_;  ///< [target][byte][lane]
};

/// Works out the result of an instruction that does not touch memory, before it executes. A byte is
/// undefined when it depends on an undefined one; a source that decides alone (zero in `and`, the
/// chosen side of `selp`) leaves the other out.
void apply_undefined_rules(const FlowStep& step, UndefinedResult& result);

}  // namespace cpverify::sim
