#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "layout/intervals.hpp"

/// What each strategy computes where, per rank and request, as sets and not as lists: enough to
/// prove a split right and to cost it, whatever the number of tokens.
///
/// A split is of one domain: the ranks that share a set of query heads. With attention TP the
/// domains are alike, so one stands for all. A query's or key's number is its position in its
/// request, the tokens already computed included.
namespace cpverify::layout {

/// The strategies, by the names that scenarios use.
enum class SplitKind : std::uint8_t {
  single,
  zigzag,
  zigzag_combined,
  interleave,
  contiguous,
  dcp,
  dcp_virtual,
  pcp_head_tail,
  pcp_virtual_batch,
  ring,
  ulysses,
  ulysses_ring,
};

[[nodiscard]] const std::vector<SplitKind>& all_split_kinds();
[[nodiscard]] std::string_view name(SplitKind kind) noexcept;

/// How a ring places its tokens.
enum class RingOrder : std::uint8_t { contiguous, zigzag };

struct SplitSpec {
  SplitKind kind = SplitKind::single;
  std::uint32_t cp = 1;              ///< Ranks over which new tokens are split: C or P.
  std::uint32_t dcp = 1;             ///< Ranks over which the cache is split: N or D.
  std::uint32_t ulysses = 1;         ///< Of ulysses_ring: ranks that exchange heads; divides cp.
  std::int64_t interleave_size = 1;  ///< I: neighbouring tokens on one shard.
  std::int64_t block_size = 16;      ///< Of one rank's pool.
  std::uint32_t num_heads_q = 1;     ///< Query heads of the whole domain.
  DcpVisibility visibility = DcpVisibility::split;
  RingOrder ring_order = RingOrder::zigzag;
  std::int64_t window = 0;  ///< Keys that a query sees at most, the last ones; 0: all.
};

/// A request in a step.
struct SplitRow {
  std::int64_t computed = 0;   ///< Tokens in the cache before the step.
  std::int64_t scheduled = 0;  ///< Tokens of the step.
  bool is_decode = false;
};

/// One attention call's share of one request. A key k of `keys` is seen by a query x of `queries`
/// when there is no mask or k <= x + diagonal, and with a window k > x + diagonal - window.
struct AttentionPart {
  std::uint32_t rank = 0;
  std::uint32_t replica = 0;  ///< Parts of one replica are merged; each replica is complete.
  HeadRange heads;            ///< Query heads of the domain.
  TokenSet queries;
  TokenSet keys;
  std::optional<std::int64_t> diagonal;  ///< Empty: no mask.
  std::int64_t window = 0;               ///< 0: none. With a mask only.
};

/// Bottom-right aligned causal mask: the last query sees the last key.
[[nodiscard]] std::int64_t bottom_right_diagonal(const TokenSet& queries,
                                                 const TokenSet& keys) noexcept;

/// Tokens of a request that a rank holds. The shares of one copy must be a partition.
struct TokenShare {
  std::uint32_t rank = 0;
  std::uint32_t copy = 0;
  TokenSet tokens;
  std::int64_t length = 0;  ///< What the strategy's own length formula says.
};

/// Slots [first_slot, first_slot + count(positions)) of a rank's pool, in order of position.
struct SlotRun {
  std::uint32_t rank = 0;
  std::uint32_t copy = 0;
  TokenSet positions;
  std::int64_t first_slot = 0;
};

struct RequestSplit {
  std::uint32_t request = 0;
  SplitRow row;
  std::int64_t window = 0;  ///< What queries must see: their last keys; 0: all.
  std::uint32_t num_replicas = 1;
  std::vector<AttentionPart> parts;
  std::vector<TokenShare> rows;    ///< Query rows that a rank holds: of [computed, total).
  std::vector<TokenShare> stored;  ///< Keys in a rank's pool after the step: of [0, total).
  std::vector<SlotRun> slots;      ///< What the step writes: of [computed, total).
};

enum class RowUnit : std::uint8_t { query, key_value, lse };

/// An array of a rank that is sized before the lengths of the other ranks are known to it.
struct Workspace {
  std::string_view name;
  std::uint32_t rank = 0;
  RowUnit unit = RowUnit::query;
  std::int64_t needed_rows = 0;
  std::int64_t capacity_rows = 0;
};

/// Whether every query sees all its keys in one part, on one rank: what a window needs.
[[nodiscard]] bool computes_whole_rows(const SplitSpec& spec) noexcept;

/// Local length of shard `shard`: base plus what is left over, as vLLM computes it.
[[nodiscard]] std::int64_t shard_length(std::int64_t length, std::int64_t shard,
                                        std::int64_t num_shards,
                                        std::int64_t interleave_size) noexcept;

/// Describes a batch under a strategy, one request at a time so that memory does not grow with the
/// number of requests.
class BatchSplit {
 public:
  /// Throws InputError when the sizes do not go together: a size of 0, heads that do not divide,
  /// more tokens than 10^8, a window for a strategy that cuts up the keys of a query.
  BatchSplit(const SplitSpec& spec, std::vector<SplitRow> rows);

  [[nodiscard]] const SplitSpec& spec() const noexcept { return spec_; }
  [[nodiscard]] const std::vector<SplitRow>& rows() const noexcept { return rows_; }
  [[nodiscard]] std::uint32_t num_ranks() const noexcept { return num_ranks_; }
  /// False when the batch is one that the strategy does not split: every rank computes all of it.
  [[nodiscard]] bool is_split() const noexcept { return is_split_; }
  /// Shards of the cache: 1 when every rank stores everything.
  [[nodiscard]] std::uint32_t num_shards() const noexcept;
  /// Shard of a rank of the domain.
  [[nodiscard]] std::uint32_t shard(std::uint32_t rank) const noexcept;
  /// Blocks of every rank's pool that the batch fills, the null block included.
  [[nodiscard]] std::int64_t num_blocks() const noexcept { return first_block_.back(); }
  [[nodiscard]] std::int64_t num_tokens() const noexcept { return start_.back(); }

  [[nodiscard]] RequestSplit request(std::size_t index) const;
  /// Tokens of a request in a rank's pool after the step.
  [[nodiscard]] std::int64_t local_length(std::size_t index, std::uint32_t rank) const;
  [[nodiscard]] std::vector<Workspace> workspaces() const;
  /// Query rows of each rank, pads not counted.
  [[nodiscard]] std::vector<std::int64_t> rows_per_rank() const;

 private:
  SplitSpec spec_;
  std::vector<SplitRow> rows_;
  std::uint32_t num_ranks_ = 1;
  bool is_split_ = true;
  std::vector<std::int64_t> start_;        ///< First flattened token of each request. [bs + 1]
  std::vector<std::int64_t> first_block_;  ///< First block of each request. [bs + 1]
};

}  // namespace cpverify::layout
