#include "sim/machine/register_fence.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "sim/isa/code.hpp"
#include "sim/isa/insn.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/machine/cta.hpp"
#include "sim/machine/warp.hpp"
#include "sim/machine/warpgroup.hpp"

namespace cpverify::sim {

void RegisterFence::find_rows(const Warp& warp) {
  const Code& code = *warp.cta->launch->code;
  for (std::size_t i = 0; i < code.insns.size(); ++i) {
    const Form& form = code.forms[i];
    if (form.modifiers.columns == 0) continue;
    const OperandRows operands = operand_rows(warp, &code.insns[i], form);
    rows_.insert(rows_.end(), operands.d.begin(), operands.d.end());
    if (operands.has_a_registers()) {
      rows_.insert(rows_.end(), operands.a.begin(), operands.a.end());
    }
  }
  std::sort(rows_.begin(), rows_.end());
  rows_.erase(std::unique(rows_.begin(), rows_.end()), rows_.end());
}

std::size_t RegisterFence::number_of(std::uint32_t row) const {
  return static_cast<std::size_t>(std::lower_bound(rows_.begin(), rows_.end(), row) -
                                  rows_.begin());
}

void RegisterFence::remember(const Warp& warp) {
  if (rows_.empty()) find_rows(warp);
  Image& image = images_[warp.index % images_.size()];
  image.resize(rows_.size() * kLanes);
  update(warp, rows_);
}

void RegisterFence::update(const Warp& warp, std::span<const std::uint32_t> rows) {
  Image& image = images_[warp.index % images_.size()];
  if (image.empty()) return;
  for (const std::uint32_t row : rows) {
    const auto* const values = warp.row<const std::uint32_t>(row);
    std::copy(values, values + kLanes, image.data() + number_of(row) * kLanes);
  }
}

std::uint32_t RegisterFence::changed_lanes(const Warp& warp,
                                           std::span<const std::uint32_t> rows) const {
  const Image& image = images_[warp.index % images_.size()];
  std::uint32_t lanes = 0;
  if (image.empty()) return lanes;
  for (const std::uint32_t row : rows) {
    const auto* const values = warp.row<const std::uint32_t>(row);
    const std::uint32_t* const before = image.data() + number_of(row) * kLanes;
    for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
      lanes |= static_cast<std::uint32_t>(values[lane] != before[lane]) << lane;
    }
  }
  return lanes;
}

}  // namespace cpverify::sim
