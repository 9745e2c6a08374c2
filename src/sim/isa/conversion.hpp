#pragma once

#include "sim/isa/register_file.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/isa/type.hpp"

/// The conversions that the decoder puts beside instructions whose registers have another width.
namespace cpverify::sim {

[[nodiscard]] Type unsigned_of(RowWidth width) noexcept;
[[nodiscard]] Type signed_of(RowWidth width) noexcept;
/// cvt between integer types.
[[nodiscard]] Form conversion(Type to, Type from) noexcept;

}  // namespace cpverify::sim
