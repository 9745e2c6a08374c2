#pragma once

#include <cstdint>
#include <vector>

#include "sim/isa/code.hpp"

namespace cpverify::sim {

/// The immediate post-dominator of every node of a graph, by index. Node successors.size() is the
/// exit, to which every node without successors leads. kNoIndex for nodes that cannot reach it.
/// Source: Cooper, Harvey, Kennedy 2001, "A Simple, Fast Dominance Algorithm".
[[nodiscard]] std::vector<std::uint32_t> immediate_post_dominators(
    const std::vector<std::vector<std::uint32_t>>& successors);

/// Finds where the lanes that a branch has separated meet again (the branch's immediate
/// post-dominator), puts a join there, and tells the branch.
void insert_joins(Code& code);

}  // namespace cpverify::sim
