#include "reference/kv_deal.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"

namespace cpverify::reference {

namespace {

/// Deals one token after the other.
class Dealer {
 public:
  explicit Dealer(const TopologySpec& topology)
      : interleave_{topology.kv_interleave}, held_(topology.kv_shards(), 0) {}

  /// The shard of the next token.
  std::size_t deal() {
    if (in_hand_ == interleave_) {
      in_hand_ = 0;
      turn_ = turn_ + 1 == held_.size() ? 0 : turn_ + 1;
    }
    ++in_hand_;
    ++held_[turn_];
    return turn_;
  }

  [[nodiscard]] const std::vector<std::int64_t>& held() const noexcept { return held_; }

 private:
  std::uint32_t interleave_ = 1;
  std::vector<std::int64_t> held_;  ///< Tokens of each shard so far.
  std::size_t turn_ = 0;
  std::uint32_t in_hand_ = 0;  ///< Of the tokens that the shard gets in this turn.
};

}  // namespace

std::vector<ShardSlot> deal_slots(const Problem& problem) {
  const std::int64_t block_size = problem.scenario.cache.block_size;
  std::vector<ShardSlot> result;
  for (std::int64_t block = 0; block < problem.num_blocks; ++block) {
    Dealer dealer{problem.scenario.topology};
    for (std::int64_t token = 0; token < problem.block_tokens(); ++token) {
      const std::size_t shard = dealer.deal();
      result.push_back({shard, block * block_size + dealer.held()[shard] - 1});
    }
  }
  return result;
}

std::vector<std::int64_t> deal_length(const Problem& problem, std::int64_t length) {
  Dealer dealer{problem.scenario.topology};
  for (std::int64_t token = 0; token < length; ++token) dealer.deal();
  return dealer.held();
}

}  // namespace cpverify::reference
