#include "layout/scenario_configuration.hpp"

#include <cstddef>
#include <cstdint>

#include "cpverify/scenario.hpp"
#include "cpverify/system.hpp"
#include "layout/configuration.hpp"
#include "layout/rule_terms.hpp"
#include "layout/splits.hpp"
#include "layout/topology.hpp"
#include "support/check.hpp"

namespace cpverify::layout {
namespace {

Combine combine_of(DcpCombine combine) noexcept {
  return combine == DcpCombine::a2a ? Combine::a2a : Combine::ag_rs;
}

void set_topology(const Scenario& scenario, StrategyKind strategy, Configuration& c) {
  const TopologySpec world = world_of(scenario.topology, strategy);
  const bool is_sharded = uses_dcp(c.strategy);
  c.cp = world.cp;
  c.dcp = is_sharded ? world.dcp : 1;
  // The world of SGLang's flag contains the ranks of its prefill groups.
  c.tp = c.system == System::sglang ? std::int64_t{world.tp} * world.cp : world.tp;
  c.interleave_size = is_sharded ? world.kv_interleave : 1;
  c.is_cache_over_cp = is_sharded && world.kv_sharding == KvSharding::pcp_dcp;
}

}  // namespace

SplitKind split_kind(StrategyKind strategy) {
  if (strategy == StrategyKind::ring_contiguous) return SplitKind::ring;
  for (const SplitKind kind : all_split_kinds()) {
    if (name(kind) == cpverify::name(strategy)) return kind;
  }
  return SplitKind::single;
}

Configuration scenario_configuration(const Scenario& scenario, StrategyKind strategy) {
  CPVERIFY_CHECK(scenario.system.has_value());
  Configuration c;
  c.system = scenario.system->system;
  c.backend = scenario.system->backend;
  for (const Feature feature : scenario.system->features) {
    c.features.set(static_cast<std::size_t>(feature));
  }
  c.strategy = split_kind(strategy);
  set_topology(scenario, strategy, c);
  c.heads_q = scenario.model.num_heads_q;
  c.heads_kv = scenario.model.num_heads_kv;
  c.head_dim = scenario.model.head_dim;
  c.block_size = scenario.cache.block_size;
  c.chunk_tokens = scenario.scheduler.max_batched_tokens;
  c.requests = static_cast<std::int64_t>(scenario.requests.size());
  if (c.dcp > 1) c.combine = combine_of(scenario.dcp.combine);
  return c;
}

}  // namespace cpverify::layout
