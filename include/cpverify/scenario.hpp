#pragma once

#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cpverify/dtype.hpp"
#include "cpverify/error.hpp"
#include "cpverify/ids.hpp"
#include "cpverify/launch.hpp"
#include "cpverify/mma_accumulation.hpp"
#include "cpverify/reduction.hpp"
#include "cpverify/schedule.hpp"
#include "cpverify/system.hpp"

namespace cpverify {

enum class AttentionKind : std::uint8_t { mha, gqa, mqa };

/// One attention layer. num_heads_q is a multiple of num_heads_kv; query head h reads KV head
/// h / (num_heads_q / num_heads_kv).
struct ModelSpec {
  AttentionKind attention = AttentionKind::gqa;
  std::uint32_t num_heads_q = 4;
  std::uint32_t num_heads_kv = 2;
  std::uint32_t head_dim = 64;
  DType dtype = DType::bf16;
  float softmax_scale = 0.125F;  ///< Scale on q.k; default 1/sqrt(head_dim).
};

/// Which ranks divide a cache among themselves: those of a decode group, or all of a prefill and a
/// decode group together, shard cp_rank * dcp + dcp_rank, or those of a decode group that itself
/// spans prefill ranks, `dcp` of them counted with cp_rank first. Source: vLLM from July 2026 on;
/// vLLM before, vllm-ascend's design document; vLLM from July 2026 on with prefill ranks.
enum class KvSharding : std::uint8_t { dcp, pcp_dcp, dcp_over_pcp };

/// World = cp * tp ranks; world rank = cp_rank * tp + tp_rank, so a CP group is strided by tp.
/// Source: spec of SGLang's layout, attention TP innermost.
struct TopologySpec {
  std::uint32_t cp = 1;
  std::uint32_t tp = 1;
  /// Ranks of a decode context-parallel group: consecutive ranks of a tensor-parallel one; with
  /// dcp_over_pcp cp ranks, or all.
  std::uint32_t dcp = 1;
  KvSharding kv_sharding = KvSharding::dcp;
  /// Consecutive tokens that one shard holds; divides block_size.
  std::uint32_t kv_interleave = 1;

  /// Parts into which strategies that shard the cache divide it.
  [[nodiscard]] std::uint32_t kv_shards() const noexcept {
    return kv_sharding == KvSharding::pcp_dcp ? dcp * cp : dcp;
  }
};

/// What the sharded part of a row's keys is: the tokens in the cache before the step, the step's
/// own being attended locally (vLLM's FlashAttention, prefills of vllm-ascend), or all of them
/// (decode of FlashInfer, MLA and vllm-ascend).
enum class DcpVisibility : std::uint8_t { split, cached };

/// How the partials of a decode group become results for each rank's heads: LSEs are gathered,
/// outputs scaled and reduce-scattered in their own type or in f32, or all-reduced, every rank
/// taking its heads; or outputs and LSEs are exchanged in one all-to-all and merged in f32.
enum class DcpCombine : std::uint8_t { ag_rs, ag_rs_f32, ag_ar, a2a };

/// By what strategy dcp_virtual tells whose a token is, modulo the ranks of the group: its position
/// in the request (SGLang's Triton backend), or its virtual slot (SGLang's write kernel for MLA).
enum class DcpOwner : std::uint8_t { position, slot };

struct DcpSpec {
  DcpVisibility visibility = DcpVisibility::split;
  DcpCombine combine = DcpCombine::ag_rs;
  DcpOwner owner = DcpOwner::position;
};

/// What the allocator hands out: whole blocks, or single slots in any order, which makes every slot
/// a block of the tables.
enum class CacheUnit : std::uint8_t { block, slot };

/// Whose blocks are handed out a second time: nobody's, or those of finished requests.
enum class CacheReuse : std::uint8_t { never, finished };

/// The paged KV pool of every rank: [num_blocks, tokens per block, num_heads_kv of the rank,
/// head_dim]. Block 0 is the null block: never handed out, never written.
struct CacheSpec {
  /// Tokens of a block on one rank. Tables are of blocks of block_size * kv_shards tokens: a rank
  /// that shares them holds block_size of each, a rank that does not all.
  std::uint32_t block_size = 16;
  std::uint32_t num_blocks =
      0;  ///< 0: just enough for the requests, plus the null block and 4 free ones.
  std::optional<std::uint64_t> shuffle_seed;  ///< Hand out block ids in a seeded random order.
  CacheUnit unit = CacheUnit::block;
  CacheReuse reuse = CacheReuse::never;
  SourceLocation where;  ///< Of num_blocks, or of the section without it.
};

/// The first `tokens` tokens of a request are those of another request.
struct SharedPrefix {
  RequestId request;
  std::int64_t tokens = 0;
};

struct RequestSpec {
  std::string id;
  std::int64_t cached_prefix = 0;  ///< Tokens whose K/V is in the pool before step 0; not computed.
  std::optional<SharedPrefix> shared_prefix;
  std::int64_t prompt = 0;  ///< New prompt tokens, after cached_prefix; includes shared ones.
  std::int64_t decode = 0;  ///< Tokens generated after the prompt, one per step.
  std::int64_t arrival_step = 0;
  SourceLocation where;

