#include "reference/row_deal.hpp"

#include <cstddef>
#include <vector>

#include "cpverify/step.hpp"
#include "reference/zigzag_deal.hpp"

namespace cpverify::reference {

std::vector<std::vector<DealtToken>> deal_interleaved(const Step& step, std::size_t cp) {
  std::vector<std::vector<DealtToken>> ranks(cp);
  std::size_t turn = 0;
  const std::vector<std::vector<NewToken>> rows = new_tokens(step);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    for (const NewToken& token : rows[row]) {
      ranks[turn].push_back({row, token});
      turn = turn + 1 == cp ? 0 : turn + 1;
    }
  }
  return ranks;
}

std::vector<std::vector<DealtToken>> deal_contiguously(const Step& step, std::size_t cp) {
  std::vector<std::vector<DealtToken>> ranks(cp);
  const std::vector<std::vector<NewToken>> rows = new_tokens(step);
  for (std::size_t row = 0; row < rows.size(); ++row) {
    // One token to each rank in turn says how long the pieces are.
    std::vector<std::size_t> lengths(cp, 0);
    for (std::size_t dealt = 0; dealt < rows[row].size(); ++dealt) ++lengths[dealt % cp];
    auto next = rows[row].begin();
    for (std::size_t rank = 0; rank < cp; ++rank) {
      for (std::size_t taken = 0; taken < lengths[rank]; ++taken) {
        ranks[rank].push_back({row, *next++});
      }
    }
  }
  return ranks;
}

}  // namespace cpverify::reference
