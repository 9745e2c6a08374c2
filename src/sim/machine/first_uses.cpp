#include "sim/machine/first_uses.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "sim/isa/code.hpp"
#include "sim/isa/insn.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/register_file.hpp"
#include "sim/machine/dataflow.hpp"

namespace cpverify::sim {
namespace {

/// A set of register numbers that grows.
class NumberSet {
 public:
  void insert(std::uint32_t number) {
    if (words_.size() <= number / 64) words_.resize(number / 64 + 1);
    words_[number / 64] |= 1ULL << (number % 64);
  }
  [[nodiscard]] bool contains(std::uint32_t number) const noexcept {
    return number / 64 < words_.size() && ((words_[number / 64] >> (number % 64)) & 1U) != 0;
  }
  /// Adds what is in `other` and not in `without`; true when something is new.
  bool insert(const NumberSet& other, const NumberSet& without) {
    if (words_.size() < other.words_.size()) words_.resize(other.words_.size());
    bool has_changed = false;
    for (std::size_t i = 0; i < other.words_.size(); ++i) {
      const std::uint64_t hidden = i < without.words_.size() ? without.words_[i] : 0;
      const std::uint64_t merged = words_[i] | (other.words_[i] & ~hidden);
      has_changed = has_changed || merged != words_[i];
      words_[i] = merged;
    }
    return has_changed;
  }

 private:
  std::vector<std::uint64_t> words_;
};

/// What one basic block does to the registers, which are numbered.
struct Block {
  std::size_t begin = 0;
  std::size_t end = 0;
  NumberSet defined;  ///< Written by every lane that comes through.
  NumberSet live;     ///< At the beginning: read, here or later, before they are written.
};

/// Numbers for the registers that instructions write or read.
class RegisterNumbers {
 public:
  explicit RegisterNumbers(const RegisterFile& file) {
    filled_.insert(0);  // The predicate that is always true.
    for (const ConstantRow& row : file.constants()) filled_.insert(row.offset);
    for (const ParameterRow& row : file.parameters()) filled_.insert(row.offset);
    for (const SpecialRow& row : file.specials()) filled_.insert(row.offset);
  }
  /// kNoIndex for a row that the machine fills.
  std::uint32_t number(const FlowOperand& operand) {
    if (filled_.contains(operand.row)) return kNoIndex;
    const auto [found, is_new] =
        numbers_.try_emplace(operand.row, static_cast<std::uint32_t>(registers_.size()));
    if (is_new) registers_.push_back(operand);
    // An address may be narrower than the type says; the widest use is the register.
    FlowOperand& known = registers_[found->second];
    known.width = std::max(known.width, operand.width);
    return found->second;
  }
  [[nodiscard]] const std::vector<FlowOperand>& registers() const noexcept { return registers_; }

 private:
  std::set<std::uint32_t> filled_;
  std::map<std::uint32_t, std::uint32_t> numbers_;
  std::vector<FlowOperand> registers_;
};

using Guard = std::pair<std::uint32_t, std::uint32_t>;  ///< Row, flip.

Guard guard_of(const Insn& insn) {
  return {insn.guard, insn.guard_flip};
}

/// Walks a block forwards.
class BlockScan {
 public:
  BlockScan(RegisterNumbers& numbers, Block& block) : numbers_{&numbers}, block_{&block} {}

  void add(const Insn& insn, const Dataflow& flow) {
    const Guard guard = guard_of(insn);
    for (const FlowOperand& operand : flow.operands) {
      if (operand.role != Role::target) use(operand, guard);
    }
    for (const FlowOperand& operand : flow.operands) {
      if (operand.role == Role::target) define(operand, guard, flow.is_guarded);
    }
  }

 private:
  [[nodiscard]] bool is_defined(std::uint32_t number, const Guard& guard) const {
    if (block_->defined.contains(number)) return true;
    const auto found = guards_.find(number);
    return found != guards_.end() && found->second.contains(guard);
  }

  void use(const FlowOperand& operand, const Guard& guard) {
    const std::uint32_t number = numbers_->number(operand);
    if (number != kNoIndex && !is_defined(number, guard)) block_->live.insert(number);
  }

  void define(const FlowOperand& operand, const Guard& guard, bool is_guarded) {
    const std::uint32_t number = numbers_->number(operand);
    if (number == kNoIndex) return;
    if (operand.width == 0) forget_guard(operand.row);
    if (is_guarded) {
      std::set<Guard>& guards = guards_[number];
      guards.insert(guard);
      if (!guards.contains({guard.first, ~guard.second})) return;
    }
    block_->defined.insert(number);
  }

  /// A predicate has a new value: what was written under the old one is written for other lanes.
  void forget_guard(std::uint32_t row) {
    for (auto& [number, guards] : guards_) {
      std::erase_if(guards, [row](const Guard& guard) { return guard.first == row; });
    }
  }

  RegisterNumbers* numbers_;
  Block* block_;
  std::map<std::uint32_t, std::set<Guard>> guards_;  ///< Under which a register is written.
};

std::vector<Block> find_blocks(const Code& code) {
  std::vector<bool> is_leader(code.insns.size() + 1);
  is_leader[0] = true;
  for (std::size_t i = 0; i < code.insns.size(); ++i) {
    const Effect effect = info(code.insns[i].op).effect;
    if (effect == Effect::branch) is_leader[code.insns[i].target] = true;
    if (effect == Effect::branch || effect == Effect::exit) is_leader[i + 1] = true;
  }
  std::vector<Block> blocks;
  for (std::size_t i = 0; i < code.insns.size(); ++i) {
    if (is_leader[i]) blocks.push_back({i, i + 1, {}, {}});
    blocks.back().end = i + 1;
  }
  return blocks;
}

/// What is live where a block ends is live where it begins, unless the block writes it.
void find_live(const Code& code, std::vector<Block>& blocks) {
  std::vector<std::size_t> block_at(code.insns.size());
  for (std::size_t i = 0; i < blocks.size(); ++i) block_at[blocks[i].begin] = i;
  for (bool has_changed = true; has_changed;) {
    has_changed = false;
    for (std::size_t i = blocks.size(); i-- > 0;) {
      Block& block = blocks[i];
      const Insn& last = code.insns[block.end - 1];
      const Effect effect = info(last.op).effect;
      const auto add = [&](std::size_t next) {
        if (block.live.insert(blocks[next].live, block.defined)) has_changed = true;
      };
      if (effect == Effect::branch) add(block_at[last.target]);
      const bool is_guarded = last.guard != 0 || last.guard_flip != 0;
      const bool goes_on = (effect != Effect::branch && effect != Effect::exit) || is_guarded;
      if (goes_on && i + 1 < blocks.size()) add(i + 1);
    }
  }
}

}  // namespace

std::vector<FlowOperand> find_first_uses(const Code& code, const std::vector<Dataflow>& insns) {
  if (code.insns.empty()) return {};
  RegisterNumbers numbers{code.registers};
  std::vector<Block> blocks = find_blocks(code);
  for (Block& block : blocks) {
    BlockScan scan{numbers, block};
    for (std::size_t i = block.begin; i < block.end; ++i) scan.add(code.insns[i], insns[i]);
  }
  const std::vector<FlowOperand>& registers = numbers.registers();
  find_live(code, blocks);
  std::vector<FlowOperand> result;
  for (std::uint32_t n = 0; n < registers.size(); ++n) {
    if (blocks.front().live.contains(n)) result.push_back(registers[n]);
  }
  return result;
}

}  // namespace cpverify::sim
