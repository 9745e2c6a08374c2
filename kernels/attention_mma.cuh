#pragma once

#include "attention_common.cuh"
#include "attention_policy.cuh"
#include "device.cuh"
#include "dtype.cuh"
#include "shared_tile.cuh"

namespace cpverify::kernels {

// Attention on tensor cores: a CTA computes 64 query rows of one head, 16 per warp. Tiles of 32
// keys arrive by asynchronous copies in two stages: one is computed on while the other is filled.
//
// In a 16x8 accumulator fragment a lane holds columns 2 * (lane % 4) and the next, of row lane / 4
// (elements 0 and 1) and of row lane / 4 + 8 (elements 2 and 3). `half` below is 0 for the upper
// and 1 for the lower of these two rows.

inline constexpr int kCtaQueries = 64;
inline constexpr int kWarpQueries = 16;
inline constexpr int kLanesPerRow = 4;
inline constexpr int kScoreBlocks = kTileKeys / 8;

/// What one lane needs to know of its place in the work.
template <class T>
struct MmaTask {
  AttentionArguments<T> arguments;
  Sequence sequence;
  int head;
  int first_query;       ///< Of the CTA.
  int first_warp_query;  ///< Of the warp.
  unsigned shared_base;  ///< Query tile, then two stages of key tile and value tile.
};

/// Online softmax state of a lane's two rows. `sum` is over the lane's own columns until the end.
template <int kHeadDim>
struct MmaRows {
  float maximum_log2[2] = {kNegativeInfinity, kNegativeInfinity};
  float sum[2] = {0.0F, 0.0F};
  float output[kHeadDim / 8][4] = {};
};

template <int kHeadDim>
__device__ __forceinline__ unsigned stage_base(unsigned shared_base, int tile) {
  constexpr unsigned kStageBytes = 2U * SharedTile<kHeadDim>::bytes(kTileKeys);
  return shared_base + SharedTile<kHeadDim>::bytes(kCtaQueries) + (tile % 2) * kStageBytes;
}

/// Starts copying the CTA's query rows; rows beyond the sequence become zero.
template <class T, int kHeadDim>
__device__ __forceinline__ void copy_queries(const MmaTask<T>& task) {
  constexpr int kChunks = SharedTile<kHeadDim>::kChunks;
#pragma unroll
  for (int first = 0; first < kCtaQueries * kChunks; first += kCtaThreads) {
    const int row = (first + thread_index()) / kChunks;
    const int chunk = (first + thread_index()) % kChunks;
    const int query = task.first_query + row;
    const bool exists = query < task.sequence.query_len;
    const Index source = head_row(task.arguments, task.sequence, exists ? query : 0, task.head);
    copy_chunk(task.shared_base + SharedTile<kHeadDim>::offset(row, chunk),
               task.arguments.q + source * kHeadDim + chunk * 8, exists);
  }
}

/// Starts copying a tile of keys and values. Keys from kv_len on become zero without being read: a
/// weight of 0 times a NaN found in an unwritten slot would be NaN.
template <class T, int kHeadDim>
__device__ __forceinline__ void copy_tile(const MmaTask<T>& task, int tile) {
  constexpr int kChunks = SharedTile<kHeadDim>::kChunks;
  const unsigned keys = stage_base<kHeadDim>(task.shared_base, tile);
  const unsigned values = keys + SharedTile<kHeadDim>::bytes(kTileKeys);
#pragma unroll
  for (int first = 0; first < kTileKeys * kChunks; first += kCtaThreads) {
    const int row = (first + thread_index()) / kChunks;
    const int chunk = (first + thread_index()) % kChunks;
    const int key = tile * kTileKeys + row;
    const bool exists = key < task.sequence.kv_len;
    Index source = 0;
    if (exists) source = pool_offset<kHeadDim>(task.arguments, task.sequence, key) + chunk * 8;
    const unsigned target = SharedTile<kHeadDim>::offset(row, chunk);
    copy_chunk(keys + target, task.arguments.k_pool + source, exists);
    copy_chunk(values + target, task.arguments.v_pool + source, exists);
  }
}

template <class Policy>
__device__ __forceinline__ void finish_copies() {
  commit_copies();
  Policy::wait_for_copies();
  Policy::publish_copies();
}

/// The warp's 16 query rows as left operands.
template <int kHeadDim>
__device__ __forceinline__ void load_query_fragments(unsigned query_tile,
                                                     unsigned (&fragments)[kHeadDim / 16][4]) {
  const int row = warp_index() * kWarpQueries + lane_index() % 16;
#pragma unroll
  for (int step = 0; step < kHeadDim / 16; ++step) {
    const int chunk = step * 2 + lane_index() / 16;
    load_matrices(query_tile + SharedTile<kHeadDim>::offset(row, chunk), fragments[step]);
  }
}

/// scores = Q . K^T, dimensions ascending in steps of 16.
template <class T, int kHeadDim>
__device__ __forceinline__ void multiply_keys(unsigned key_tile,
                                              const unsigned (&query)[kHeadDim / 16][4],
                                              float (&scores)[kScoreBlocks][4]) {
  const int row = lane_index() / 16 * 8 + lane_index() % 8;
#pragma unroll
  for (int step = 0; step < kHeadDim / 16; ++step) {
    const int chunk = step * 2 + lane_index() / 8 % 2;
#pragma unroll
    for (int block = 0; block < kScoreBlocks; block += 2) {
      unsigned keys[4];
      load_matrices(key_tile + SharedTile<kHeadDim>::offset(block * 8 + row, chunk), keys);
      T::multiply_accumulate(scores[block], query[step], keys[0], keys[1]);
      T::multiply_accumulate(scores[block + 1], query[step], keys[2], keys[3]);
    }
  }
}

template <class Policy>
__device__ __forceinline__ void cap_scores(float (&scores)[kScoreBlocks][4], float soft_cap_scale) {
#pragma unroll
  for (int block = 0; block < kScoreBlocks; ++block) {
#pragma unroll
    for (int i = 0; i < 4; ++i) scores[block][i] = Policy::cap(scores[block][i], soft_cap_scale);
  }
}

/// Scales the scores of one half to base 2, -inf outside of the row's keys [first, end) of the
/// tile.
__device__ __forceinline__ void mask_scores(float (&scores)[kScoreBlocks][4], int half, int first,
                                            int end, float scale_log2) {
#pragma unroll
  for (int block = 0; block < kScoreBlocks; ++block) {
#pragma unroll
    for (int side = 0; side < 2; ++side) {
      const int column = block * 8 + lane_index() % kLanesPerRow * 2 + side;
      float& score = scores[block][half * 2 + side];
      const bool is_visible = column >= first && column < end;
      score = is_visible ? score * scale_log2 : kNegativeInfinity;
    }
  }
}

__device__ __forceinline__ float row_maximum(const float (&scores)[kScoreBlocks][4], int half) {
  float result = kNegativeInfinity;
#pragma unroll
  for (int block = 0; block < kScoreBlocks; ++block) {
    result = maximum(result, maximum(scores[block][half * 2], scores[block][half * 2 + 1]));
  }
#pragma unroll
  for (int mask = 1; mask < kLanesPerRow; mask *= 2) {
    result = maximum(result, shuffle_xor(result, mask));
  }
  return result;
}

/// Replaces the scores of one half by weights and folds them into the running maximum and sum. A
/// half without a visible key in the tile keeps its bits: its rescaling factor is 2^0 or, before
/// its first key, multiplies zeros.
template <int kHeadDim>
__device__ __forceinline__ void update_softmax(MmaRows<kHeadDim>& rows, int half,
                                               float (&scores)[kScoreBlocks][4]) {
  const float new_maximum = maximum(rows.maximum_log2[half], row_maximum(scores, half));
  const float subtrahend = finite_maximum(new_maximum);
  const float rescale = exp2_approximate(rows.maximum_log2[half] - subtrahend);
  float tile_sum = 0.0F;
#pragma unroll
  for (int block = 0; block < kScoreBlocks; ++block) {
#pragma unroll
    for (int side = 0; side < 2; ++side) {
      float& score = scores[block][half * 2 + side];
      score = exp2_approximate(score - subtrahend);
      tile_sum += score;
    }
  }
  rows.maximum_log2[half] = new_maximum;
  rows.sum[half] = fused_multiply_add(rows.sum[half], rescale, tile_sum);
#pragma unroll
  for (int block = 0; block < kHeadDim / 8; ++block) {
    rows.output[block][half * 2] *= rescale;
    rows.output[block][half * 2 + 1] *= rescale;
  }
}

/// output += P . V, keys ascending in steps of 16; P is rounded to T here.
template <class T, int kHeadDim>
__device__ __forceinline__ void multiply_values(unsigned value_tile,
                                                const float (&weights)[kScoreBlocks][4],
                                                MmaRows<kHeadDim>& rows) {
#pragma unroll
  for (int step = 0; step < kTileKeys / 16; ++step) {
    const float(&left)[4] = weights[step * 2];
    const float(&right)[4] = weights[step * 2 + 1];
    const unsigned p[4] = {T::pack(&left[0]), T::pack(&left[2]), T::pack(&right[0]),
                           T::pack(&right[2])};
#pragma unroll
    for (int block = 0; block < kHeadDim / 8; block += 2) {
      const int row = step * 16 + lane_index() % 16;
      const int chunk = block + lane_index() / 16;
      unsigned values[4];
      load_matrices_transposed(value_tile + SharedTile<kHeadDim>::offset(row, chunk), values);
      T::multiply_accumulate(rows.output[block], p, values[0], values[1]);
      T::multiply_accumulate(rows.output[block + 1], p, values[2], values[3]);
    }
  }
}

template <class T, int kHeadDim, class Policy>
__device__ __forceinline__ void attend_tile(const MmaTask<T>& task, int tile,
                                            const unsigned (&query)[kHeadDim / 16][4],
                                            MmaRows<kHeadDim>& rows) {
  const unsigned keys = stage_base<kHeadDim>(task.shared_base, tile);
  float scores[kScoreBlocks][4] = {};
  multiply_keys<T, kHeadDim>(keys, query, scores);
  const float soft_cap_scale = task.arguments.soft_cap_scale;
  if (soft_cap_scale != 0.0F) cap_scores<Policy>(scores, soft_cap_scale);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int query_index = task.first_warp_query + lane_index() / kLanesPerRow + half * 8;
    const int visible = visible_keys<Policy>(task.sequence, query_index);
    const int first = first_key<Policy>(task.arguments, query_index, visible);
    mask_scores(scores, half, first - tile * kTileKeys, visible - tile * kTileKeys,
                task.arguments.softmax_scale_log2);
    update_softmax(rows, half, scores);
  }
  multiply_values<T>(keys + SharedTile<kHeadDim>::bytes(kTileKeys), scores, rows);
}

