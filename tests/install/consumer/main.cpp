// A project that uses the installed library: judges one shipped scenario and prints the outcome.
#include <cstdio>
#include <exception>
#include <string>

#include "cpverify/scenario.hpp"
#include "cpverify/verdict.hpp"
#include "cpverify/verify.hpp"

int main() {
  try {
    const cpverify::Scenario scenario =
        cpverify::load_scenario(std::string{SCENARIO_DIR} + "/chunked_prefix.yaml");
    cpverify::VerifyOptions options;
    options.kernel_directory = KERNEL_DIR;
    const cpverify::Verdict verdict = cpverify::verify(scenario, options);
    std::printf("%s: %s, %zu cells\n", verdict.scenario.c_str(),
                std::string{cpverify::name(verdict.outcome)}.c_str(), verdict.cells.size());
    return verdict.outcome == cpverify::Outcome::passed ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "consumer: %s\n", error.what());
    return 2;
  }
}
