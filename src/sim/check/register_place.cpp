#include "sim/check/register_place.hpp"

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "sim/isa/code.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/machine/cta.hpp"
#include "sim/machine/flow.hpp"
#include "sim/machine/warp.hpp"

namespace cpverify::sim {
namespace {

/// Lane 8m + r of ldmatrix and stmatrix addresses row r of matrix m, 16 bytes. Register m of lane l
/// holds elements 2(l%4) and 2(l%4)+1 of row l/4, or with .trans of column l/4.
RegisterPlace matrix_place(bool is_transposed, std::size_t lane, std::uint32_t byte) {
  const std::size_t row = lane % 8;
  const std::size_t column = byte / 2;
  const std::size_t major = is_transposed ? column : row;
  const std::size_t minor = is_transposed ? row : column;
  return {lane / 8, static_cast<std::uint32_t>(minor % 2 * 2 + byte % 2), major * 4 + minor / 2};
}

/// Source: PTX ISA, shfl.sync, pseudocode.
std::size_t shuffle_source(Shuffle mode, std::uint32_t lane, std::uint32_t b, std::uint32_t c) {
  const std::uint32_t segment = (c >> 8) & 31U;
  const auto limit = static_cast<std::int32_t>((lane & segment) | (c & 31U & ~segment));
  const std::uint32_t distance = b & 31U;
  const auto here = static_cast<std::int32_t>(lane);
  const auto by = static_cast<std::int32_t>(distance);
  std::int32_t from = 0;
  bool is_valid = false;
  switch (mode) {
    case Shuffle::up:
      from = here - by;
      is_valid = from >= limit;
      break;
    case Shuffle::down:
      from = here + by;
      is_valid = from <= limit;
      break;
    case Shuffle::bfly:
      from = here ^ by;
      is_valid = from <= limit;
      break;
    case Shuffle::idx:
      from = static_cast<std::int32_t>((lane & segment) | (distance & ~segment & 31U));
      is_valid = from <= limit;
      break;
  }
  return static_cast<std::size_t>(is_valid ? from : here) & 31U;
}

}  // namespace

std::size_t shuffle_source(const FlowStep& step, std::size_t lane) {
  const Warp& warp = *step.warp;
  const Form& form = warp.cta->launch->code->forms[static_cast<std::size_t>(step.insn - warp.code)];
  // shfl.sync d|p, a, b, c, membermask.
  const auto b = warp.row<const std::uint32_t>(step.insn->r[3])[lane];
  const auto c = warp.row<const std::uint32_t>(step.insn->r[4])[lane];
  return shuffle_source(form.modifiers.shuffle, static_cast<std::uint32_t>(lane), b, c);
}

RegisterPlace register_place(const FlowStep& step, std::size_t lane, std::uint32_t byte,
                             std::uint32_t width) {
  const std::string_view name = info(step.insn->op).name;
  if (name.starts_with("ldmatrix") || name.starts_with("stmatrix")) {
    const Warp& warp = *step.warp;
    const Form& form =
        warp.cta->launch->code->forms[static_cast<std::size_t>(step.insn - warp.code)];
    return matrix_place(form.modifiers.is_trans, lane, byte);
  }
  return {byte / width, byte % width, lane};
}

}  // namespace cpverify::sim
