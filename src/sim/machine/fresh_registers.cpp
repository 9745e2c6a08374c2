#include "sim/machine/fresh_registers.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "sim/isa/code.hpp"
#include "sim/isa/insn.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/operand_spec.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/isa/type.hpp"
#include "sim/machine/warp.hpp"

namespace cpverify::sim {
namespace {

constexpr std::uint32_t kUnitBytes = 64;
constexpr std::uint32_t kUnitsMax = 4;  ///< Of a row of 64-bit values.

/// One bit per 64 bytes of the register file.
class Units {
 public:
  explicit Units(std::uint32_t register_bytes, bool value = false)
      : bits_(register_bytes / kUnitBytes + kUnitsMax, value) {}

  void set(std::uint32_t offset, std::uint32_t units) {
    for (std::uint32_t i = 0; i < units; ++i) bits_[offset / kUnitBytes + i] = true;
  }
  /// Sets those of the units that `other` lacks.
  void set_missing(std::uint32_t offset, std::uint32_t units, const Units& other) {
    for (std::uint32_t i = 0; i < units; ++i) {
      if (!other.has(offset / kUnitBytes + i)) bits_[offset / kUnitBytes + i] = true;
    }
  }
  [[nodiscard]] bool has(std::size_t unit) const { return bits_[unit]; }
  [[nodiscard]] std::size_t size() const { return bits_.size(); }
  /// Keeps what `other` has too; true when that is less.
  bool intersect(const Units& other) {
    bool has_changed = false;
    for (std::size_t i = 0; i < bits_.size(); ++i) {
      if (!bits_[i] || other.bits_[i]) continue;
      bits_[i] = false;
      has_changed = true;
    }
    return has_changed;
  }

 private:
  std::vector<bool> bits_;
};

/// The registers of one instruction, what is written first.
class Operands {
 public:
  Operands(const Code& code, std::size_t index) : insn_{&code.insns[index]} {
    const Form& form = code.forms[index];
    std::uint32_t address_bytes = insn_->address_bytes;
    for (const OperandSpec& spec : operand_specs(form.op)) {
      if (spec.role == OperandSpec::Role::label) continue;
      std::uint32_t bytes = size_bytes(spec.type(form.modifiers));
      if (spec.role == OperandSpec::Role::address) {
        // Only cp.async has a second address, and that is global.
        bytes = address_bytes;
        address_bytes = 8;
      }
      const std::size_t count = spec.count == 0 ? form.modifiers.vector : spec.count;
      units_.insert(units_.end(), count, units_of(bytes));
      if (spec.has_pair) units_.push_back(0);
      if (spec.role == OperandSpec::Role::target) target_count_ = units_.size();
    }
    rows_ = insn_->r;
    const bool is_wide = insn_->target != kNoIndex && info(form.op).effect != Effect::branch;
    if (is_wide) rows_ = std::span{code.wide}.subspan(insn_->target);
    units_.resize(std::min(units_.size(), rows_.size()));
    target_count_ = std::min(target_count_, units_.size());
  }

  [[nodiscard]] std::size_t size() const { return units_.size(); }
  /// How many of them are written: the first ones.
  [[nodiscard]] std::size_t target_count() const { return target_count_; }
  [[nodiscard]] std::uint32_t row(std::size_t i) const { return rows_[i]; }
  /// Units that the row has; 0 for a predicate, which is a part of one.
  [[nodiscard]] std::uint32_t units(std::size_t i) const { return units_[i]; }
  [[nodiscard]] bool is_guarded() const { return insn_->guard != 0 || insn_->guard_flip != 0; }

 private:
  static std::uint32_t units_of(std::uint32_t lane_bytes) {
    const std::uint32_t bytes = lane_bytes * kLanes;
    return bytes == 0 ? 0 : std::max(1U, bytes / kUnitBytes);
  }

