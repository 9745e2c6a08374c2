#pragma once

#include <cstdint>
#include <string>

#include "sim/isa/insn.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/machine/warp.hpp"

/// Independent thread scheduling: lanes that a branch separates form fragments of their warp. One
/// fragment runs at a time: the warp's active lanes. The others are in the warp's table. They meet
/// at `.sync` instructions only.
namespace cpverify::sim {

/// Makes all lanes of a warp that begins one fragment.
void start_fragments(Warp& warp);

/// Takes the fragment at a place, where there is one, out of the table: it runs now.
void load_fragment(Warp& warp, std::uint32_t place);

/// Puts the fragment that has run back, and lets those go on that have met. When none of the warp
/// can go on, it is reported and the launch is aborted.
void store_fragment(Warp& warp);

[[nodiscard]] bool is_fragment_ready(const Warp& warp, std::uint32_t place) noexcept;

/// Before an instruction: false when the running lanes wait there for others. Lanes that are not
/// meant, or are in another group, are split off.
[[nodiscard]] bool arrive_fragment(Warp& warp, const Insn* insn);

/// Branches, joins and exits.
[[nodiscard]] bool is_fragment_control(Op op) noexcept;

/// Executes an instruction for the running lanes of a mask that is not empty, as its handler does,
/// but for branches, joins and exits.
const Insn* step_fragment(Warp& warp, const Insn* insn, std::uint32_t mask);

/// What all fragments of the warp do: "lanes 0-3 wait for lanes 4-31 at a.cu:12, ...". `doing` is
/// the word for those that run: "are".
[[nodiscard]] std::string describe_fragments(const Warp& warp, const std::string& doing);

}  // namespace cpverify::sim
