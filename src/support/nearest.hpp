#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace cpverify {

/// Insertions, deletions, replacements and swaps of neighbours that turn one word into the other.
[[nodiscard]] std::size_t edit_distance(std::string_view from, std::string_view to);

/// The candidate nearest to a misspelt word, first one on a tie; empty when none is near enough to
/// be a likely slip (more than a third of the word's letters, at least 2, differ). The start of a
/// candidate is always near.
[[nodiscard]] std::string nearest(std::string_view word,
                                  const std::vector<std::string>& candidates);

/// "; did you mean 'x'?" or "".
[[nodiscard]] std::string did_you_mean(std::string_view word,
                                       const std::vector<std::string>& candidates);

}  // namespace cpverify
