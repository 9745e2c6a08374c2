#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cpverify/dtype.hpp"
#include "cpverify/ids.hpp"
#include "cpverify/launch.hpp"  // IWYU pragma: export
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"

namespace cpverify {

/// What a buffer is for, which decides who fills it.
enum class BufferRole : std::uint8_t {
  input,      ///< The runner uploads a slice of the step's q, k or v.
  metadata,   ///< The runner uploads Buffer::values.
  workspace,  ///< Fresh: nobody may read a byte before an operation has written it.
  output,     ///< Fresh; downloaded after the step and judged.
  kv_pool,    ///< Persistent over steps; the runner owns it.
};

/// Sinks: the logit of each query head, the same for all tokens.
enum class TensorKind : std::uint8_t { q, k, v, sinks };

/// Heads [first, first + count) of a tensor.
struct HeadRange {
  std::uint32_t first = 0;
  std::uint32_t count = 0;
};

/// An input buffer's content: the flattened new tokens of the step, then pad rows; or sinks.
struct InputSlice {
  TensorKind tensor = TensorKind::q;
  HeadRange heads;
};

enum class OutputKind : std::uint8_t { attention, lse };

/// What the rows of an output buffer are said to be.
struct OutputClaim {
  OutputKind kind = OutputKind::attention;
  HeadRange heads;  ///< Query heads.
  /// Flattened step token of each row, -1 for a pad row. A pad row of attention is all zero bytes,
  /// one of lse is -inf.
  std::vector<std::int64_t> row_tokens;
};

/// A dense array of one rank.
struct Buffer {
  std::string name;  ///< Unique within the rank; the field's word, see docs/plan.md.
  BufferRole role = BufferRole::workspace;
  DType dtype = DType::u8;
  std::vector<std::int64_t> shape;    ///< Fastest dimension last.
  std::vector<std::int64_t> values;   ///< Role metadata: row-major, one per element.
  std::optional<InputSlice> input;    ///< Role input.
  std::optional<OutputClaim> output;  ///< Role output.

  [[nodiscard]] std::int64_t size_elems() const noexcept {
    std::int64_t count = 1;
    for (const std::int64_t extent : shape) count *= extent;
    return count;
  }
};

/// Reductions are sums. send_recv is one ncclSend and one ncclRecv in a group call.
enum class CollectiveKind : std::uint8_t {
  all_gather,
  all_reduce,
  reduce_scatter,
  all_to_all,
  send_recv,
};

[[nodiscard]] std::string_view name(CollectiveKind kind) noexcept;

/// `count` elements as in the NCCL call: of each rank's part for all_gather, reduce_scatter and
/// all_to_all, of the whole for all_reduce, of the message for send_recv.
struct Collective {
  CollectiveKind kind = CollectiveKind::all_gather;
  std::uint32_t group = 0;  ///< Index into Plan::groups.
  BufferRef send;
  BufferRef recv;
  std::int64_t count = 0;
  DType dtype = DType::u8;
  std::string meaning;  ///< What is carried; equal on all ranks, e.g. "kv rows of step 3".
  /// Ranks of the group that a send_recv sends to and receives from.
  std::uint32_t send_peer = 0;
  std::uint32_t recv_peer = 0;
};

/// cuMemsetD32Async: `count` 32-bit words of `pattern`.
struct Fill {
  BufferRef target;
  std::int64_t count = 0;
  std::uint32_t pattern = 0;
};

/// cuMemcpyDtoDAsync on the rank.
struct Copy {
  BufferRef source;
  BufferRef target;
  std::int64_t bytes = 0;
};

struct Operation {
  std::string label;  ///< Says what it does, e.g. "attention of the early blocks".
  std::variant<Launch, Collective, Fill, Copy> body;
  std::uint32_t stream = 0;  ///< Of the rank. Each begins when the step's inputs are uploaded.
  /// Earlier operations of the rank, by index, that it waits for besides those of its own stream.
  std::vector<std::uint32_t> after = {};
};

/// The part of every block that a rank's pools hold: of each run of `count * interleave` tokens the
/// `interleave` ones from `index * interleave` on, side by side. Source: docs/plan.md, "Shards".
struct KvShard {
  std::uint32_t count = 1;
  std::uint32_t index = 0;
  std::uint32_t interleave = 1;
};

struct RankPlan {
  RankId rank;
  std::uint32_t cp_rank = 0;
  std::uint32_t tp_rank = 0;
  KvShard kv_shard = {};
  HeadRange heads_q;
  HeadRange heads_kv;
  /// KV heads that the pools hold, where those are not heads_kv.
  std::optional<HeadRange> pool_heads = {};
  std::vector<Buffer> buffers;        ///< Indexed by BufferId.
  std::vector<Operation> operations;  ///< In order of issue.
};

struct Group {
  std::string name;             ///< "cp" of tp rank 0: "cp[tp=0]".
  std::vector<RankId> members;  ///< In the order of the group's own ranks.
};

/// What the error bound needs to know of the merging of partial results. Source: docs/numerics.md.
struct MergeNumerics {
  /// Most partials that a row is made of; 1 when nothing is merged.
  std::int64_t partials = 1;
  /// Merges one after the other that a partial goes through: partials - 1 of a ring, 1 of a merge
  /// of all at once.
  std::int64_t depth = 0;
  /// Type in which partials are handed on.
  DType partial_dtype = DType::f32;
  /// Type that weighted partials are rounded to and added up in.
  DType sum_dtype = DType::f32;
};

/// What the error bound needs to know of the attention kernel. Source: spec/numerics.md 3.2.
struct AttentionNumerics {
  DType p_dtype = DType::f32;   ///< Type that P is cast to before P.V.
  bool is_tensor_core = false;  ///< Truncating accumulation is allowed: u_acc = 2 * 2^-24.
  std::int64_t kv_tile = 32;    ///< Keys per online-softmax update.
  MergeNumerics merge = {};
};

/// One step on all ranks: pure data, no device touched.
struct Plan {
  StrategyKind strategy = StrategyKind::single;
  std::uint32_t step = 0;
  bool is_cp_on = false;
  bool is_bitwise = false;  ///< Promises the bits of strategy single.
  AttentionNumerics numerics;
  std::vector<Group> groups;
  std::vector<RankPlan> ranks;
};

/// Builds the plan of one step. Needs a scenario whose model and topology are valid together.
[[nodiscard]] Plan make_plan(const Problem& problem, std::uint32_t step, StrategyKind strategy);

}  // namespace cpverify
