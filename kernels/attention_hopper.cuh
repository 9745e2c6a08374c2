#pragma once

#include "attention_common.cuh"
#include "attention_policy.cuh"
#include "device.cuh"
#include "dtype.cuh"
#include "shared_tile.cuh"
#include "warpgroup.cuh"

namespace cpverify::kernels {

// Attention with warpgroups that do different things: one copies keys and values into a ring of two
// stages, two compute, 64 query rows each. Barriers 1 and 2 say that a stage is full, 3 and 4 that
// it is empty; all threads of the CTA take part in each, one side without waiting.

inline constexpr int kHopperQueries = 128;
inline constexpr int kGroupQueries = 64;
inline constexpr int kHopperThreads = 3 * kGroupThreads;
inline constexpr int kHopperTileKeys = 64;
inline constexpr int kStages = 2;
inline constexpr unsigned kBlockBytes = 64 * kRowBytes;  ///< 64 rows of 64 elements.
inline constexpr int kProducerRegisters = 24;
inline constexpr int kConsumerRegisters = 240;

template <class T>
struct HopperTask {
  AttentionArguments<T> arguments;
  Sequence sequence;
  int head;
  int first_query;       ///< Of the CTA.
  int first_tile;        ///< Of the CTA.
  int end_tile;          ///< Of the CTA.
  unsigned shared_base;  ///< Queries of both groups, then for each stage keys and values.
};

/// Shared memory: blocks of 64 rows and 64 columns; a matrix of kHeadDim columns has several.
template <int kHeadDim>
struct HopperTile {
  static constexpr int kBlocks = kHeadDim / 64;
  static constexpr unsigned kBytes = kBlocks * kBlockBytes;

