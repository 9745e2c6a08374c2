#include "layout/cost.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "layout/intervals.hpp"
#include "layout/splits.hpp"

namespace cpverify::layout {
namespace {

/// Keys are any set, queries an interval: each key is seen by the queries from key - diagonal on.
std::int64_t pairs_by_key(const TokenSet& queries, const TokenSet& keys, std::int64_t diagonal) {
  const std::int64_t first_bound = queries.begin + diagonal + 1;  // Before it: seen by all.
  const TokenSet by_all = clip(keys, keys.begin, first_bound);
  const TokenSet by_some = clip(keys, first_bound, queries.end + diagonal);
  return count(by_all) * (queries.end - queries.begin) + count(by_some) * (queries.end + diagonal) -
         sum(by_some);
}

/// Queries are any set, keys an interval.
std::int64_t pairs_by_query(const TokenSet& queries, const TokenSet& keys, std::int64_t diagonal) {
  const TokenSet some = clip(queries, keys.begin - diagonal, keys.end - diagonal);
  const TokenSet all = clip(queries, keys.end - diagonal, queries.end);
  return sum(some) + count(some) * (diagonal + 1 - keys.begin) +
         count(all) * (keys.end - keys.begin);
}

/// Bytes of a row of K and V on a rank.
std::int64_t kv_row_bytes(const CostModel& model) {
  return 2 * model.heads_kv * model.head_dim * model.element_bytes;
}

class Exchanges {
 public:
  Exchanges(const BatchSplit& batch, const CostModel& model)
      : batch_{batch}, spec_{batch.spec()}, model_{model}, rows_{batch.rows_per_rank()} {}

  std::vector<Exchange> list() {
    if (batch_.num_ranks() == 1 || !batch_.is_split()) return {};
    switch (spec_.kind) {
      case SplitKind::zigzag:
      case SplitKind::zigzag_combined:
      case SplitKind::contiguous:
        add_gathers(largest_rows());
        break;
      case SplitKind::interleave:
        add_gathers(capacity("local rows"));
        break;
      case SplitKind::dcp:
      case SplitKind::dcp_virtual:
        add_partials(batch_.num_tokens(), spec_.dcp);
        break;
      case SplitKind::pcp_head_tail:
        add_gathers(capacity("local rows"));
        add_context();
        break;
      case SplitKind::pcp_virtual_batch:
        add_gathers(largest_rows());
        if (spec_.dcp > 1) add_partials(decode_tokens(), spec_.dcp);
        break;
      case SplitKind::ring:
        add_ring(spec_.cp, 1);
        break;
      case SplitKind::ulysses:
        add_head_exchange(spec_.cp);
        break;
      case SplitKind::ulysses_ring:
        add_head_exchange(spec_.ulysses);
        add_ring(spec_.cp / spec_.ulysses, spec_.ulysses);
        break;
      case SplitKind::single:
        break;
    }
    return std::move(exchanges_);
  }

 private:
  [[nodiscard]] std::int64_t largest_rows() const {
    return *std::max_element(rows_.begin(), rows_.end());
  }
  [[nodiscard]] std::int64_t capacity(std::string_view name) const {
    for (const Workspace& workspace : batch_.workspaces()) {
      if (workspace.name == name) return workspace.capacity_rows;
    }
    return 0;
  }
  [[nodiscard]] std::int64_t decode_tokens() const {
    std::int64_t tokens = 0;
    for (const SplitRow& row : batch_.rows()) tokens += row.is_decode ? row.scheduled : 0;
    return tokens;
  }
  [[nodiscard]] std::int64_t query_row_bytes() const {
    return model_.heads_q * model_.head_dim * model_.element_bytes;
  }

  void add(std::string what, std::string_view collective, std::int64_t group, std::int64_t bytes) {
    if (group > 1 && bytes > 0) exchanges_.push_back({std::move(what), collective, group, bytes});
  }

  /// An all-gather sends what a rank has to each of the others.
  void add_gathers(std::int64_t rows) {
    const std::int64_t others = std::int64_t{spec_.cp} - 1;
    add("K and V of new tokens", "all_gather", spec_.cp, others * rows * kv_row_bytes(model_));
    add("attention output", "all_gather", spec_.cp, others * rows * query_row_bytes());
  }

  /// Queries of all heads of the group, then the partial results.
  void add_partials(std::int64_t tokens, std::int64_t group) {
    const std::int64_t others = group - 1;
    const std::int64_t rows = tokens * others;
    add("queries", "all_gather", group, rows * query_row_bytes());
    const std::int64_t lse_bytes = rows * model_.heads_q * 4;
    if (model_.is_packed_combine) {
      add("partial outputs with their LSE", "all_to_all", group,
          rows * query_row_bytes() + lse_bytes);
      return;
    }
    add("LSE of all heads", "all_gather", group, lse_bytes * group);
    add("scaled partial outputs", "reduce_scatter", group, rows * query_row_bytes());
  }

  /// Chunked context and decode of K1: tokens over P, heads over D, and back.
  void add_context() {
    std::int64_t tokens = 0;
    for (const SplitRow& row : batch_.rows()) tokens += row.computed > 0 ? row.scheduled : 0;
    const std::int64_t over_p = std::int64_t{spec_.cp} - 1;
    add("queries over P", "all_gather", spec_.cp, over_p * tokens / spec_.cp * query_row_bytes());
    add("queries over D", "all_gather", spec_.dcp,
        (std::int64_t{spec_.dcp} - 1) * tokens * query_row_bytes());
    const std::int64_t packed = model_.heads_q * (model_.head_dim + 1) * 4;
    add("fp32 partial outputs with their LSE", "all_to_all", spec_.dcp,
        (std::int64_t{spec_.dcp} - 1) * tokens * packed);
    add("fp32 partial outputs over P", "all_gather", spec_.cp, over_p * tokens * packed);
  }

