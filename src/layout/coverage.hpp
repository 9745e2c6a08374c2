#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "cpverify/plan.hpp"
#include "layout/intervals.hpp"
#include "layout/splits.hpp"

/// Proofs about a split that enumerate no token: cost grows with its parts, not with its lengths.
namespace cpverify::layout {

enum class SplitFault : std::uint8_t {
  missing_pair,   ///< A visible key that no part shows to the query.
  doubled_pair,   ///< A key that two parts show to the query.
  hidden_pair,    ///< A key that the query must not see is shown: a later or no token.
  foreign_query,  ///< A part has a query that is no new token of the request.
  ownership,      ///< Shares of a copy leave a token out, or hold it twice.
  local_length,   ///< A share's length is negative or not the number of its tokens.
  slot,           ///< A slot is shared, outside the pool, or written by who does not own it.
  workspace,      ///< An array is too small.
};

[[nodiscard]] std::string_view name(SplitFault fault) noexcept;

struct SplitProblem {
  SplitFault fault = SplitFault::missing_pair;
  std::uint32_t request = 0;
  std::vector<std::uint32_t> ranks;  ///< Those whose parts are concerned; may be empty.
  HeadRange heads;                   ///< Query heads for which it holds.
  TokenSet queries;                  ///< One query, or the queries concerned.
  TokenSet keys;                     ///< The keys concerned.
  std::string message;               ///< A sentence with ranks, request, query and keys.
};

/// The first problems of a split in order of request; `total` counts those found, at most one per
/// check, piece of the query range and class of keys.
struct SplitProblems {
  static constexpr std::size_t kKeptMax = 16;

  std::vector<SplitProblem> kept;
  std::size_t total = 0;

  void add(SplitProblem problem);
  [[nodiscard]] bool empty() const noexcept { return total == 0; }
};

/// Every visible (head, query, key) is in exactly one part of each replica, and nothing else is in
/// any: query x of [computed, computed + scheduled) sees keys 0 .. x, or the last `window` of
/// these. Exact; parts with a window have keys without gaps.
void check_pairs(const RequestSplit& split, std::uint32_t num_heads, SplitProblems& problems);

/// The shares of each copy tile `whole`; lengths are what the shares hold.
void check_shares(const RequestSplit& split, const std::vector<TokenShare>& shares,
                  const TokenSet& whole, SplitProblems& problems);

/// Every new token is written once per copy, by a rank that stores it.
void check_slot_owners(const RequestSplit& split, SplitProblems& problems);

/// No slot of a rank is handed out twice, none is in the null block or beyond the pool.
class SlotCheck {
 public:
  SlotCheck(std::int64_t first_slot, std::int64_t end_slot) noexcept
      : first_slot_{first_slot}, end_slot_{end_slot} {}

  void add(const RequestSplit& split, SplitProblems& problems);
  /// To be called after the last request.
  void finish(SplitProblems& problems);

 private:
  struct Range {
    std::uint32_t rank = 0;
    std::int64_t begin = 0;
    std::int64_t end = 0;
    std::uint32_t request = 0;
  };

  std::int64_t first_slot_;
  std::int64_t end_slot_;
  std::vector<Range> ranges_;
};

void check_workspaces(const std::vector<Workspace>& workspaces, SplitProblems& problems);

/// All of the above for a whole batch.
[[nodiscard]] SplitProblems check_batch(const BatchSplit& batch);

}  // namespace cpverify::layout
