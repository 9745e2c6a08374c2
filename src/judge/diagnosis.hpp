#pragma once

namespace cpverify::judge {

/// The integer nearest to exp(lse): in mode count the number of keys that a query saw. +inf above
/// the range of double, 0 for -inf, NaN for NaN. Own series, so that the bits do not depend on
/// libm; relative error below 1e-15.
[[nodiscard]] double counted_keys(double lse) noexcept;

/// True iff `found` is `expected` (natural log) in units of ln 2, within the bound so scaled, and
/// the two units can be told apart.
[[nodiscard]] bool is_base_2(double found, double expected, double bound) noexcept;

}  // namespace cpverify::judge
