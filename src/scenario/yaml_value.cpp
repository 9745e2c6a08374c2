#include "scenario/yaml_value.hpp"

#include <algorithm>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <yaml-cpp/yaml.h>

#include "cpverify/error.hpp"
#include "scenario/schema.hpp"
#include "support/nearest.hpp"

namespace cpverify::scenario {
namespace {

constexpr std::size_t kShownBytes = 60;
constexpr std::size_t kMaxIdentifierBytes = 64;

bool is_digit(char c) noexcept {
  return c >= '0' && c <= '9';
}

/// -?(0|[1-9][0-9]*): no sign '+', octal, hexadecimal, exponent or separators, which YAML versions
/// read differently.
bool is_whole_number(std::string_view text) noexcept {
  if (!text.empty() && text.front() == '-') text.remove_prefix(1);
  if (text.empty() || (text.size() > 1 && text.front() == '0')) return false;
  return std::all_of(text.begin(), text.end(), is_digit);
}

bool is_identifier(std::string_view text) noexcept {
  const auto is_allowed = [](char c) {
    return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' ||
           c == '-' || c == '.';
  };
  return !text.empty() && text.size() <= kMaxIdentifierBytes &&
         std::all_of(text.begin(), text.end(), is_allowed);
}

SourceLocation locate(const YAML::Node& node, const SourceLocation& fallback) {
  const YAML::Mark mark = node.Mark();
  // The parser puts an empty value at whatever follows it, which is not what the user got wrong.
  if (mark.is_null() || node.IsNull()) return fallback;
  return {fallback.file, mark.line + 1, mark.column + 1};
}

/// The section that has `key`, when it is exactly one.
std::optional<std::string_view> home_of(const std::string& key) {
  std::optional<std::string_view> home;
  for (const SectionKeys& section : schema()) {
    if (std::find(section.keys.begin(), section.keys.end(), key) == section.keys.end()) continue;
    if (home) return std::nullopt;
    home = section.name;
  }
  return home;
}

}  // namespace

std::string in_quotes(std::string_view word) {
  std::string shown;
  for (const char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    // Cut between characters only: 10xxxxxx continues a UTF-8 character.
    if (shown.size() >= kShownBytes && (byte & 0xc0U) != 0x80U) {
      shown += "...";
      break;
    }
    shown += byte < 0x20 || byte == 0x7f ? '?' : c;
  }
  return fmt::format("'{}'", shown);
}

std::string unknown_word(std::string_view what, std::string_view word,
                         const std::vector<std::string>& known) {
  const std::string guess = did_you_mean(word, known);
  return fmt::format("unknown {} {}{} expected one of: {}", what, in_quotes(word),
                     guess.empty() ? ";" : guess, fmt::join(known, ", "));
}

Value::Value(const YAML::Node& node, const SourceLocation& where, std::string name)
    : node_{node}, where_{locate(node_, where)}, name_{std::move(name)} {}

bool Value::is_plain() const {
  return node_.IsScalar() && node_.Tag() == "?";
}

std::int64_t Value::whole_number(const Range& range) const {
  if (!is_plain() || !is_whole_number(node_.Scalar())) fail_type("a whole number");
  const std::string& text = node_.Scalar();
  std::int64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || number < range.min || number > range.max) {
    fail(fmt::format("'{}' is {}; expected {} to {}{}", name_, text.substr(0, kShownBytes),
                     range.min, range.max, range.why));
  }
  return number;
}

std::uint64_t Value::seed() const {
  if (!is_plain() || !is_whole_number(node_.Scalar())) fail_type("a whole number");
  const std::string& text = node_.Scalar();
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{}) {
    fail(fmt::format("'{}' is {}; expected 0 to 2^64 - 1", name_, text.substr(0, kShownBytes)));
  }
  return number;
}

float Value::number(float min, float max) const {
  if (!is_plain()) fail_type("a number");
  const std::string& text = node_.Scalar();
  float number = 0.0F;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc::invalid_argument || end != text.data() + text.size()) {
    fail_type("a number");
  }
  // Written so that NaN fails.
  if (error != std::errc{} || !(number > min && number <= max)) {
    fail(fmt::format("'{}' is {}; expected more than {} and at most {}", name_,
                     text.substr(0, kShownBytes), min, max));
  }
  return number;
}

double Value::real() const {
  if (!is_plain()) fail_type("a number");
  const std::string& text = node_.Scalar();
  double number = 0.0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc{} || end != text.data() + text.size()) fail_type("a number");
  return number;
}

std::string Value::text() const {
  if (!node_.IsScalar()) fail_type("text");
  if (node_.Scalar().empty()) fail(fmt::format("'{}' is empty", name_));
  return node_.Scalar();
}

std::string Value::identifier() const {
  const std::string word = text();
  if (!is_identifier(word)) {
    fail(fmt::format("'{}' is {}; expected at most {} letters, digits, '_', '-' and '.'", name_,
                     in_quotes(word), kMaxIdentifierBytes));
  }
  return word;
}

std::vector<Value> Value::list() const {
  if (!node_.IsSequence()) fail_type("a list");
  if (node_.size() == 0)
    fail(fmt::format("'{}' is an empty list; expected one entry or more", name_));
  std::vector<Value> entries;
  entries.reserve(node_.size());
  for (const auto& entry : node_) entries.emplace_back(entry, where_, name_);
  return entries;
}

void Value::fail(const std::string& message) const {
  throw InputError{where_, message};
}

void Value::fail_type(std::string_view expected) const {
  std::string found = "nothing";
  if (node_.IsMap()) found = "a map";
  if (node_.IsSequence()) found = "a list";
  if (node_.IsScalar())
    found = is_plain() ? in_quotes(node_.Scalar()) : "the text " + in_quotes(node_.Scalar());
  fail(fmt::format("'{}': expected {}, found {}", name_, expected, found));
}

Map::Map(const Value& value, Section section) : section_{section}, where_{value.where()} {
  if (!value.node().IsMap()) value.fail_type("a map of keys and values");
  for (const auto& entry : value.node()) {
    const Value key{entry.first, where_, "key"};
    const std::string word = key.text();
    check_key(word, key.where());
    values_.emplace_back(entry.second, key.where(), word);
  }
}

void Map::check_key(const std::string& key, const SourceLocation& where) const {
  if (find(key)) throw InputError{where, fmt::format("key {} is given twice", in_quotes(key))};
  const SectionKeys& known = keys_of(section_);
  const bool is_known = std::find(known.keys.begin(), known.keys.end(), key) != known.keys.end();
  if (is_known || (section_ == Section::inject && is_identifier(key))) return;
  std::string hint = did_you_mean(key, known.keys);
  const std::optional<std::string_view> home = home_of(key);
  if (home) hint = fmt::format("; it is a key of '{}';", *home);
  throw InputError{where,
                   fmt::format("unknown key {} in '{}'{} allowed: {}", in_quotes(key), known.name,
                               hint.empty() ? ";" : hint, fmt::join(known.keys, ", "))};
}

std::optional<Value> Map::find(std::string_view key) const {
  for (const Value& value : values_) {
    if (value.name() == key) return value;
  }
  return std::nullopt;
}

Value Map::require(std::string_view key) const {
  std::optional<Value> value = find(key);
  if (!value) {
    throw InputError{where_, fmt::format("missing key '{}' in '{}'", key, keys_of(section_).name)};
  }
  return *std::move(value);
}

}  // namespace cpverify::scenario
