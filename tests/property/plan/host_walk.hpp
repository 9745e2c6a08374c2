#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cpverify/plan.hpp"
#include "cpverify/step.hpp"
#include "property/plan/key_partials.hpp"

namespace cpverify::test {

/// Walks plans on the host: executes launches by what docs/plan.md says that kernels do, on
/// elements that carry where they come from instead of numbers. Attention writes down which keys
/// each query saw, merges add those up. Nothing here is the plan's own code.
///
/// Complaints name the first access out of a buffer, read of an element that nobody wrote, key that
/// is none, and output row that is not the token that the plan claims or has not seen each key up
/// to it once.
class HostWalk {
 public:
  explicit HostWalk(const Problem& problem);

  /// Walks one step; pools keep what earlier steps wrote.
  void run(const Plan& plan);

  [[nodiscard]] const std::vector<std::string>& complaints() const noexcept { return complaints_; }

 private:
  /// One element's origin. 0 is a zero, kUnwritten is no value at all.
  using Cell = std::int64_t;
  using Cells = std::vector<Cell>;
  using Rank = std::vector<Cells>;  ///< By BufferId.

  /// A rank's pools before step 0: the cached tokens, nothing else.
  void make_pools(const RankPlan& rank);
  void keep_pools(const RankPlan& plan, const Rank& rank);
  void prepare(const RankPlan& plan, const Step& step, Rank& rank);
  void execute(const RankPlan& plan, const Launch& launch, Rank& rank);
  void gather_rows(const RankPlan& plan, const Launch& launch, Rank& rank);
  void kv_write(const RankPlan& plan, const Launch& launch, Rank& rank);
  void attention(const RankPlan& plan, const Launch& launch, Rank& rank);
  /// A query head reads the KV head of its group, in heads of the whole model.
  void check_head_groups(const RankPlan& plan, std::int64_t heads_per_kv_head);
  void attend_row(const RankPlan& plan, const Launch& launch, Rank& rank, std::int64_t seq,
                  std::int64_t query);
  /// The token of a query row, whose elements are those of the rank's heads.
  std::optional<TokenOrigin> query_of(const RankPlan& plan, const Launch& launch, const Rank& rank,
                                      std::int64_t row);
  /// The token of a key, which is that of its value.
  std::optional<TokenOrigin> key_of(const RankPlan& plan, const Launch& launch, const Rank& rank,
                                    std::int64_t place);
  /// Elements and LSE of one head of a row; -inf where there are none.
  struct HeadRow {
    Cells elements;
    Cell lse = 0;
  };
  struct HeadPlace {
    BufferRef out;
    BufferRef lse;
    std::int64_t head = 0;  ///< Counted over the rows before, too.
  };
  HeadRow load_head(const RankPlan& plan, const Rank& rank, const HeadPlace& place);
  void store_head(const RankPlan& plan, Rank& rank, const HeadPlace& place, const HeadRow& row);
  HeadRow merge_heads(const RankPlan& plan, const HeadRow& one, const HeadRow& other);
  void merge_states(const RankPlan& plan, const Launch& launch, Rank& rank);
  void pack_partial(const RankPlan& plan, const Launch& launch, Rank& rank);
  void merge_packed(const RankPlan& plan, const Launch& launch, Rank& rank);
  void copy(const RankPlan& plan, const Copy& copy, Rank& rank);
  void fill(const RankPlan& plan, const Fill& fill, Rank& rank);
  /// What every rank waits for.
  void all_gather(const Plan& plan, std::vector<Rank>& ranks);
  void walk_until_collective(const RankPlan& plan, Rank& rank);
  /// What is wrong with a cell that claims to be element `element` of a token's row; or nothing.
  [[nodiscard]] bool is_result(Cell cell, const TokenOrigin& token, std::int64_t element) const;
  void check_outputs(const Plan& plan, const RankPlan& rank_plan, const Rank& rank);

  [[nodiscard]] Cell load(const RankPlan& plan, const Rank& rank, BufferRef ref,
                          std::int64_t offset);
  void store(const RankPlan& plan, Rank& rank, BufferRef ref, std::int64_t offset, Cell value);
  void complain(std::string text);

  const Problem& problem_;
  const Step* step_ = nullptr;
  /// [rank][k, v], by pool element; a rank's pools appear with its first plan.
  std::vector<std::vector<Cells>> pools_;
  std::vector<std::size_t> next_;  ///< Operation of each rank.
  std::vector<std::string> complaints_;
  KeyPartials partials_;
};

}  // namespace cpverify::test
