#include "scenario/trace.hpp"

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
#include <nlohmann/json.hpp>

#include "cpverify/error.hpp"
#include "cpverify/ids.hpp"
#include "cpverify/scenario.hpp"
#include "scenario/file_text.hpp"
#include "scenario/schema.hpp"

namespace cpverify::scenario {
namespace {

using Json = nlohmann::json;

/// The whole of Mooncake's public traces is 3 MB.
constexpr std::size_t kMaxTraceBytes = std::size_t{256} << 20;
/// Larger than any context; times kMaxFractionTerm it stays below 2^63.
constexpr std::int64_t kMaxTraceNumber = std::int64_t{1} << 42;

struct TraceRow {
  std::int64_t timestamp = 0;      ///< Milliseconds.
  std::int64_t input_length = 0;   ///< Tokens.
  std::int64_t output_length = 0;  ///< Tokens.
  std::vector<std::int64_t> hash_ids;
  SourceLocation where;
};

std::int64_t number_of(const Json& json, std::string_view what, std::int64_t min,
                       const SourceLocation& where) {
  if (!json.is_number_integer()) {
    throw InputError{
        where, fmt::format("'{}': expected a whole number, found {}", what, json.type_name())};
  }
  // An unsigned number above 2^63 would read as negative.
  const bool is_huge = json.is_number_unsigned() &&
                       json.get<std::uint64_t>() > static_cast<std::uint64_t>(kMaxTraceNumber);
  const std::int64_t number = is_huge ? kMaxTraceNumber + 1 : json.get<std::int64_t>();
  if (number < min || number > kMaxTraceNumber) {
    throw InputError{where, fmt::format("'{}' is {}; expected {} to {}", what, json.dump(), min,
                                        kMaxTraceNumber)};
  }
  return number;
}

const Json& member(const Json& object, const char* key, const SourceLocation& where) {
  const auto found = object.find(key);
  if (found == object.end()) throw InputError{where, fmt::format("missing key '{}'", key)};
  return *found;
}

Json parse_json(std::string_view line, SourceLocation where) {
  try {
    return Json::parse(line);
  } catch (const Json::parse_error& error) {
    where.column = static_cast<int>(error.byte);
    throw InputError{where,
                     "not JSON; expected one object on the line, with timestamp, "
                     "input_length, output_length and hash_ids"};
  } catch (const Json::out_of_range&) {
    throw InputError{where, "a number is too large for JSON"};
  }
}

TraceRow parse_row(std::string_view line, const SourceLocation& where,
                   std::int64_t hash_block_tokens) {
  const Json json = parse_json(line, where);
  if (!json.is_object()) {
    throw InputError{where, fmt::format("expected a JSON object, found {}", json.type_name())};
  }
  TraceRow row;
  row.where = where;
  row.timestamp = number_of(member(json, "timestamp", where), "timestamp", 0, where);
  row.input_length = number_of(member(json, "input_length", where), "input_length", 1, where);
  row.output_length = number_of(member(json, "output_length", where), "output_length", 0, where);
  const Json& hash_ids = member(json, "hash_ids", where);
  if (!hash_ids.is_array()) {
    throw InputError{where,
                     fmt::format("'hash_ids': expected a list, found {}", hash_ids.type_name())};
  }
  for (const Json& id : hash_ids) row.hash_ids.push_back(number_of(id, "hash_ids", 0, where));
  const std::int64_t blocks = (row.input_length + hash_block_tokens - 1) / hash_block_tokens;
  if (blocks != static_cast<std::int64_t>(row.hash_ids.size())) {
    throw InputError{where,
                     fmt::format("'hash_ids' has {} entries; expected {}, one per {} tokens "
                                 "of input_length {}",
                                 row.hash_ids.size(), blocks, hash_block_tokens, row.input_length)};
  }
  return row;
}

/// The first line of `rest` without its line end, taken off `rest`; nothing when none is left.
std::optional<std::string_view> next_line(std::string_view& rest) {
  if (rest.empty()) return std::nullopt;
  const std::size_t end = rest.find('\n');
  std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

std::vector<TraceRow> read_rows(const TraceSpec& spec) {
  const std::string text = read_file(spec.path, spec.where, kMaxTraceBytes);
  check_is_text(text, spec.path.string());
  std::string_view rest{text};
  std::vector<TraceRow> rows;
  std::int64_t index = 0;
  for (; static_cast<std::int64_t>(rows.size()) < spec.requests; ++index) {
    const std::optional<std::string_view> line = next_line(rest);
    if (!line) break;
    if (index < spec.first) continue;
    const SourceLocation where{spec.path.string(), static_cast<int>(index + 1), 1};
    rows.push_back(parse_row(*line, where, spec.hash_block_tokens));
    if (rows.back().timestamp < rows.front().timestamp) {
      throw InputError{where, "'timestamp' is before that of the first request taken"};
    }
  }
  if (rows.empty()) {
    throw InputError{spec.where, fmt::format("trace '{}' has {} lines; none is left after the "
                                             "first {}",
                                             spec.path.string(), index, spec.first)};
  }
  return rows;
}

std::int64_t scaled(std::int64_t length, const Fraction& scale) noexcept {
  return length * scale.numerator / scale.denominator;
}

std::int64_t common_blocks(const TraceRow& one, const TraceRow& other) {
  const auto end = std::mismatch(one.hash_ids.begin(), one.hash_ids.end(), other.hash_ids.begin(),
                                 other.hash_ids.end());
  return end.first - one.hash_ids.begin();
}

std::optional<SharedPrefix> shared_prefix(const std::vector<TraceRow>& rows, std::size_t index,
                                          const TraceSpec& spec) {
  std::int64_t most = 0;
  std::size_t with = 0;
  for (std::size_t i = 0; i < index; ++i) {
    const std::int64_t blocks = common_blocks(rows[index], rows[i]);
    if (blocks > most) {
      most = blocks;
      with = i;
    }
  }
  // The last block of an input may be partly filled.
  const std::int64_t tokens =
      std::min({most * spec.hash_block_tokens, rows[index].input_length, rows[with].input_length});
  const std::int64_t kept = scaled(tokens, spec.scale);
  if (kept == 0) return std::nullopt;
  return SharedPrefix{RequestId{static_cast<std::uint32_t>(with)}, kept};
}

std::int64_t limited(std::int64_t value, std::int64_t max, std::string_view what,
                     const SourceLocation& where) {
  if (value <= max) return value;
  throw InputError{where,
                   fmt::format("{} after scaling is {}; expected at most {}", what, value, max)};
}

}  // namespace

std::optional<Fraction> parse_fraction(std::string_view text) {
  const auto term = [](std::string_view digits) -> std::optional<std::int64_t> {
    std::int64_t value = 0;
    const char* const first = digits.data();
    const char* const last = first + digits.size();
    const auto [end, error] = std::from_chars(first, last, value);
    if (error != std::errc{} || end != last || value < 1 || value > kMaxFractionTerm) {
      return std::nullopt;
    }
    return value;
  };
  const std::size_t slash = text.find('/');
  const std::optional<std::int64_t> numerator = term(text.substr(0, slash));
  const std::optional<std::int64_t> denominator = slash == std::string_view::npos
                                                      ? std::optional<std::int64_t>{1}
                                                      : term(text.substr(slash + 1));
  if (!numerator || !denominator) return std::nullopt;
  return Fraction{*numerator, *denominator};
}

std::vector<RequestSpec> import_trace(const TraceSpec& spec) {
  const std::vector<TraceRow> rows = read_rows(spec);
  std::vector<RequestSpec> requests;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const TraceRow& row = rows[i];
    RequestSpec request;
    request.id = fmt::format("r{}", row.where.line);
    request.where = row.where;
    request.prompt = limited(std::max<std::int64_t>(1, scaled(row.input_length, spec.scale)),
                             kMaxTokens, "input_length", row.where);
    request.decode =
        limited(scaled(row.output_length, spec.scale), kMaxTokens, "output_length", row.where);
    const std::int64_t waited = row.timestamp - rows.front().timestamp;
    request.arrival_step =
        limited(waited / spec.milliseconds_per_step, kMaxArrivalStep, "timestamp", row.where);
    request.shared_prefix = shared_prefix(rows, i, spec);
    requests.push_back(std::move(request));
  }
  return requests;
}

}  // namespace cpverify::scenario
