#include "reference/zigzag_deal.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpverify/step.hpp"

namespace cpverify::reference {

namespace {

/// The 2C blocks of one row. Lengths come from dealing one token to each block in turn.
std::vector<std::vector<NewToken>> cut(const std::vector<NewToken>& tokens, std::size_t blocks) {
  std::vector<std::size_t> lengths(blocks, 0);
  for (std::size_t dealt = 0; dealt < tokens.size(); ++dealt) ++lengths[dealt % blocks];
  std::vector<std::vector<NewToken>> result(blocks);
  auto next = tokens.begin();
  for (std::size_t block = 0; block < blocks; ++block) {
    for (std::size_t taken = 0; taken < lengths[block]; ++taken) result[block].push_back(*next++);
  }
  return result;
}

}  // namespace

std::vector<std::vector<NewToken>> new_tokens(const Step& step) {
  std::vector<std::vector<NewToken>> result;
  std::int64_t flat = 0;
  for (const StepRow& row : step.rows) {
    std::vector<NewToken>& tokens = result.emplace_back();
    for (std::int64_t index = 0; index < row.scheduled; ++index) {
      tokens.push_back({.flat = flat, .index = index, .position = row.computed + index});
      ++flat;
    }
  }
  return result;
}

std::vector<std::vector<Piece>> deal_zigzag(const Step& step, std::size_t cp) {
  std::vector<std::vector<std::vector<NewToken>>> blocks;  // [row][block]
  for (const std::vector<NewToken>& tokens : new_tokens(step)) {
    blocks.push_back(cut(tokens, 2 * cp));
  }
  std::vector<std::vector<Piece>> result(cp);
  for (std::size_t rank = 0; rank < cp; ++rank) {
    for (const std::size_t block : {rank, 2 * cp - 1 - rank}) {
      for (std::size_t row = 0; row < blocks.size(); ++row) {
        result[rank].push_back({.row = row, .block = block, .tokens = blocks[row][block]});
      }
    }
  }
  return result;
}

}  // namespace cpverify::reference