template <class T, int kHeadDim, class Policy>
__device__ __forceinline__ void store_rows(const MmaTask<T>& task, const MmaRows<kHeadDim>& rows) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float sum = rows.sum[half];
#pragma unroll
    for (int mask = 1; mask < kLanesPerRow; mask *= 2) sum += shuffle_xor(sum, mask);
    const float inverse = Policy::inverse_sum(sum);
    const int query = task.first_warp_query + lane_index() / kLanesPerRow + half * 8;
    if (query >= task.sequence.query_len) continue;
    const Index row_index = head_row(task.arguments, task.sequence, query, task.head);
    const int column = lane_index() % kLanesPerRow * 2;
    typename T::Storage* const out = task.arguments.out + row_index * kHeadDim + column;
#pragma unroll
    for (int block = 0; block < kHeadDim / 8; ++block) {
      const float values[2] = {finish_output(rows.output[block][half * 2], inverse),
                               finish_output(rows.output[block][half * 2 + 1], inverse)};
      store_elements<T>(out + block * 8, values);
    }
    if (column == 0) {
      task.arguments.lse[row_index] = finish_lse<Policy>(rows.maximum_log2[half], sum);
    }
  }
}

/// Tiles [first, end).
struct TileRange {
  int first;
  int end;
};

/// Tiles that hold a key visible to one of `count` queries from `first` on: the first one sees the
/// first key of them, the last one the last.
template <class Policy, class T>
__device__ __forceinline__ TileRange tiles_of(const AttentionArguments<T>& arguments,
                                              const Sequence& sequence, int first, int count) {
  if (first >= sequence.query_len) return TileRange{0, 0};
  const int last = minimum(first + count, sequence.query_len) - 1;
  const int visible = visible_keys<Policy>(sequence, last);
  const int key = first_key<Policy>(arguments, first, visible_keys<Policy>(sequence, first));
  return TileRange{key / kTileKeys, (visible + kTileKeys - 1) / kTileKeys};
}

