#include "judge/diagnosis.hpp"

#include <cmath>
#include <limits>
#include <numbers>

#include "judge/error_bound.hpp"

namespace cpverify::judge {
namespace {

constexpr double kLog2e = std::numbers::log2e;
// ln 2 in two parts: k * kLn2High is exact for |k| < 2^11. Source: fdlibm e_exp.c uses this split.
// NOLINTNEXTLINE(modernize-use-std-numbers): not ln 2 but its upper half.
constexpr double kLn2High = 0x1.62e42feep-1;
constexpr double kLn2Low = 0x1.a39ef35793c76p-33;
/// exp overflows beyond 709.78, and no count is below e^0.
constexpr double kLargestExponent = 709.0;

}  // namespace

double counted_keys(double lse) noexcept {
  if (std::isnan(lse)) return lse;
  if (lse > kLargestExponent) return std::numeric_limits<double>::infinity();
  if (lse < -1.0) return 0.0;  // e^-1 = 0.37 already rounds to 0.
  const double exponent = std::floor(lse * kLog2e + 0.5);
  const double rest = (lse - exponent * kLn2High) - exponent * kLn2Low;
  // |rest| <= 0.347: the first term left out, rest^15 / 15!, is below 1e-19.
  double sum = 1.0;
  for (int term = 14; term >= 1; --term) sum = 1.0 + rest * sum / term;
  return std::floor(std::ldexp(sum, static_cast<int>(exponent)) + 0.5);
}

bool is_base_2(double found, double expected, double bound) noexcept {
  return !within(found, expected, bound) && within(found, expected * kLog2e, kLog2e * bound);
}

}  // namespace cpverify::judge
