#include <cstdint>
#include <string>
#include <string_view>

#include "cpverify/error.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "fuzz/targets.hpp"

namespace cpverify::fuzz {
namespace {

constexpr std::int64_t kTokens = 512;

}  // namespace

void run_scenario(std::string_view text) {
  try {
    const Scenario scenario = parse_scenario(std::string{text}, "fuzz.yaml");
    if (scenario.launch) {
      for (const LaunchBuffer& buffer : scenario.launch->buffers) {
        if (buffer.elements <= kTokens) static_cast<void>(initial_bytes(buffer, 0));
      }
      return;
    }
    std::int64_t tokens = 0;
    for (const RequestSpec& request : scenario.requests) tokens += request.total_tokens();
    if (tokens <= kTokens) static_cast<void>(make_problem(scenario));
  } catch (const InputError&) {
    return;
  }
}

}  // namespace cpverify::fuzz
