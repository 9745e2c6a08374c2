#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <yaml-cpp/yaml.h>

#include "cpverify/error.hpp"
#include "scenario/schema.hpp"

namespace cpverify::scenario {

/// Allowed values, both ends included. `why` follows the limits in the message: "; every token ..".
struct Range {
  constexpr Range(std::int64_t least, std::int64_t most, std::string_view reason = {}) noexcept
      : min{least}, max{most}, why{reason} {}

  std::int64_t min;
  std::int64_t max;
  std::string_view why;
};

/// `word` as messages show it: in quotes, control characters replaced, cut when long.
[[nodiscard]] std::string in_quotes(std::string_view word);

/// "unknown dtype 'bf61'; did you mean 'bf16'? expected one of: f32, f16, bf16".
[[nodiscard]] std::string unknown_word(std::string_view what, std::string_view word,
                                       const std::vector<std::string>& known);

/// One node of a scenario file: what stands there, where, and under which key. Every reading
/// function throws InputError at the node when it is not of the type asked for.
class Value {
 public:
  /// `where` gives the file, and the place to blame when the node itself is empty.
  Value(const YAML::Node& node, const SourceLocation& where, std::string name);

  [[nodiscard]] const SourceLocation& where() const noexcept { return where_; }
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  [[nodiscard]] const YAML::Node& node() const noexcept { return node_; }

  [[nodiscard]] std::int64_t whole_number(const Range& range) const;
  /// Any whole number from 0 to 2^64 - 1.
  [[nodiscard]] std::uint64_t seed() const;
  /// A decimal number, above `min` and at most `max`.
  [[nodiscard]] float number(float min, float max) const;
  /// A decimal number of 64 bits; `inf`, `-inf` and `nan` too.
  [[nodiscard]] double real() const;
  /// Text that is not empty; a number counts as its spelling.
  [[nodiscard]] std::string text() const;
  /// Text of letters, digits, '_', '-' and '.', at most 64 of them.
  [[nodiscard]] std::string identifier() const;
  /// Entries of a list that is not empty, each named like the list.
  [[nodiscard]] std::vector<Value> list() const;

  [[noreturn]] void fail(const std::string& message) const;
  /// "'cp': expected a whole number, found 'x'".
  [[noreturn]] void fail_type(std::string_view expected) const;

 private:
  /// A scalar without quotes; quoted ones are text, even if they look like numbers.
  [[nodiscard]] bool is_plain() const;

  YAML::Node node_;
  SourceLocation where_;
  std::string name_;
};

/// A map whose keys were checked: none is repeated, and every one is known (section inject: every
/// key is an identifier).
class Map {
 public:
  /// Throws InputError when the value is no map, or at the first bad key.
  Map(const Value& value, Section section);

  [[nodiscard]] std::optional<Value> find(std::string_view key) const;
  /// Throws InputError when the key is missing.
  [[nodiscard]] Value require(std::string_view key) const;
  /// In the order of the file.
  [[nodiscard]] const std::vector<Value>& values() const noexcept { return values_; }
  [[nodiscard]] const SourceLocation& where() const noexcept { return where_; }

 private:
  void check_key(const std::string& key, const SourceLocation& where) const;

  Section section_;
  SourceLocation where_;
  std::vector<Value> values_;
};

/// One of the words that name() gives to the enumerators of `all`, an array or a vector of them.
template <class Enums>
[[nodiscard]] typename Enums::value_type choice(const Value& value, const Enums& all) {
  const std::string word = value.text();
  std::vector<std::string> known;
  known.reserve(all.size());
  // Qualified: name() for every enum is declared in namespace cpverify.
  for (const auto candidate : all) known.emplace_back(cpverify::name(candidate));
  for (std::size_t i = 0; i < all.size(); ++i) {
    if (known[i] == word) return all[i];
  }
  value.fail(unknown_word(value.name(), word, known));
}

/// A list of such words, each at most once.
template <class Enums>
[[nodiscard]] std::vector<typename Enums::value_type> choices(const Value& value,
                                                              const Enums& all) {
  std::vector<typename Enums::value_type> chosen;
  for (const Value& entry : value.list()) {
    const auto enumerator = choice(entry, all);
    for (const auto earlier : chosen) {
      if (earlier == enumerator) entry.fail("'" + entry.text() + "' is listed twice");
    }
    chosen.push_back(enumerator);
  }
  return chosen;
}

}  // namespace cpverify::scenario
