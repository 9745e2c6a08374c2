#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <map>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "cpverify/fault.hpp"
#include "sim/check/nan_origins.hpp"
#include "sim/check/special_values.hpp"
#include "sim/isa/type.hpp"
#include "sim/machine/checked_bytes.hpp"
#include "sim/machine/flow.hpp"
#include "sim/machine/warp.hpp"

namespace cpverify::sim {

struct LaunchState;
struct GroupProduct;

/// Nancheck. Finds the instruction that made a NaN of operands that are none, or an infinity of
/// finite ones, and follows the value through registers and memory. Where it is stored to global
/// memory it is a fault of that instruction: any NaN, and plus infinity. Minus infinity is what
/// masks and empty rows are made of; constants are meant. A NaN that no kernel has made is a fault
/// of its place when it has been computed with, not when it is only copied. Made for one launch.
class NanFlow final : public FlowChecker {
 public:
  /// Both must outlive the checker.
  NanFlow(LaunchState& launch, SpecialValueMemory& memory);

  void begin_cta(Cta& cta) override;
  [[nodiscard]] bool is_following(const Warp& /*warp*/) const noexcept override { return true; }
  void before(const FlowStep& step) override;
  void after(const FlowStep& step) override;
  void before_product(const Cta& cta, std::size_t first, const GroupProduct& product) override;
  void after_product(Cta& cta, std::size_t first, const GroupProduct& product) override;

  /// One per instruction that made such values and kind.
  [[nodiscard]] std::vector<Fault> take_faults() { return std::move(faults_); }

 private:
  /// A float that an instruction has read.
  struct Input {
    const FlowOperand* operand = nullptr;
    std::size_t lane = 0;
    std::uint32_t element = 0;
    FloatClass kind = FloatClass::finite;
    std::uint32_t node = 0;  ///< 0 for none known.
  };
  struct Mark {
    const FlowOperand* target = nullptr;
    std::uint32_t part = 0;
    std::uint32_t lanes = 0;
    std::array<std::uint32_t, kLanes> nodes{};
  };

  /// A register of D of a wgmma that has been computed.
  struct ProductSum {
    const GroupProduct* product = nullptr;
    Warp* warp = nullptr;
    const FlowOperand* operand = nullptr;
    FloatShape shape{Type::f32, 1};
    const std::uint32_t* before = nullptr;  ///< [lane]: what was added to.
    bool is_made_here = false;              ///< What is special: no operand is.
  };

  void mark_sum(const ProductSum& sum);
  [[nodiscard]] std::uint32_t made_by_product(const ProductSum& sum, std::size_t lane,
                                              FloatClass result, std::uint64_t before);
  [[nodiscard]] std::uint64_t input_bits(std::size_t source, std::size_t lane) const;
  void add_input(const FlowStep& step, std::size_t source, std::size_t lane, std::uint32_t element,
                 Type type);
  void find_inputs(const FlowStep& step, const FlowOperand& target, std::size_t lane,
                   std::uint32_t element);
  void find_product_inputs(const FlowStep& step, std::size_t target, std::size_t lane,
                           std::uint32_t element);
  [[nodiscard]] std::uint32_t node_of(const FlowStep& step, std::size_t lane, FloatClass result);
  [[nodiscard]] std::uint32_t made_here(const FlowStep& step, std::size_t lane, FloatClass result);
  [[nodiscard]] std::string inputs_text(const FlowStep& step) const;
  [[nodiscard]] std::uint32_t result_node(const FlowStep& step, std::size_t target,
                                          std::size_t lane);
  void compute(const FlowStep& step);
  void take_marks(const FlowStep& step, const FlowOperand& source, std::uint32_t from,
                  std::uint32_t lanes, Mark& mark) const;
  void move(const FlowStep& step);
  void load(const FlowStep& step);
  void load_lane(const FlowStep& step, const TracedAccess& traced,
                 const std::vector<const FlowOperand*>& targets, std::size_t lane);
  [[nodiscard]] std::uint32_t memory_node(const TracedAccess& traced, std::size_t lane,
                                          std::uint32_t byte);
  [[nodiscard]] std::uint32_t read_node(const FlowStep& step, const TracedAccess& traced,
                                        std::size_t lane, std::uint32_t byte);
  void store(const FlowStep& step, const TracedAccess& traced);
  void remember(const TracedAccess& traced, std::size_t lane, std::uint32_t byte,
                std::uint32_t node);
  void copy_asynchronously(const FlowStep& step);
  void write_marks(const FlowStep& step);
  [[nodiscard]] static Fault make_fault(const FlowStep& step, std::size_t lane);
  void report(const FlowStep& step, const TracedAccess& traced, std::size_t lane,
              std::uint32_t byte, std::uint32_t node);

  LaunchState* launch_;
  SpecialValueMemory* memory_;
  NanOrigins origins_;
  std::vector<const FlowOperand*> sources_;
  std::vector<std::uint64_t> values_;       ///< [source][lane], before the instruction.
  std::vector<std::uint32_t> sums_before_;  ///< Of a wgmma: [warp][register of D][lane].
  std::vector<Input> inputs_;
  std::vector<Mark> marks_;
  std::map<std::pair<const CheckedBytes*, std::uint64_t>, std::uint32_t> near_;  ///< By half word.
  std::vector<Fault> faults_;
  std::map<std::tuple<std::string, std::uint32_t, FaultKind>, std::size_t> fault_of_;
};

}  // namespace cpverify::sim
