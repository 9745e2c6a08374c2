#include "reference/blocked_attention.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <stdexcept>
#include <vector>

#include <Eigen/Core>

#include "cpverify/data.hpp"
#include "cpverify/dtype.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "reference/attention.hpp"
#include "reference/attention_tile.hpp"
#include "reference/dtype_values.hpp"
#include "reference/workers.hpp"

namespace cpverify::reference {

namespace {

using Eigen::Index;

/// Rows of a query tile, queries times heads of a group; tuned with bench/reference.
constexpr Index kTileRows = 96;

/// Consecutive new tokens of one row of the step.
struct TileRange {
  std::size_t row = 0;
  std::int64_t first = 0;  ///< Among the row's new tokens.
  std::int64_t count = 0;
  std::int64_t num_keys = 0;  ///< That the last token sees.
};

/// What all functions below read.
struct StepView {
  const ModelSpec& model;
  const Step& step;
  const std::vector<RequestData>& data;
  std::size_t group = 1;  ///< Query heads per KV head.
  bool has_bounds = true;
  const std::vector<float>& sinks;
  std::vector<std::size_t> row_starts;  ///< First flattened token of each row.
};

std::size_t num_keys(const StepRow& row) {
  return static_cast<std::size_t>(row.computed + row.scheduled);
}

void check_rows(const HostRows& rows, std::size_t row_bytes, std::size_t count) {
  if (rows.row_bytes != row_bytes || rows.bytes.size() < row_bytes * count) {
    throw std::invalid_argument{"request data does not have the shape of the step"};
  }
}

void check_inputs(const StepView& view) {
  const ModelSpec& model = view.model;
  if (!view.sinks.empty() && view.sinks.size() != model.num_heads_q) {
    throw std::invalid_argument{"sinks are not one for each query head"};
  }
  if (model.num_heads_kv == 0 || model.num_heads_q % model.num_heads_kv != 0) {
    throw std::invalid_argument{"query heads are not a multiple of KV heads"};
  }
  const std::size_t head_bytes = model.head_dim * size_bytes(model.dtype);
  for (const StepRow& row : view.step.rows) {
    const RequestData& request = view.data.at(row.request.value());
    check_rows(request.q, head_bytes * model.num_heads_q, num_keys(row));
    check_rows(request.k, head_bytes * model.num_heads_kv, num_keys(row));
    check_rows(request.v, head_bytes * model.num_heads_kv, num_keys(row));
  }
}

/// Most keys first, so that no thread is left with a long tile at the end.
std::vector<TileRange> cut_tiles(const StepView& view) {
  const auto group = static_cast<std::int64_t>(view.group);
  const std::int64_t queries = std::max<std::int64_t>(kTileRows / group, 1);
  std::vector<TileRange> result;
  for (std::size_t row = 0; row < view.step.rows.size(); ++row) {
    const StepRow& step_row = view.step.rows[row];
    for (std::int64_t first = 0; first < step_row.scheduled; first += queries) {
      const std::int64_t count = std::min(queries, step_row.scheduled - first);
      result.push_back({.row = row,
                        .first = first,
                        .count = count,
                        .num_keys = step_row.computed + first + count});
    }
  }
  std::ranges::stable_sort(result, std::ranges::greater{}, &TileRange::num_keys);
  return result;
}

/// Values of `num_heads` heads of one token, to consecutive doubles.
void load_heads(const StepView& view, const std::byte* row, std::size_t first_head,
                std::size_t num_heads, double* target) {
  const std::size_t head_dim = view.model.head_dim;
  const std::size_t offset = first_head * head_dim * size_bytes(view.model.dtype);
  widen(view.model.dtype, row + offset, num_heads * head_dim, target);
}

/// Turns each value into the largest of it and those before it, of `window` in all if that is not
/// 0.
void take_window_maxima(std::int64_t window, std::vector<double>& values) {
  // Places of values that are larger than all behind them, in ascending order.
  std::deque<std::size_t> places;
  const std::vector<double> single = values;
  for (std::size_t i = 0; i < values.size(); ++i) {
    while (!places.empty() && single[places.back()] <= single[i]) places.pop_back();
    places.push_back(i);
    if (window > 0 && places.front() + static_cast<std::size_t>(window) <= i) places.pop_front();
    values[i] = single[places.front()];
  }
}

KeyValueHead load_keys(const StepView& view, const StepRow& row, std::size_t kv_head) {
  const RequestData& request = view.data[row.request.value()];
  const auto count = static_cast<Index>(num_keys(row));
  const auto head_dim = static_cast<Index>(view.model.head_dim);
  KeyValueHead keys;
  keys.k.resize(count, head_dim);
  keys.v.resize(count, view.has_bounds ? 2 * head_dim : head_dim);
  for (Index key = 0; key < count; ++key) {
    const auto position = static_cast<std::size_t>(key);
    load_heads(view, request.k.row(position), kv_head, 1, &keys.k(key, 0));
    load_heads(view, request.v.row(position), kv_head, 1, &keys.v(key, 0));
  }
  if (!view.has_bounds) return keys;
  keys.abs_k = keys.k.cwiseAbs();
  keys.v.rightCols(head_dim) = keys.v.leftCols(head_dim).cwiseAbs();
  for (Index key = 0; key < count; ++key) {
    keys.max_abs_value.push_back(keys.v.row(key).tail(head_dim).maxCoeff());
  }
  take_window_maxima(view.model.sliding_window, keys.max_abs_value);
  return keys;
}

void load_queries(const StepView& view, const TileRange& range, std::size_t kv_head,
                  QueryTile& tile) {
  const StepRow& row = view.step.rows[range.row];
  const RequestData& request = view.data[row.request.value()];
  tile.group = static_cast<Index>(view.group);
  tile.first_num_keys = row.computed + range.first + 1;
  tile.q.resize(range.count * tile.group, static_cast<Index>(view.model.head_dim));
  for (std::int64_t query = 0; query < range.count; ++query) {
    const auto position = static_cast<std::size_t>(row.computed + range.first + query);
    load_heads(view, request.q.row(position), kv_head * view.group, view.group,
               &tile.q(query * tile.group, 0));
  }
  tile.window = view.model.sliding_window;
  tile.soft_cap = static_cast<double>(view.model.soft_cap);
  tile.sinks.resize(view.sinks.empty() ? 0 : tile.group);
  for (Index head = 0; head < tile.sinks.size(); ++head) {
    const std::size_t first = kv_head * view.group;
    tile.sinks[head] = static_cast<double>(view.sinks[first + static_cast<std::size_t>(head)]);
  }
  // Exact: 24 bits of the scale times at most 24 bits of q fit into a double's 53.
  tile.q *= static_cast<double>(view.model.softmax_scale);
}

void store(const StepView& view, const TileRange& range, std::size_t kv_head,
           const TileResult& tile, StepReference& result) {
  const std::size_t head_dim = view.model.head_dim;
  const auto dim = static_cast<Index>(head_dim);
  Index row = 0;
  for (std::int64_t query = 0; query < range.count; ++query) {
    const std::size_t token =
        view.row_starts[range.row] + static_cast<std::size_t>(range.first + query);
    for (std::size_t head = kv_head * view.group; head < (kv_head + 1) * view.group; ++head) {
      const std::size_t target = token * view.model.num_heads_q + head;
      const double* const values = &tile.out(row, 0);
      std::copy_n(values, head_dim, result.out.data() + target * head_dim);
      result.lse[target] = tile.lse[row];
      if (view.has_bounds) {
        std::copy_n(values + dim, head_dim, result.abs_mass.data() + target * head_dim);
        result.max_abs_score[target] = tile.max_abs_score[row];
      }
      ++row;
    }
  }
}

StepReference make_result(const StepView& view) {
  const ModelSpec& model = view.model;
  StepReference result;
  result.num_tokens = view.step.num_tokens();
  result.num_heads_q = model.num_heads_q;
  result.head_dim = model.head_dim;
  result.has_sinks = !view.sinks.empty();
  const std::size_t scalars = static_cast<std::size_t>(result.num_tokens) * model.num_heads_q;
  result.out.resize(scalars * model.head_dim);
  result.lse.resize(scalars);
  if (view.has_bounds) {
    result.abs_mass.resize(scalars * model.head_dim);
    result.max_abs_score.resize(scalars);
    result.max_abs_value.resize(scalars);
  }
  for (const StepRow& row : view.step.rows) {
    for (std::int64_t index = 0; index < row.scheduled; ++index) {
      const std::int64_t keys = row.computed + index + 1;
      const std::int64_t window = model.sliding_window;
      result.num_keys.push_back(window > 0 ? std::min(keys, window) : keys);
    }
  }
  return result;
}

/// max |v| over the visible keys of every query of one row, one KV head.
void store_max_abs_values(const StepView& view, std::size_t row, std::size_t kv_head,
                          const std::vector<double>& max_abs_value, StepReference& result) {
  const auto scheduled = static_cast<std::size_t>(view.step.rows[row].scheduled);
  for (std::size_t index = 0; index < scheduled; ++index) {
    const std::size_t token = view.row_starts[row] + index;
    const auto last_key = static_cast<std::size_t>(view.step.rows[row].computed) + index;
    for (std::size_t head = kv_head * view.group; head < (kv_head + 1) * view.group; ++head) {
      result.max_abs_value[token * view.model.num_heads_q + head] = max_abs_value[last_key];
    }
  }
}

/// All queries of one KV head. K and V of one head at a time are held in fp64.
void attend_head(const StepView& view, const std::vector<TileRange>& tiles, std::size_t kv_head,
                 unsigned threads, StepReference& result) {
  std::vector<KeyValueHead> keys(view.step.rows.size());
  run_workers(keys.size(), threads, [&](TaskQueue& queue) {
    for (std::size_t row = 0; queue.take(row);) {
      keys[row] = load_keys(view, view.step.rows[row], kv_head);
      if (view.has_bounds) {
        store_max_abs_values(view, row, kv_head, keys[row].max_abs_value, result);
      }
    }
  });
  run_workers(tiles.size(), threads, [&](TaskQueue& queue) {
    AttentionTile attention;
    QueryTile queries;
    TileResult tile;
    for (std::size_t index = 0; queue.take(index);) {
      load_queries(view, tiles[index], kv_head, queries);
      attention.compute(queries, keys[tiles[index].row], tile);
      store(view, tiles[index], kv_head, tile, result);
    }
  });
}

}  // namespace

StepReference blocked_attention(const Problem& problem, const Step& step,
                                const std::vector<RequestData>& data,
                                const BlockedOptions& options) {
  const ModelSpec& model = problem.scenario.model;
  StepView view{.model = model,
                .step = step,
                .data = data,
                .group = model.num_heads_kv == 0 ? 1 : model.num_heads_q / model.num_heads_kv,
                .has_bounds = options.with_bounds,
                .sinks = options.sinks,
                .row_starts = {}};
  check_inputs(view);
  std::size_t start = 0;
  for (const StepRow& row : step.rows) {
    view.row_starts.push_back(start);
    start += static_cast<std::size_t>(row.scheduled);
  }
  fix_product_blocking();
  StepReference result = make_result(view);
  const std::vector<TileRange> tiles = cut_tiles(view);
  for (std::size_t kv_head = 0; kv_head < model.num_heads_kv; ++kv_head) {
    attend_head(view, tiles, kv_head, options.threads, result);
  }
  return result;
}

}  // namespace cpverify::reference