  const Insn* insn_;
  std::span<const std::uint32_t> rows_;
  std::vector<std::uint32_t> units_;
  std::size_t target_count_ = 0;
};

/// Registers that every path of a thread has written, for each instruction at which paths begin or
/// meet.
class Assignment {
 public:
  explicit Assignment(const Code& code)
      : code_{&code},
        bytes_{code.registers.size_bytes()},
        begins_(code.insns.size() + 1),
        entries_(code.insns.size(), kNone) {
    for (std::size_t i = 0; i < code.insns.size(); ++i) {
      const Effect effect = info(code.insns[i].op).effect;
      if (effect == Effect::branch) begins_[code.insns[i].target] = true;
      if (effect == Effect::branch || effect == Effect::exit) begins_[i + 1] = true;
    }
    enter(0, Units{bytes_});
    while (!work_.empty()) {
      const std::size_t first = work_.back();
      work_.pop_back();
      follow(first);
    }
  }

  /// Units that some path reads before it has written them.
  [[nodiscard]] Units read_early() const {
    Units early{bytes_};
    for (std::size_t first = 0; first < entries_.size(); ++first) {
      if (entries_[first] == kNone) continue;
      Units written = states_[entries_[first]];
      walk(first, written, [&](const Operands& operands) {
        for (std::size_t i = operands.target_count(); i < operands.size(); ++i) {
          early.set_missing(operands.row(i), operands.units(i), written);
        }
      });
    }
    return early;
  }

 private:
  static constexpr std::size_t kNone = ~std::size_t{0};

  void enter(std::size_t index, const Units& written) {
    if (index >= entries_.size()) return;
    if (entries_[index] == kNone) {
      entries_[index] = states_.size();
      states_.push_back(written);
      work_.push_back(index);
    } else if (states_[entries_[index]].intersect(written)) {
      work_.push_back(index);
    }
  }

  /// Calls visit for the instructions from `first` to before the next at which paths may begin, and
  /// adds what they write. Returns the index of the last of them.
  template <class Visit>
  std::size_t walk(std::size_t first, Units& written, Visit visit) const {
    for (std::size_t i = first;; ++i) {
      const Operands operands{*code_, i};
      visit(operands);
      for (std::size_t t = 0; t < operands.target_count() && !operands.is_guarded(); ++t) {
        written.set(operands.row(t), operands.units(t));
      }
      if (i + 1 == entries_.size() || begins_[i + 1]) return i;
    }
  }

  void follow(std::size_t first) {
    Units written = states_[entries_[first]];
    const std::size_t last = walk(first, written, [](const Operands& /*operands*/) {});
    const Insn& insn = code_->insns[last];
    const Effect effect = info(insn.op).effect;
    const bool is_guarded = insn.guard != 0 || insn.guard_flip != 0;
    if (effect == Effect::branch) enter(insn.target, written);
    if ((effect != Effect::branch && effect != Effect::exit) || is_guarded) {
      enter(last + 1, written);
    }
  }

  const Code* code_;
  std::uint32_t bytes_;
  std::vector<bool> begins_;          ///< Per instruction: a path may begin there.
  std::vector<std::size_t> entries_;  ///< Per instruction: index of its state.
  std::vector<Units> states_;
  std::vector<std::size_t> work_;
};

}  // namespace

std::vector<RegisterRange> registers_to_refresh(const Code& code) {
  const Units early = Assignment{code}.read_early();
  Units fresh{code.registers.size_bytes()};
  for (std::size_t i = 0; i < code.insns.size(); ++i) {
    const Operands operands{code, i};
    for (std::size_t t = 0; t < operands.target_count(); ++t) {
      const std::uint32_t row = operands.row(t);
      // Predicates share 64 bytes, and there are few of them.
      if (operands.units(t) == 0) fresh.set(row, 1);
      for (std::uint32_t u = 0; u < operands.units(t); ++u) {
        if (early.has(row / kUnitBytes + u)) fresh.set(row + u * kUnitBytes, 1);
      }
    }
  }
  std::vector<RegisterRange> ranges;
  for (std::uint32_t unit = 0; unit * kUnitBytes < code.registers.size_bytes(); ++unit) {
    if (!fresh.has(unit)) continue;
    const std::uint32_t offset = unit * kUnitBytes;
    const bool follows =
        !ranges.empty() && ranges.back().offset + ranges.back().size_bytes == offset;
    if (!follows) ranges.push_back({offset, 0});
    ranges.back().size_bytes += kUnitBytes;
  }
  return ranges;
}

}  // namespace cpverify::sim