  static __device__ __intrinsic__ unsigned queries(unsigned base, int group) {
    return base + group * kBytes;
  }
  static __device__ __intrinsic__ unsigned keys(unsigned base, int tile) {
    return base + (2U + 2U * (tile % kStages)) * kBytes;
  }
  static __device__ __intrinsic__ unsigned values(unsigned base, int tile) {
    return keys(base, tile) + kBytes;
  }
  /// Of 16 bytes: row, and the chunk among the row's kHeadDim / 8.
  static __device__ __intrinsic__ unsigned offset(int row, int chunk) {
    return chunk / 8 * kBlockBytes + swizzled_offset(row, chunk % 8);
  }
};

__device__ __intrinsic__ int full_barrier(int tile) {
  return 1 + tile % kStages;
}
__device__ __intrinsic__ int empty_barrier(int tile) {
  return 1 + kStages + tile % kStages;
}

/// Keys from kv_len on become zero without being read, as query rows beyond the sequence do.
template <class T, int kHeadDim>
__device__ __forceinline__ void copy_hopper_tile(const HopperTask<T>& task, int tile) {
  constexpr int kChunks = kHeadDim / 8;
  const unsigned keys = HopperTile<kHeadDim>::keys(task.shared_base, tile);
  const unsigned values = HopperTile<kHeadDim>::values(task.shared_base, tile);
#pragma unroll 1
  for (int i = thread_index(); i < kHopperTileKeys * kChunks; i += kGroupThreads) {
    const int row = i / kChunks;
    const int chunk = i % kChunks;
    const int key = tile * kHopperTileKeys + row;
    const bool exists = key < task.sequence.kv_len;
    Index source = 0;
    if (exists) source = pool_offset<kHeadDim>(task.arguments, task.sequence, key) + chunk * 8;
    const unsigned target = HopperTile<kHeadDim>::offset(row, chunk);
    copy_chunk(keys + target, task.arguments.k_pool + source, exists);
    copy_chunk(values + target, task.arguments.v_pool + source, exists);
  }
}

template <class T, int kHeadDim>
__device__ __forceinline__ void copy_hopper_queries(const HopperTask<T>& task) {
  constexpr int kChunks = kHeadDim / 8;
#pragma unroll 1
  for (int i = thread_index(); i < kHopperQueries * kChunks; i += kGroupThreads) {
    const int row = i / kChunks;
    const int chunk = i % kChunks;
    const int query = task.first_query + row;
    const bool exists = query < task.sequence.query_len;
    const Index source = head_row(task.arguments, task.sequence, exists ? query : 0, task.head);
    const unsigned tile = HopperTile<kHeadDim>::queries(task.shared_base, row / kGroupQueries);
    copy_chunk(tile + HopperTile<kHeadDim>::offset(row % kGroupQueries, chunk),
               task.arguments.q + source * kHeadDim + chunk * 8, exists);
  }
}

template <class T, int kHeadDim, class Policy>
__device__ __forceinline__ void produce(const HopperTask<T>& task) {
  copy_hopper_queries<T, kHeadDim>(task);
#pragma unroll 1
  for (int tile = task.first_tile; tile < task.end_tile; ++tile) {
    if (tile - task.first_tile >= kStages) barrier_sync(empty_barrier(tile), kHopperThreads);
    copy_hopper_tile<T, kHeadDim>(task, tile);
    commit_copies();
    Policy::wait_for_copies();
    publish_to_wgmma();
    barrier_arrive(full_barrier(tile), kHopperThreads);
  }
}

/// Online softmax state of a thread's two rows; the sum is over its own columns until the end.
template <int kHeadDim>
struct HopperRows {
  float maximum_log2[2] = {kNegativeInfinity, kNegativeInfinity};
  float sum[2] = {0.0F, 0.0F};
  Sums output[kHeadDim / 64] = {};
};

template <class Policy>
__device__ __forceinline__ void cap_hopper_scores(Sums& scores, float soft_cap_scale) {
#pragma unroll
  for (int block = 0; block < 8; ++block) {
#pragma unroll
    for (int i = 0; i < 4; ++i) scores[block][i] = Policy::cap(scores[block][i], soft_cap_scale);
  }
}

/// Scales the scores of one row to base 2, -inf outside of its keys [first, end) of the tile; their
/// maximum.
__device__ __forceinline__ float mask_row(Sums& scores, int half, int first, int end,
                                          float scale_log2) {
  float result = kNegativeInfinity;
#pragma unroll
  for (int block = 0; block < 8; ++block) {
#pragma unroll
    for (int side = 0; side < 2; ++side) {
      const int column = block * 8 + lane_index() % 4 * 2 + side;
      float& score = scores[block][half * 2 + side];
      const bool is_visible = column >= first && column < end;
      score = is_visible ? score * scale_log2 : kNegativeInfinity;
      result = maximum(result, score);
    }
  }
#pragma unroll
  for (int mask = 1; mask < 4; mask *= 2) result = maximum(result, shuffle_xor(result, mask));
  return result;
}

template <int kHeadDim>
__device__ __forceinline__ void update_hopper_row(HopperRows<kHeadDim>& rows, int half,
                                                  Sums& scores, float tile_maximum) {
  const float new_maximum = maximum(rows.maximum_log2[half], tile_maximum);
  const float subtrahend = finite_maximum(new_maximum);
  const float rescale = exp2_approximate(rows.maximum_log2[half] - subtrahend);
  float tile_sum = 0.0F;
#pragma unroll
  for (int block = 0; block < 8; ++block) {
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
  for (int part = 0; part < kHeadDim / 64; ++part) {
#pragma unroll
    for (int block = 0; block < 8; ++block) {
      rows.output[part][block][half * 2] *= rescale;
      rows.output[part][block][half * 2 + 1] *= rescale;
    }
  }
}

/// Weights, rounded to T, as the left operand of four steps of 16 keys.
template <class T>
__device__ __forceinline__ void pack_weights(const Sums& weights, unsigned (&p)[4][4]) {
#pragma unroll
  for (int step = 0; step < 4; ++step) {
    const float(&left)[4] = weights[step * 2];
    const float(&right)[4] = weights[step * 2 + 1];
    p[step][0] = T::pack(&left[0]);
    p[step][1] = T::pack(&left[2]);
    p[step][2] = T::pack(&right[0]);
    p[step][3] = T::pack(&right[2]);
  }
}

template <class T, int kHeadDim, class Policy>
__device__ __forceinline__ void attend_hopper_tile(const HopperTask<T>& task, int group, int tile,
                                                   int first_row, HopperRows<kHeadDim>& rows) {
  using Tile = HopperTile<kHeadDim>;
  const unsigned queries = Tile::queries(task.shared_base, group);
  const unsigned keys = Tile::keys(task.shared_base, tile);
  const unsigned values = Tile::values(task.shared_base, tile);
  Sums scores = {};
#pragma unroll
  for (int block = 0; block < Tile::kBlocks; ++block) {
    multiply_bf16(scores, matrix_descriptor(queries + block * kBlockBytes, 16),
                  matrix_descriptor(keys + block * kBlockBytes, 16), block > 0);
  }
  const float soft_cap_scale = task.arguments.soft_cap_scale;
  if (soft_cap_scale != 0.0F) cap_hopper_scores<Policy>(scores, soft_cap_scale);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int visible = visible_keys<Policy>(task.sequence, first_row + half * 8);
    const int first = first_key<Policy>(task.arguments, first_row + half * 8, visible);
    const int tile_key = tile * kHopperTileKeys;
    const float tile_maximum = mask_row(scores, half, first - tile_key, visible - tile_key,
                                        task.arguments.softmax_scale_log2);
    update_hopper_row(rows, half, scores, tile_maximum);
  }
  unsigned p[4][4];
  pack_weights<T>(scores, p);
#pragma unroll
  for (int part = 0; part < Tile::kBlocks; ++part) {
    multiply_weights_bf16(rows.output[part], p,
                          matrix_descriptor(values + part * kBlockBytes, kBlockBytes));
  }
}

template <class T, int kHeadDim, class Policy>
__device__ __forceinline__ void store_hopper_rows(const HopperTask<T>& task, int first_row,
                                                  const HopperRows<kHeadDim>& rows) {
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    float sum = rows.sum[half];
#pragma unroll
    for (int mask = 1; mask < 4; mask *= 2) sum += shuffle_xor(sum, mask);
    const float inverse = Policy::inverse_sum(sum);
    const int query = first_row + half * 8;
    if (query >= task.sequence.query_len) continue;
    const Index row_index = head_row(task.arguments, task.sequence, query, task.head);
    const int column = lane_index() % 4 * 2;
    typename T::Storage* const out = task.arguments.out + row_index * kHeadDim + column;
#pragma unroll
    for (int part = 0; part < kHeadDim / 64; ++part) {
#pragma unroll
      for (int block = 0; block < 8; ++block) {
        const float(&values)[4] = rows.output[part][block];
        const float finished[2] = {finish_output(values[half * 2], inverse),
                                   finish_output(values[half * 2 + 1], inverse)};
        store_elements<T>(out + part * 64 + block * 8, finished);
      }
    }
    if (column == 0) {
      task.arguments.lse[row_index] = finish_lse<Policy>(rows.maximum_log2[half], sum);
    }
  }
}

