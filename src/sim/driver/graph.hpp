#pragma once

#include <cstddef>
#include <variant>
#include <vector>

#include "gpu/driver_types.hpp"
#include "sim/driver/streams.hpp"
#include "sim/driver/work.hpp"

namespace cpverify::sim {

struct EventNode {
  gpu::CuEvent event = nullptr;
  bool is_wait = false;
};

/// What a node does when its graph runs; nothing for an empty node.
struct NodeTask {
  std::variant<std::monostate, Work, EventNode> body;
  WorkName name;
  Context* context = nullptr;
  gpu::CuFunction function = nullptr;  ///< Of a kernel node.
};

struct GraphNode {
  gpu::CuGraph graph = nullptr;
  NodeTask task;
  std::vector<gpu::CuGraphNode> after;
};

struct Graph {
  const Context* context = nullptr;
  std::vector<gpu::CuGraphNode> nodes;  ///< Each after those that it comes after.
};

/// An instantiated graph: a copy of its nodes.
struct GraphExec {
  struct Node {
    NodeTask task;
    std::vector<std::size_t> after;
    gpu::CuGraphNode origin = nullptr;
  };
  const Context* context = nullptr;
  std::vector<Node> nodes;
  std::vector<Stream*> branches;  ///< Streams of their own for what runs beside the first branch.
  Marker last;                    ///< End of the last launch: launches do not overlap.
};

}  // namespace cpverify::sim
