#include "sim/machine/handlers.hpp"

#include <array>
#include <cstddef>

#include "sim/isa/insn.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/machine/lanes.hpp"

namespace cpverify::sim {

// One specialisation per row, in the execute_<class>.cpp files: a row without one does not link.
#define INSN(id, ...) \
  template <>         \
  Handler select<Op::id>(const Form& form);
#include "sim/isa/instructions.inc"
#undef INSN

namespace {

using Selector = Handler (*)(const Form&);

constexpr auto kSelectors = std::to_array<Selector>({
#define INSN(id, ...) &select<Op::id>,
#include "sim/isa/instructions.inc"
#undef INSN
});
static_assert(kSelectors.size() == kOpCount);

}  // namespace

Handler find_handler(const Form& form) {
  return kSelectors[static_cast<std::size_t>(form.op)](form);
}

}  // namespace cpverify::sim
