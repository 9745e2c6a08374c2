#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

/// One instruction of the fuzz and what it means, for one lane, in words of its own: written from
/// the manual, with other formulas than the machine's.
namespace cpverify::sim::fuzz {

struct Operation {
  std::string_view name;
  /// Classes of the target and the sources: r (32 bits), f (f32), d (64 bits), h (16 bits), p
  /// (predicate).
  std::string_view classes;
  std::uint64_t (*evaluate)(std::uint64_t a, std::uint64_t b, std::uint64_t c);
};

[[nodiscard]] const std::vector<Operation>& operations();

}  // namespace cpverify::sim::fuzz
