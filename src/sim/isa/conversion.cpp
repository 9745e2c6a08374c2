#include "sim/isa/conversion.hpp"

#include "sim/isa/opcode.hpp"
#include "sim/isa/register_file.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/isa/type.hpp"

namespace cpverify::sim {

Type unsigned_of(RowWidth width) noexcept {
  switch (width) {
    case 1:
      return Type::u8;
    case 2:
      return Type::u16;
    case 4:
      return Type::u32;
    default:
      return Type::u64;
  }
}

Type signed_of(RowWidth width) noexcept {
  switch (width) {
    case 1:
      return Type::s8;
    case 2:
      return Type::s16;
    case 4:
      return Type::s32;
    default:
      return Type::s64;
  }
}

Form conversion(Type to, Type from) noexcept {
  Form form{Op::cvt_int, {}};
  form.modifiers.type = to;
  form.modifiers.atype = from;
  return form;
}

}  // namespace cpverify::sim
