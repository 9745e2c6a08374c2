#pragma once

#include "numerics/float32.hpp"
#include "sim/isa/insn.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/machine/lanes.hpp"

/// Single-precision operations with .ftz and .sat, whatever their rounding. Included by files of
/// handlers only.
namespace cpverify::sim {

/// .ftz flushes what goes in and what comes out; .sat clamps to [0, 1] and makes NaN +0.
template <class Operation, bool is_ftz, bool is_sat>
struct Modified {
  template <class... Sources>
  static float apply(Sources... sources) {
    float result =
        is_ftz ? numerics::flush_subnormal(Operation::apply(numerics::flush_subnormal(sources)...))
               : Operation::apply(sources...);
    if constexpr (is_sat) {
      // Written so that NaN and -0 fail the first comparison.
      result = result > 0.0F ? result : 0.0F;
      result = result < 1.0F ? result : 1.0F;
    }
    return result;
  }
};

template <class Operation, class... Sources>
[[nodiscard]] Handler select_modified(const Form& form) {
  if (form.modifiers.is_sat) {
    return form.modifiers.is_ftz ? &lanewise<Modified<Operation, true, true>, float, Sources...>
                                 : &lanewise<Modified<Operation, false, true>, float, Sources...>;
  }
  return form.modifiers.is_ftz ? &lanewise<Modified<Operation, true, false>, float, Sources...>
                               : &lanewise<Modified<Operation, false, false>, float, Sources...>;
}

}  // namespace cpverify::sim