template <class T, int kHeadDim, class Policy>
__device__ __forceinline__ void consume(const HopperTask<T>& task, int group) {
  const int first_row =
      task.first_query + group * kGroupQueries + warp_index() % 4 * 16 + lane_index() / 4;
  HopperRows<kHeadDim> rows;
  const float sink = sink_log2(task.arguments, task.head);
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    rows.maximum_log2[half] = sink;
    rows.sum[half] = lane_index() % 4 == 0 ? sink_weight(sink) : 0.0F;
  }
#pragma unroll 1
  for (int tile = task.first_tile; tile < task.end_tile; ++tile) {
    barrier_sync(full_barrier(tile), kHopperThreads);
    attend_hopper_tile<T, kHeadDim, Policy>(task, group, tile, first_row, rows);
    if (tile + kStages < task.end_tile) barrier_arrive(empty_barrier(tile), kHopperThreads);
  }
  store_hopper_rows<T, kHeadDim, Policy>(task, first_row, rows);
}

/// Body of the entries. Grid (ceil(max_seqlen_q / 128), num_heads_q, num_seqs), 384 threads,
/// 768 * kHeadDim bytes of dynamic shared memory.
template <class T, int kHeadDim, class Policy>
__device__ __forceinline__ void attention_hopper(const AttentionArguments<T>& arguments) {
  const int head = block_index_y();
  const int first_query = block_index_x() * kHopperQueries;
  const Sequence sequence = sequence_at<Policy>(arguments, block_index_z(), head);
  if (first_query >= sequence.query_len) return;

  const int last = minimum(first_query + kHopperQueries, sequence.query_len) - 1;
  const int visible = visible_keys<Policy>(sequence, last);
  const int end_tile = (visible + kHopperTileKeys - 1) / kHopperTileKeys;
  const int first_visible =
      first_key<Policy>(arguments, first_query, visible_keys<Policy>(sequence, first_query));
  const HopperTask<T> task{arguments,
                           sequence,
                           head,
                           first_query,
                           first_visible / kHopperTileKeys,
                           end_tile,
                           swizzled_shared_base()};
  const int group = warp_index() / 4;
  if (group == 0) {
    give_up_registers<kProducerRegisters>();
    produce<T, kHeadDim, Policy>(task);
  } else {
    take_registers<kConsumerRegisters>();
    consume<T, kHeadDim, Policy>(task, group - 1);
  }
}

}  // namespace cpverify::kernels