/// Maximum and sum of rows begin with the head's sink, the sum on one lane of each row.
template <int kHeadDim>
__device__ __forceinline__ void add_sink(MmaRows<kHeadDim>& rows, float sink_log2) {
  const float weight = lane_index() % kLanesPerRow == 0 ? sink_weight(sink_log2) : 0.0F;
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    rows.maximum_log2[half] = sink_log2;
    rows.sum[half] = weight;
  }
}

/// Body of the entries. Grid (ceil(max_seqlen_q / 64), num_heads_q, num_seqs), 128 threads,
/// 384 * kHeadDim bytes of dynamic shared memory.
template <class T, int kHeadDim, class Policy>
__device__ __forceinline__ void attention_mma(const AttentionArguments<T>& arguments) {
  const int head = block_index_y();
  const int first_query = block_index_x() * kCtaQueries;
  const Sequence sequence = sequence_at<Policy>(arguments, block_index_z(), head);
  if (first_query >= sequence.query_len) return;

  const int first_warp_query = first_query + warp_index() * kWarpQueries;
  const MmaTask<T> task{arguments,   sequence,         head,
                        first_query, first_warp_query, dynamic_shared_base()};
  const TileRange cta = tiles_of<Policy>(arguments, sequence, first_query, kCtaQueries);
  const TileRange warp = tiles_of<Policy>(arguments, sequence, first_warp_query, kWarpQueries);

  copy_queries<T, kHeadDim>(task);
  copy_tile<T, kHeadDim>(task, cta.first);
  finish_copies<Policy>();
  unsigned query[kHeadDim / 16][4];
  load_query_fragments<kHeadDim>(task.shared_base, query);

  MmaRows<kHeadDim> rows;
  add_sink(rows, sink_log2(arguments, head));
#pragma unroll 1
  for (int tile = cta.first; tile < cta.end; ++tile) {
    const bool has_next = tile + 1 < cta.end;
    const bool is_own = tile >= warp.first && tile < warp.end;
    if (has_next) copy_tile<T, kHeadDim>(task, tile + 1);
    if (has_next && !Policy::kFinishesCopiesBehindTile) finish_copies<Policy>();
    if (is_own) attend_tile<T, kHeadDim, Policy>(task, tile, query, rows);
    if (has_next && Policy::kFinishesCopiesBehindTile) finish_copies<Policy>();
  }
  store_rows<T, kHeadDim, Policy>(task, rows);
}

}  // namespace cpverify::kernels