  /// All tokens whose K/V this request ever holds.
  [[nodiscard]] std::int64_t total_tokens() const noexcept {
    return cached_prefix + prompt + decode;
  }
};

struct SchedulerSpec {
  std::int64_t max_batched_tokens = 0;  ///< Token budget of one step; 0 means no limit.
};

struct PaddingSpec {
  std::int64_t token_multiple = 1;  ///< Input rows of a step are padded up to a multiple of this.
};

/// random: seeded values. count: q = 0, so exp(LSE) is the number of visible keys.
/// poison: random's values, with NaN in pads, page tails, free pages and fresh buffers.
enum class DataMode : std::uint8_t { random, count, poison };

struct DataSpec {
  std::vector<DataMode> modes{DataMode::random, DataMode::count, DataMode::poison};
  std::uint64_t seed = 0;
};

enum class StrategyKind : std::uint8_t {
  single,
  zigzag,
  zigzag_combined,
  interleave,
  contiguous,
  dcp,
  dcp_virtual,
  pcp_dcp,
  pcp_head_tail,
  pcp_virtual_batch,
  ring,
  ring_contiguous,
  ulysses,
  launch,  ///< No strategy: the kernels of Scenario::launch.
};

/// Which attention kernel: automatic takes tensor cores for 16-bit types and FMA for f32. Hopper is
/// for sm_90a, and there only where nvcc has built it.
enum class AttentionKernel : std::uint8_t { automatic, fma, mma, hopper };

/// The judge's checks, in the order in which they are judged.
enum class Check : std::uint8_t {
  metadata,     ///< Plan arrays equal the integer oracle.
  collectives,  ///< All ranks of a group agree on kind, count, dtype, order and meaning.
  memcheck,     ///< No out-of-bounds, misaligned or use-after-free access.
  initcheck,    ///< No use of bytes that nobody wrote.
  racecheck,    ///< No two accesses of a launch in no order, at least one of them a write.
  synccheck,    ///< No deadlock; barriers and warp-wide instructions are used as they must be.
  nancheck,     ///< No kernel stores a NaN that arithmetic made, or plus infinity.
  kv_pool,      ///< Pool bytes, write set, null block.
  count,        ///< Mode count: exp(LSE) is the number of visible keys.
  poison,       ///< Mode poison: outputs bit-equal to mode random.
  lse,          ///< LSE within its bound.
  output,       ///< Output within its bound.
  bitwise,      ///< CP output bit-equal to strategy single.
  determinism,  ///< A second run gives the same digest.
};

/// A defect put into the subject on purpose; see docs/scenario.md for the names.
struct InjectSpec {
  std::string defect;
  std::map<std::string, std::int64_t> parameters;
  SourceLocation where;
};

/// A finding that must occur. Empty fields match anything; `detail` must be contained in the
/// finding's detail.
struct ExpectedFinding {
  std::optional<Check> check;
  std::map<std::string, std::string> fields;  ///< Field name of Finding to its text.
  SourceLocation where;
};

/// A configuration rule that must refuse a cell; see docs/configuration_rules.md for the names.
struct ExpectedRule {
  std::string id;
  SourceLocation where;
};

struct Scenario {
  std::filesystem::path path;
  std::string name;  ///< File name without extension unless the file says otherwise.
  std::string description;
  std::optional<SystemSpec> system;  ///< None: no configuration rules are asked.
  ModelSpec model;
  TopologySpec topology;
  std::vector<StrategyKind> strategies{StrategyKind::single, StrategyKind::zigzag};
  AttentionKernel attention_kernel = AttentionKernel::automatic;
  DcpSpec dcp;
  CacheSpec cache;
  std::vector<RequestSpec> requests;
  SchedulerSpec scheduler;
  PaddingSpec padding;
  DataSpec data;
  ScheduleSpec schedule;                                          ///< Of the simulated GPUs.
  MmaAccumulation mma_accumulation = MmaAccumulation::fma_chain;  ///< Of the simulated GPUs.
  ReductionSpec reduction;                                        ///< Of their collectives.
  std::vector<Check> checks;  ///< Sorted; all but racecheck and nancheck by default.
  std::optional<InjectSpec> inject;
  /// Takes the place of the attention problem: model to padding, and inject, are not read.
  std::optional<LaunchSpec> launch;
  std::vector<ExpectedFinding> expect;  ///< Empty: the scenario must be clean.
  /// Not empty: exactly these rules refuse the cells that are refused.
  std::vector<ExpectedRule> expect_refused;

