#pragma once

#include <string>
#include <vector>

#include <fmt/format.h>

#include "cpverify/error.hpp"
#include "cpverify/scenario.hpp"

namespace cpverify::test {

/// A valid scenario, one section per line, so that a test replaces one line and knows where the
/// mistake is. Empty lines are left out of the text.
struct ScenarioText {
  std::string model =
      "model: {num_heads_q: 4, num_heads_kv: 2, head_dim: 64, dtype: bf16}";  // line 1
  std::string topology = "topology: {cp: 2}";                                 // line 2
  std::string cache = "cache: {block_size: 16}";                              // line 3
  std::string requests = "requests: [{id: a, prompt: 8}]";                    // line 4
  std::string rest{};                                                         // line 5

  [[nodiscard]] std::string text() const {
    std::string joined;
    for (const std::string& line : {model, topology, cache, requests, rest}) {
      if (!line.empty()) joined += line + "\n";
    }
    return joined;
  }
};

/// What the reader says of the text of file x.yaml.
inline std::string error_of(const std::string& text) {
  try {
    static_cast<void>(parse_scenario(text, "x.yaml"));
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace cpverify::test
