#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace cpverify::test {

/// A token by where it comes from.
struct TokenOrigin {
  std::int64_t request = 0;
  std::int64_t position = 0;

  friend auto operator<=>(const TokenOrigin&, const TokenOrigin&) = default;
};

/// What a query has attended to: how often it saw each key. A query or key that is no token, of
/// padding, is nothing.
struct KeyPartial {
  std::optional<TokenOrigin> query;
  std::map<std::optional<TokenOrigin>, int> keys;
};

/// Results of attention in place of numbers. A cell names a partial and which element of the
/// query's row, or which head's LSE, it is.
class KeyPartials {
 public:
  using Cell = std::int64_t;

  std::int64_t add(KeyPartial partial) {
    partials_.push_back(std::move(partial));
    return static_cast<std::int64_t>(partials_.size()) - 1;
  }

  /// Keys of both, added up; nothing when the queries are different ones.
  std::optional<std::int64_t> merged(std::int64_t one, std::int64_t other) {
    const auto found = merges_.find({one, other});
    if (found != merges_.end()) return found->second;
    KeyPartial sum = of(one);
    const KeyPartial& more = of(other);
    if (sum.query != more.query) return std::nullopt;
    for (const auto& [key, times] : more.keys) sum.keys[key] += times;
    return merges_[{one, other}] = add(std::move(sum));
  }

  [[nodiscard]] const KeyPartial& of(std::int64_t partial) const {
    return partials_.at(static_cast<std::size_t>(partial));
  }

  static Cell cell(std::int64_t partial, std::int64_t element) {
    return kPartial + (partial << kElementBits) + element;
  }
  static bool is_partial(Cell cell) { return cell >= kPartial; }
  static std::int64_t partial_of(Cell cell) { return (cell - kPartial) >> kElementBits; }
  static std::int64_t element_of(Cell cell) { return cell & ((Cell{1} << kElementBits) - 1); }

 private:
  static constexpr int kElementBits = 20;
  /// Above every origin of an input.
  static constexpr Cell kPartial = Cell{1} << 60;

  std::vector<KeyPartial> partials_;
  std::map<std::pair<std::int64_t, std::int64_t>, std::int64_t> merges_;
};

}  // namespace cpverify::test