  /// Tokens of one block of the tables: the block size of all shards together, or a slot.
  [[nodiscard]] std::int64_t block_tokens() const noexcept {
    return cache.unit == CacheUnit::slot ? 1
                                         : std::int64_t{cache.block_size} * topology.kv_shards();
  }

  [[nodiscard]] bool asks_for(Check check) const {
    return std::find(checks.begin(), checks.end(), check) != checks.end();
  }
};

[[nodiscard]] std::string_view name(AttentionKind kind) noexcept;
[[nodiscard]] std::string_view name(KvSharding sharding) noexcept;
[[nodiscard]] std::string_view name(DcpVisibility visibility) noexcept;
[[nodiscard]] std::string_view name(DcpCombine combine) noexcept;
[[nodiscard]] std::string_view name(DcpOwner owner) noexcept;
[[nodiscard]] std::string_view name(CacheUnit unit) noexcept;
[[nodiscard]] std::string_view name(CacheReuse reuse) noexcept;
[[nodiscard]] std::string_view name(DataMode mode) noexcept;
[[nodiscard]] std::string_view name(StrategyKind kind) noexcept;
[[nodiscard]] std::string_view name(AttentionKernel kernel) noexcept;
[[nodiscard]] std::string_view name(Check check) noexcept;

/// The first of the scenario's strategies that cannot run it, and why; empty when all can. The
/// reader has looked; who chooses strategies afterwards must look again.
[[nodiscard]] std::string refused_strategy(const Scenario& scenario);

/// Reads a YAML scenario; docs/scenario.md lists every key. Throws InputError with file:line:column
/// at the first thing that is not a scenario, EnvironmentError never.
[[nodiscard]] Scenario load_scenario(const std::filesystem::path& path);

/// The same, from text. `path` is used in messages, as the scenario's name, and to find a trace,
/// whose file name is relative to the scenario's folder.
[[nodiscard]] Scenario parse_scenario(const std::string& text, const std::filesystem::path& path);

}  // namespace cpverify
