#include "reference/virtual_batch_deal.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpverify/step.hpp"
#include "reference/pcp_deal.hpp"
#include "reference/zigzag_deal.hpp"

namespace cpverify::reference {

namespace {

/// The segments of one prefill: token after token goes to the chunk it lies in, and a chunk to the
/// rank whose number it has when ranks are counted up and then down again.
void deal_prefill(std::vector<std::vector<Segment>>& ranks, const std::vector<NewToken>& tokens,
                  std::size_t row) {
  const std::size_t chunks = 2 * ranks.size();
  const std::int64_t size = chunk_length(tokens.size(), chunks);
  for (const NewToken& token : tokens) {
    const auto chunk = static_cast<std::size_t>(token.index / size);
    std::vector<Segment>& own = ranks[std::min(chunk, chunks - 1 - chunk)];
    if (own.empty() || own.back().row != row || own.back().block != chunk) {
      own.push_back({row, chunk, {}});
    }
    own.back().tokens.push_back(token);
  }
}

}  // namespace

Deal deal_virtual(const Step& step, std::size_t pcp) {
  const std::vector<std::vector<NewToken>> tokens = new_tokens(step);
  std::vector<std::vector<Segment>> prefills(pcp);
  for (const std::size_t row : rows_in(step, RowState::prefill)) {
    deal_prefill(prefills, tokens[row], row);
  }
  Deal deal;
  for (const std::vector<Segment>& own : prefills) {
    std::vector<Segment>& rank = deal.ranks.emplace_back();
    deal.decode_tokens = 0;
    for (const std::size_t row : rows_in(step, RowState::decode)) {
      rank.push_back({row, 0, tokens[row]});
      deal.decode_tokens += static_cast<std::int64_t>(tokens[row].size());
    }
    for (const bool is_fresh : {false, true}) {
      for (const Segment& segment : own) {
        if ((segment.tokens.front().position == 0) == is_fresh) rank.push_back(segment);
      }
    }
    std::int64_t count = 0;
    for (const Segment& segment : rank) count += static_cast<std::int64_t>(segment.tokens.size());
    deal.max_tokens = std::max(deal.max_tokens, count);
  }
  return deal;
}

}  // namespace cpverify::reference
