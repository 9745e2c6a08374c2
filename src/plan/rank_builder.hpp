#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cpverify/dtype.hpp"
#include "cpverify/ids.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"

namespace cpverify::plan {

/// The sizes that every buffer and launch of a rank is made of. Letters are those of docs/plan.md.
struct RankShape {
  DType dtype = DType::bf16;
  std::int64_t num_tokens = 0;                    ///< T.
  std::int64_t padded_rows = 0;                   ///< R.
  std::int64_t num_seqs = 0;                      ///< bs.
  std::int64_t max_pages = 0;                     ///< Columns of the block table.
  std::int64_t block_size = 0;                    ///< Tokens of a page.
  std::int64_t num_blocks = 0;                    ///< Of the pool.
  std::int64_t num_heads_q = 0;                   ///< H, of this rank.
  std::int64_t num_heads_kv = 0;                  ///< K, of this rank.
  std::int64_t head_dim = 0;                      ///< D.
  AttentionKernel kernel = AttentionKernel::fma;  ///< Never automatic.
  float softmax_scale_log2 = 0.0F;                ///< With a soft-cap, that in its place.
  float soft_cap_scale = 0.0F;                    ///< softmax_scale / soft_cap, or 0.
  bool has_sinks = false;
  std::int64_t window = 0;  ///< Keys that a query sees at most; 0: all.

  [[nodiscard]] std::int64_t q_row_elems() const noexcept { return num_heads_q * head_dim; }
  [[nodiscard]] std::int64_t kv_row_elems() const noexcept { return num_heads_kv * head_dim; }
  [[nodiscard]] std::int64_t bytes(std::int64_t elems) const noexcept {
    return elems * static_cast<std::int64_t>(size_bytes(dtype));
  }
};

[[nodiscard]] RankShape make_rank_shape(const Problem& problem, const Step& step,
                                        const RankPlan& rank);

/// The CP group of every tp rank, "cp[tp=0]" and so on.
[[nodiscard]] std::vector<Group> cp_groups(const TopologySpec& topology);

/// Slot in an unsharded pool, and position in its request, of every new token. [T]
[[nodiscard]] std::vector<std::int64_t> step_slots(const Step& step);
[[nodiscard]] std::vector<std::int64_t> step_positions(const Step& step);

/// Whether some row has tokens that were in the cache before the step.
[[nodiscard]] bool has_context(const Step& step);

/// Block ids of a row, 0 (the null block) from its last one on. [max_pages]
[[nodiscard]] std::vector<std::int64_t> block_table_line(const StepRow& row,
                                                         std::int64_t max_pages);
/// Of all rows, row-major. [bs, max_pages]
[[nodiscard]] std::vector<std::int64_t> block_table_lines(const Step& step, std::int64_t max_pages);

/// Pad rows at the end of an index, slot or claim list carry this.
inline constexpr std::int64_t kPadRow = -1;

/// `values` with `fill` appended up to `size` entries.
[[nodiscard]] std::vector<std::int64_t> padded(std::vector<std::int64_t> values, std::int64_t size,
                                               std::int64_t fill);

/// 0, then the running sum after each value. [n+1]
[[nodiscard]] std::vector<std::int64_t> prefix_sums(const std::vector<std::int64_t>& values);

/// The buffers that every strategy has.
struct CommonBuffers {
  BufferId q;
  BufferId k;
  BufferId v;
  BufferId slot_mapping;
  BufferId block_table;
  BufferId k_pool;
  BufferId v_pool;
  BufferId out;
};

/// Appends buffers and operations to the plan of one rank.
class RankBuilder {
 public:
  /// Neither argument is owned; both outlive the builder.
  RankBuilder(RankPlan& rank, const RankShape& shape) : rank_{rank}, shape_{shape} {}

  [[nodiscard]] const RankShape& shape() const noexcept { return shape_; }

  /// Values of a metadata buffer must fit its dtype and fill its shape.
  BufferId metadata(std::string name, DType dtype, std::vector<std::int64_t> shape,
                    std::vector<std::int64_t> values);
  /// The same, one-dimensional and i32.
  BufferId metadata_i32(std::string name, std::vector<std::int64_t> values);
  /// In the model's dtype.
  BufferId workspace(std::string name, std::vector<std::int64_t> shape);
  BufferId workspace(std::string name, DType dtype, std::vector<std::int64_t> shape);
  /// Attention output [rows, H, D] in the model's dtype.
  BufferId attention_output(std::string name, std::vector<std::int64_t> row_tokens);
  /// The same of `heads` in place of the rank's.
  BufferId attention_output(std::string name, std::vector<std::int64_t> row_tokens,
                            HeadRange heads);
  /// LSE output [rows, H] f32.
  BufferId lse_output(std::string name, std::vector<std::int64_t> row_tokens);
  BufferId lse_output(std::string name, std::vector<std::int64_t> row_tokens, HeadRange heads);

  CommonBuffers common(const Step& step);
  /// With other slots of the step's tokens. [T]
  CommonBuffers common(const Step& step, std::vector<std::int64_t> slots);
  /// Sinks of some query heads, f32 [heads]; nothing for a model without sinks.
  std::optional<BufferRef> sinks(HeadRange heads);
  /// Those of the rank's own.
  std::optional<BufferRef> sinks() { return sinks(rank_.heads_q); }

  /// A launch without thread blocks is left out.
  void launch(std::string label, Launch launch);
  void collective(std::string label, Collective collective);
  /// A copy of nothing is left out.
  void copy(std::string label, Copy copy);
  /// Fills a whole buffer with a 32-bit pattern; an empty buffer is left out.
  void fill(std::string label, BufferId target, std::uint32_t pattern);

 private:
  BufferId add(Buffer buffer);
  BufferId input(std::string name, TensorKind tensor, HeadRange heads);
  BufferId pool(std::string name);

  RankPlan& rank_;
  const RankShape& shape_;
};

/// Word pattern of -inf in f32.
inline constexpr std::uint32_t kNegativeInfinityBits = 0xff800000U;

}  // namespace cpverify::plan
