#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cpverify/error.hpp"
#include "cpverify/scenario.hpp"

namespace cpverify::scenario {

inline constexpr std::int64_t kMaxTraceLines = 10'000'000;
inline constexpr std::int64_t kMaxFractionTerm = 1'000'000;

/// Both terms are 1 to kMaxFractionTerm.
struct Fraction {
  std::int64_t numerator = 1;
  std::int64_t denominator = 1;
};

/// "1/256", or "2" for 2/1; nothing for any other text.
[[nodiscard]] std::optional<Fraction> parse_fraction(std::string_view text);

/// Which requests of a trace to take and how to make them small.
struct TraceSpec {
  std::filesystem::path path;
  SourceLocation where;       ///< Of the file name in the scenario.
  std::int64_t first = 0;     ///< Lines to skip.
  std::int64_t requests = 0;  ///< Lines to take at most; at least one must be there.
  Fraction scale;             ///< Multiplies every length.
  std::int64_t milliseconds_per_step = 1000;
  std::int64_t hash_block_tokens = 512;  ///< Tokens behind one entry of hash_ids, before scaling.
};

/// Reads requests from a JSON-lines trace in the format of Mooncake: one object per line with
/// timestamp (ms), input_length, output_length (tokens) and hash_ids, one per block of the input;
/// equal leading ids mean equal tokens. Source: Qin et al. 2025, "Mooncake", FAST 25, and the
/// traces that its repository publishes.
///
/// Lengths become floor(length * scale), prompts at least 1. A request shares its prefix with the
/// earlier request that has the most leading ids in common, the first of several. arrival_step is
/// (timestamp - first timestamp taken) / milliseconds_per_step. Ids are "r" and the line, from 1.
/// Throws InputError at the trace's line and column.
[[nodiscard]] std::vector<RequestSpec> import_trace(const TraceSpec& spec);

}  // namespace cpverify::scenario
