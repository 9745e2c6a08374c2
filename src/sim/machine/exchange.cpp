#include "sim/machine/exchange.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "cpverify/observer.hpp"
#include "sim/isa/insn.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/isa/type.hpp"
#include "sim/machine/cta.hpp"
#include "sim/machine/warp.hpp"

namespace cpverify::sim {
namespace {

/// A row of registers as it was: bytes per lane, 0 for a predicate.
class SavedRow {
 public:
  SavedRow(const Warp& warp, std::uint32_t offset, std::size_t width)
      : row_{warp.registers + offset}, width_{width} {
    std::memcpy(bytes_.data(), row_, size());
  }

  /// Puts back what lanes had.
  void restore(std::uint32_t lanes) const { write(row_, lanes); }
  /// Gives lanes of another row of the same width what they had in this one.
  void copy_to(const Warp& warp, std::uint32_t offset, std::uint32_t lanes) const {
    write(warp.registers + offset, lanes);
  }

 private:
  [[nodiscard]] std::size_t size() const {
    return width_ == 0 ? sizeof(std::uint32_t) : width_ * kLanes;
  }
  void write(std::byte* row, std::uint32_t lanes) const {
    if (width_ == 0) {
      std::uint32_t now = 0;
      std::uint32_t then = 0;
      std::memcpy(&now, row, sizeof now);
      std::memcpy(&then, bytes_.data(), sizeof then);
      now = (now & ~lanes) | (then & lanes);
      std::memcpy(row, &now, sizeof now);
      return;
    }
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
      if ((lanes >> lane & 1U) == 0) continue;
      std::memcpy(row + lane * width_, bytes_.data() + lane * width_, width_);
    }
  }

  std::byte* row_ = nullptr;
  std::size_t width_ = 0;
  alignas(8) std::array<std::byte, 8 * kLanes> bytes_{};
};

/// The operand whose values the other lanes see, and its bytes per lane; 0 for a predicate.
struct DataOperand {
  std::size_t operand = kNoOperand;
  std::size_t width = 4;
};

DataOperand data_operand(const Warp& warp, const Insn& insn) {
  const Form& form = warp.cta->launch->code->forms[static_cast<std::size_t>(&insn - warp.code)];
  const std::size_t wide = form.modifiers.type == Type::b64 ? 8 : 4;
  switch (insn.op) {
    case Op::shfl:
      return {2, 4};
    case Op::vote_pred:
    case Op::vote_ballot:
      return {1, 0};
    case Op::match_any:
      return {1, wide};
    case Op::match_all:
      return {2, wide};
    case Op::redux:
      return {1, 4};
    case Op::elect:  // Nothing but the membermask.
      return {2, 4};
    default:
      return {};
  }
}

/// What an instruction writes.
std::vector<SavedRow> save_targets(const Warp& warp, const Insn& insn) {
  std::vector<SavedRow> rows;
  if (insn.op == Op::vote_pred) {
    rows.emplace_back(warp, insn.r[0], 0);
    return rows;
  }
  rows.emplace_back(warp, insn.r[0], 4);
  if (insn.op == Op::shfl || insn.op == Op::match_all || insn.op == Op::elect) {
    rows.emplace_back(warp, insn.r[1], 0);
  }
  return rows;
}

}  // namespace

void exchange(Warp& warp, const std::vector<Fragment>& meeting) {
  std::uint32_t all = 0;
  for (const Fragment& fragment : meeting) all |= fragment.lanes;
  if (meeting.front().next->op == Op::bar_warp) {
    for (Observer* const observer : warp.cta->launch->access_observers) {
      observer->on_lanes_ordered(warp.index, all);
    }
    return;
  }
  // Before anything is written: the target of one may be the source of another.
  std::vector<SavedRow> data;
  std::vector<SavedRow> masks;
  for (const Fragment& fragment : meeting) {
    const DataOperand source = data_operand(warp, *fragment.next);
    data.emplace_back(warp, fragment.next->r[source.operand], source.width);
    masks.emplace_back(warp, fragment.next->r[membermask_operand(fragment.next->op)], 4);
  }
  for (std::size_t i = 0; i < meeting.size(); ++i) {
    const Insn& insn = *meeting[i].next;
    std::vector<SavedRow> changed = save_targets(warp, insn);
    const DataOperand source = data_operand(warp, insn);
    const std::uint32_t mask_row = insn.r[membermask_operand(insn.op)];
    changed.emplace_back(warp, insn.r[source.operand], source.width);
    changed.emplace_back(warp, mask_row, 4);
    for (std::size_t j = 0; j < meeting.size(); ++j) {
      masks[j].copy_to(warp, mask_row, meeting[j].lanes);
      data[j].copy_to(warp, insn.r[source.operand], meeting[j].lanes);
    }
    (void)insn.handler(warp, &insn, all);
    for (const SavedRow& row : changed) row.restore(~meeting[i].lanes);
  }
}

}  // namespace cpverify::sim
