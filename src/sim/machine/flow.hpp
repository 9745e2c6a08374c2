#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpverify/fault.hpp"
#include "cpverify/observer.hpp"
#include "sim/isa/code.hpp"
#include "sim/isa/insn.hpp"
#include "sim/machine/access.hpp"
#include "sim/machine/dataflow.hpp"
#include "sim/machine/warp.hpp"

namespace cpverify::sim {

struct GroupProduct;

/// Where lanes of one memory instruction went. Lane i's bytes are access.bytes at
/// access.offsets[i].
struct TracedAccess {
  AccessKind kind = AccessKind::read;
  MemorySpace space = MemorySpace::global;
  std::uint32_t size_bytes = 0;  ///< Of a lane.
  std::uint64_t allocation = 0;  ///< Global memory: its base.
  Access access;
  std::array<std::uint64_t, kLanes> addresses{};  ///< Global address, or offset in the space.
};

/// One instruction that a warp executes.
struct FlowStep {
  Warp* warp = nullptr;
  const Insn* insn = nullptr;
  std::uint32_t lanes = 0;  ///< That execute it; may be empty.
  const Dataflow* flow = nullptr;
  std::span<const TracedAccess> accesses;  ///< Afterwards: what it did in memory.
};

/// Follows data through registers and memory. The machine calls it around every instruction of a
/// warp that is followed; others run at full speed.
class FlowChecker {
 public:
  FlowChecker() = default;
  FlowChecker(const FlowChecker&) = delete;
  FlowChecker& operator=(const FlowChecker&) = delete;
  FlowChecker(FlowChecker&&) = delete;
  FlowChecker& operator=(FlowChecker&&) = delete;
  virtual ~FlowChecker() = default;

  /// A CTA takes the place of another.
  virtual void begin_cta(Cta& cta) = 0;
  [[nodiscard]] virtual bool is_following(const Warp& warp) const noexcept = 0;
  virtual void before(const FlowStep& step) = 0;
  /// Not called when the instruction has stopped the launch.
  virtual void after(const FlowStep& step) = 0;
  /// Around a wgmma of the four warps that begin with `first`, when it is computed.
  virtual void before_product(const Cta& /*cta*/, std::size_t /*first*/,
                              const GroupProduct& /*product*/) {}
  virtual void after_product(Cta& /*cta*/, std::size_t /*first*/, const GroupProduct& /*product*/) {
  }
};

/// The checkers of a launch. Which of them follow a warp changes while it runs.
struct FlowCheckers {
  FlowChecker* undefined = nullptr;  ///< Never null in a launch.
  FlowChecker* special_values = nullptr;
};

/// Executes one instruction under the eyes of the checkers that follow the warp; the same as its
/// handler otherwise.
[[nodiscard]] const Insn* step_followed(Warp& warp, const Insn* insn, std::uint32_t mask);

/// In the place of the handlers of instructions that touch registers which may never have been
/// written. While none of them is read so, the warp need not be followed.
void watch_first_uses(Code& code, const KernelFlow& flow);

/// Whether any checker follows the warp.
[[nodiscard]] bool is_followed(const Warp& warp) noexcept;

}  // namespace cpverify::sim
