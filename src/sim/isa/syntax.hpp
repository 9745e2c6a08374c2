#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "cpverify/error.hpp"
#include "cpverify/observer.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/type.hpp"

namespace cpverify::sim {

enum class Space : std::uint8_t { generic, global, shared, local, constant, param };
enum class Compare : std::uint8_t {
  eq,
  ne,
  lt,
  le,
  gt,
  ge,
  lo,
  ls,
  hi,
  hs,
  equ,
  neu,
  ltu,
  leu,
  gtu,
  geu,
  num,
  nan,
};
enum class BoolOp : std::uint8_t { and_op, or_op, xor_op };
enum class Rounding : std::uint8_t { none, to_nearest, to_zero, down, up, to_nearest_away };
enum class Test : std::uint8_t { finite, infinite, number, not_a_number, normal, subnormal };
enum class Shuffle : std::uint8_t { up, down, bfly, idx };
enum class Vote : std::uint8_t { all, any, uni };
enum class Reduce : std::uint8_t { add, min, max, and_op, or_op, xor_op, inc, dec, exch };
enum class CacheOp : std::uint8_t { none, ca, cg, other };

/// The dotted suffixes of an instruction, as far as they change what it does.
struct Modifiers {
  Type type = Type::none;   ///< The first type, or the one in the row's syntax.
  Type atype = Type::none;  ///< The second type, of conversions.
  Space space = Space::generic;
  Compare compare = Compare::eq;
  BoolOp bool_op = BoolOp::and_op;
  Rounding rounding = Rounding::none;
  Shuffle shuffle = Shuffle::up;
  Vote vote = Vote::all;
  Reduce reduce = Reduce::add;
  CacheOp cache = CacheOp::none;
  Test test = Test::finite;
  Type a_element = Type::none;  ///< Of A and B, in mma forms that leave it open.
  Type b_element = Type::none;
  std::uint8_t vector = 1;      ///< Elements: 1, 2, 4 or 8.
  std::uint8_t dimensions = 0;  ///< Of a tensor.
  std::uint16_t columns = 0;    ///< N of an m64nNk16.
  MemoryOrder order = MemoryOrder::weak;
  bool is_ftz = false;
  bool is_sat = false;
  bool is_nan = false;
  bool is_trans = false;
  bool is_relu = false;
  bool is_satfinite = false;
  bool is_shift_amount = false;  ///< bfind.shiftamt
  bool is_left = false;          ///< shf.l
  bool is_wrapped = false;       ///< shf.wrap
  bool is_cta_scope = false;
  bool is_cluster_space = false;  ///< shared::cluster, not the CTA's own memory.
};

struct Form {
  Op op = Op::trap;
  Modifiers modifiers;
};

/// The row of instructions.inc that a dotted name such as "ld.global.v4.f32" is a case of. Throws
/// InputError at `where` when there is none, with the manual's section when the first word is
/// known.
[[nodiscard]] Form match_syntax(std::string_view name, const SourceLocation& where);

}  // namespace cpverify::sim