  void add_ring(std::int64_t places, std::int64_t head_parts) {
    add("K and V, once around", "send_recv", places,
        (places - 1) * capacity("travelling keys") * kv_row_bytes(model_) / head_parts);
  }

  void add_head_exchange(std::int64_t degree) {
    const std::int64_t rows = largest_rows();
    add("Q, K and V", "all_to_all", degree,
        rows * (query_row_bytes() + kv_row_bytes(model_)) * (degree - 1) / degree);
    add("attention output", "all_to_all", degree, rows * query_row_bytes() * (degree - 1) / degree);
  }

  const BatchSplit& batch_;
  const SplitSpec& spec_;
  const CostModel& model_;
  std::vector<std::int64_t> rows_;
  std::vector<Exchange> exchanges_;
};

void add_part(const AttentionPart& part, const CostModel& model, RankCost& cost) {
  const std::int64_t pairs = count_pairs(part) * part.heads.count;
  cost.pairs += pairs;
  cost.flops += 4.0 * static_cast<double>(model.head_dim) * static_cast<double>(pairs);
  const std::int64_t query_elements = count(part.queries) * part.heads.count * model.head_dim;
  cost.memory_bytes +=
      2 * query_elements * model.element_bytes + count(part.keys) * kv_row_bytes(model);
}

}  // namespace

const std::vector<Device>& all_devices() {
  static const std::vector<Device> devices{
      {"H100", 989.4, 3.35, 450.0, "NVIDIA H100 Tensor Core GPU data sheet, SXM5"},
      {"H200", 989.4, 4.8, 450.0, "NVIDIA H200 Tensor Core GPU data sheet, SXM"},
      {"B200", 2250.0, 8.0, 900.0, "NVIDIA Blackwell architecture technical brief, HGX B200"},
  };
  return devices;
}

std::int64_t count_pairs(const AttentionPart& part) noexcept {
  if (part.window > 0 && part.diagonal) {
    // What the mask shows, less what a mask `window` further down would.
    AttentionPart shown = part;
    shown.window = 0;
    AttentionPart hidden = shown;
    *hidden.diagonal -= part.window;
    return count_pairs(shown) - count_pairs(hidden);
  }
  if (!part.diagonal) return count(part.queries) * count(part.keys);
  if (part.queries.period == 1) {
    if (part.queries.end <= part.queries.begin) return 0;
    return pairs_by_key(part.queries, part.keys, *part.diagonal);
  }
  if (part.keys.period == 1) return pairs_by_query(part.queries, part.keys, *part.diagonal);
  std::int64_t pairs = 0;
  for (std::optional<std::int64_t> x = first(part.queries); x; x = next_in(part.queries, *x + 1)) {
    pairs += count(clip(part.keys, part.keys.begin, *x + *part.diagonal + 1));
  }
  return pairs;
}

BatchCost cost_of(const BatchSplit& batch, const CostModel& model) {
  BatchCost cost;
  cost.ranks.resize(batch.num_ranks());
  for (std::size_t index = 0; index < batch.rows().size(); ++index) {
    const RequestSplit split = batch.request(index);
    for (const AttentionPart& part : split.parts) add_part(part, model, cost.ranks[part.rank]);
    for (const TokenShare& share : split.rows) cost.ranks[share.rank].query_rows += share.length;
    for (const TokenShare& share : split.stored) {
      cost.ranks[share.rank].stored_tokens += share.length;
    }
  }
  for (const Workspace& workspace : batch.workspaces()) {
    const std::int64_t row = workspace.unit == RowUnit::key_value
                                 ? kv_row_bytes(model)
                                 : model.heads_q * model.head_dim * model.element_bytes;
    if (workspace.name == "local keys of the longest request") continue;  // Pages, not an array.
    cost.ranks[workspace.rank].workspace_bytes += workspace.capacity_rows * row;
  }
  double total = 0.0;
  std::int64_t busiest = 0;
  for (RankCost& rank : cost.ranks) {
    rank.stored_bytes = rank.stored_tokens * kv_row_bytes(model);
    total += static_cast<double>(rank.pairs);
    busiest = std::max(busiest, rank.pairs);
  }
  if (total > 0.0) {
    cost.balance = static_cast<double>(busiest) * static_cast<double>(cost.ranks.size()) / total;
  }
  cost.exchanges = Exchanges{batch, model}.list();
  return cost;
}

Roofline roofline(const BatchCost& cost, const Device& device, double link_gb_s) {
  Roofline times;
  for (const RankCost& rank : cost.ranks) {
    times.compute = std::max(times.compute, rank.flops / (device.tflops_16bit * 1e12));
    times.memory = std::max(times.memory,
                            static_cast<double>(rank.memory_bytes) / (device.memory_tb_s * 1e12));
  }
  const double link = (link_gb_s > 0.0 ? link_gb_s : device.link_gb_s) * 1e9;
  for (const Exchange& exchange : cost.exchanges) {
    times.network += static_cast<double>(exchange.sent_bytes) / link;
  }
  times.serial = std::max(times.compute, times.memory) + times.network;
  times.overlapped = std::max({times.compute, times.memory, times.network});
  return times;
}

}  // namespace cpverify::layout
