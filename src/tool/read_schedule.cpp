#include "tool/read_schedule.hpp"

#include <charconv>
#include <cstddef>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cpverify/error.hpp"
#include "cpverify/schedule.hpp"
#include "support/nearest.hpp"

namespace cpverify::tool {
namespace {

SchedulePolicy read_policy(const std::string& word) {
  std::vector<std::string> known;
  for (const SchedulePolicy policy : kSchedulePolicies) {
    if (name(policy) == word) return policy;
    known.emplace_back(name(policy));
  }
  throw InputError{fmt::format("--schedule: unknown policy '{}'{}; allowed: {}", word,
                               did_you_mean(word, known), fmt::join(known, ", "))};
}

}  // namespace

ScheduleSpec read_schedule(const std::string& text) {
  constexpr std::string_view kSuffix = "+its";
  ScheduleSpec schedule;
  const bool is_independent = text.ends_with(kSuffix);
  if (is_independent) schedule.threads = ThreadScheduling::independent;
  const std::string word = is_independent ? text.substr(0, text.size() - kSuffix.size()) : text;
  const std::size_t colon = word.find(':');
  schedule.policy = read_policy(word.substr(0, colon));
  if (colon == std::string::npos) return schedule;
  if (!is_seeded(schedule.policy)) {
    throw InputError{
        fmt::format("--schedule: {} takes no seed; random and pct do", name(schedule.policy))};
  }
  const std::string digits = word.substr(colon + 1);
  const char* const end = digits.data() + digits.size();
  const auto [stop, status] = std::from_chars(digits.data(), end, schedule.seed);
  if (digits.empty() || stop != end || status != std::errc{}) {
    throw InputError{
        fmt::format("--schedule: expected a seed from 0 to 2^64 - 1 behind '{}:', found '{}'",
                    name(schedule.policy), digits)};
  }
  return schedule;
}

}  // namespace cpverify::tool
