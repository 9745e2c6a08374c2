#include "sim/isa/control_flow.hpp"

#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "sim/isa/code.hpp"
#include "sim/isa/insn.hpp"
#include "sim/isa/opcode.hpp"

namespace cpverify::sim {
namespace {

using Graph = std::vector<std::vector<std::uint32_t>>;

/// Post-order of the nodes that `graph` reaches from `root`, without recursion.
std::vector<std::uint32_t> post_order(const Graph& graph, std::uint32_t root) {
  std::vector<std::uint32_t> order;
  std::vector<bool> is_seen(graph.size());
  std::vector<std::pair<std::uint32_t, std::size_t>> path{{root, 0}};
  is_seen[root] = true;
  while (!path.empty()) {
    auto& [node, next] = path.back();
    if (next == graph[node].size()) {
      order.push_back(node);
      path.pop_back();
      continue;
    }
    const std::uint32_t child = graph[node][next++];
    if (is_seen[child]) continue;
    is_seen[child] = true;
    path.emplace_back(child, 0);
  }
  return order;
}

bool is_guarded(const Insn& insn) {
  return insn.guard != 0 || insn.guard_flip != 0;
}

/// Basic blocks as index ranges of instructions.
struct Blocks {
  std::vector<std::uint32_t> begin;  ///< Ascending; one more entry: the end.
  std::vector<std::uint32_t> of;     ///< Block of each instruction.
};

Blocks find_blocks(const Code& code) {
  const std::size_t count = code.insns.size();
  std::vector<bool> is_leader(count + 1);
  is_leader[0] = true;
  for (std::size_t i = 0; i < count; ++i) {
    const Effect effect = info(code.insns[i].op).effect;
    if (effect == Effect::branch) is_leader[code.insns[i].target] = true;
    if (effect == Effect::branch || effect == Effect::exit) is_leader[i + 1] = true;
  }
  Blocks blocks;
  blocks.of.resize(count);
  for (std::size_t i = 0; i < count; ++i) {
    if (is_leader[i]) blocks.begin.push_back(static_cast<std::uint32_t>(i));
    blocks.of[i] = static_cast<std::uint32_t>(blocks.begin.size() - 1);
  }
  blocks.begin.push_back(static_cast<std::uint32_t>(count));
  return blocks;
}

Graph find_successors(const Code& code, const Blocks& blocks) {
  const std::size_t count = blocks.begin.size() - 1;
  Graph successors(count);
  for (std::size_t block = 0; block < count; ++block) {
    const Insn& last = code.insns[blocks.begin[block + 1] - 1];
    const Effect effect = info(last.op).effect;
    const bool falls_through =
        (effect != Effect::branch && effect != Effect::exit) || is_guarded(last);
    if (effect == Effect::branch) successors[block].push_back(blocks.of[last.target]);
    if (effect == Effect::exit) successors[block].push_back(static_cast<std::uint32_t>(count));
    if (falls_through) successors[block].push_back(static_cast<std::uint32_t>(block + 1));
  }
  return successors;
}

/// The dominator tree that is being built, and each node's place in post-order from the root.
struct DominatorTree {
  std::vector<std::uint32_t> parent;
  std::vector<std::uint32_t> rank;

  [[nodiscard]] std::uint32_t common_ancestor(std::uint32_t a, std::uint32_t b) const {
    while (a != b) {
      while (rank[a] < rank[b]) a = parent[a];
      while (rank[b] < rank[a]) b = parent[b];
    }
    return a;
  }
  /// The common ancestor of those of `nodes` that have a place already; kNoIndex for none.
  [[nodiscard]] std::uint32_t common_ancestor(const std::vector<std::uint32_t>& nodes) const {
    std::uint32_t best = kNoIndex;
    for (const std::uint32_t node : nodes) {
      if (parent[node] == kNoIndex) continue;
      best = best == kNoIndex ? node : common_ancestor(best, node);
    }
    return best;
  }
};

}  // namespace

std::vector<std::uint32_t> immediate_post_dominators(const Graph& successors) {
  const auto exit = static_cast<std::uint32_t>(successors.size());
  Graph predecessors(successors.size() + 1);
  for (std::uint32_t node = 0; node < exit; ++node) {
    if (successors[node].empty()) predecessors[exit].push_back(node);
    for (const std::uint32_t next : successors[node]) predecessors[next].push_back(node);
  }
  const std::vector<std::uint32_t> order = post_order(predecessors, exit);
  DominatorTree tree;
  tree.rank.assign(successors.size() + 1, kNoIndex);
  tree.parent.assign(successors.size() + 1, kNoIndex);
  for (std::uint32_t i = 0; i < order.size(); ++i) tree.rank[order[i]] = i;
  tree.parent[exit] = exit;
  for (bool has_changed = true; has_changed;) {
    has_changed = false;
    for (std::size_t i = order.size() - 1; i-- > 0;) {  // Reverse post-order, without the exit.
      const std::uint32_t node = order[i];
      const std::uint32_t best =
          successors[node].empty() ? exit : tree.common_ancestor(successors[node]);
      has_changed = has_changed || best != tree.parent[node];
      tree.parent[node] = best;
    }
  }
  tree.parent.pop_back();
  return std::move(tree.parent);
}

void insert_joins(Code& code) {
  const Blocks blocks = find_blocks(code);
  const std::vector<std::uint32_t> meets = immediate_post_dominators(find_successors(code, blocks));
  const auto block_count = static_cast<std::uint32_t>(meets.size());

  std::vector<bool> has_join(block_count);
  for (const Insn& insn : code.insns) {
    if (info(insn.op).effect != Effect::branch || !is_guarded(insn)) continue;
    const std::uint32_t meet =
        meets[blocks.of[static_cast<std::size_t>(&insn - code.insns.data())]];
    if (meet < block_count) has_join[meet] = true;
  }

  Code with;
  std::vector<std::uint32_t> new_begin(block_count);
  for (std::uint32_t block = 0; block < block_count; ++block) {
    new_begin[block] = static_cast<std::uint32_t>(with.insns.size());
    if (has_join[block]) {
      Insn join;
      join.op = Op::join;
      with.insns.push_back(join);
      with.forms.push_back({Op::join, {}});
      with.lines.push_back(code.lines[blocks.begin[block]]);
    }
    for (std::uint32_t i = blocks.begin[block]; i < blocks.begin[block + 1]; ++i) {
      with.insns.push_back(code.insns[i]);
      with.forms.push_back(code.forms[i]);
      with.lines.push_back(code.lines[i]);
    }
    Insn& last = with.insns.back();
    if (info(last.op).effect != Effect::branch || !is_guarded(last)) continue;
    // Still a block; becomes an index below, when the blocks have their places.
    last.reconverge = meets[block] < block_count ? meets[block] : kNoIndex;
  }
  for (Insn& insn : with.insns) {
    if (info(insn.op).effect != Effect::branch) continue;
    insn.target = new_begin[blocks.of[insn.target]];
    if (insn.reconverge != kNoIndex) insn.reconverge = new_begin[insn.reconverge];
  }
  code.insns = std::move(with.insns);
  code.forms = std::move(with.forms);
  code.lines = std::move(with.lines);
}

}  // namespace cpverify::sim
