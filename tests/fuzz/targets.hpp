#pragma once

#include <string_view>

/// What fuzzing feeds with hostile text, and the tests with what it found. Input errors are an
/// answer; anything else that leaves these functions, or does not return, is a defect of ours.
namespace cpverify::fuzz {

/// Reads PTX as `cpverify kernel` does, loads it, and launches each entry for a few instructions.
void run_ptx(std::string_view text);

/// Reads a scenario, and makes the steps of a small one.
void run_scenario(std::string_view text);

}  // namespace cpverify::fuzz
