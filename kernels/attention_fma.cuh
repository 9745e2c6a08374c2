#pragma once

#include "attention_common.cuh"
#include "attention_policy.cuh"
#include "device.cuh"
#include "dtype.cuh"

namespace cpverify::kernels {

// Attention without tensor cores: one warp per query row and head. Per tile, each lane scores one
// key on its own, the warp agrees on maximum and sum, then each lane accumulates a few dimensions
// of the output over the visible keys of the tile.

/// The dimensions of the output that a lane owns. At least one 32-bit word of them: with a head_dim
/// of 32 and 16-bit elements the upper lanes shadow the lower ones and store nothing.
template <class T, int kHeadDim>
struct LaneDims {
  static constexpr int kCount =
      kHeadDim / kWarpLanes > T::kPerWord ? kHeadDim / kWarpLanes : T::kPerWord;

  static __device__ __forceinline__ int first() { return (lane_index() * kCount) % kHeadDim; }
  static __device__ __forceinline__ bool is_owner() { return lane_index() * kCount < kHeadDim; }
};

/// The online softmax of one row; `output` holds the lane's dimensions.
template <int kDims>
struct FmaRow {
  float maximum_log2 = kNegativeInfinity;
  float sum = 0.0F;
  float output[kDims] = {};
};

/// Every lane holds the whole row.
template <class T, int kHeadDim>
__device__ __forceinline__ void load_query(const typename T::Storage* source,
                                           float (&query)[kHeadDim]) {
  constexpr int kElements = 4 * T::kPerWord;
#pragma unroll
  for (int first = 0; first < kHeadDim; first += kElements) {
    float values[kElements];
    load_elements<T>(source + first, values);
#pragma unroll
    for (int i = 0; i < kElements; ++i) query[first + i] = values[i];
  }
}

/// One chain of fused multiply-adds, dimension 0 first.
template <class T, int kHeadDim>
__device__ __forceinline__ float dot(const float (&query)[kHeadDim],
                                     const typename T::Storage* key) {
  constexpr int kElements = 4 * T::kPerWord;
  float sum = 0.0F;
#pragma unroll
  for (int first = 0; first < kHeadDim; first += kElements) {
    float values[kElements];
    load_elements<T>(key + first, values);
#pragma unroll
    for (int i = 0; i < kElements; ++i) sum = fused_multiply_add(query[first + i], values[i], sum);
  }
  return sum;
}

/// output += p . V over keys [first, end) of the tile; lane j holds weight and offset of key j.
template <class T, int kDims>
__device__ __forceinline__ void accumulate_values(FmaRow<kDims>& row,
                                                  const typename T::Storage* v_pool, float weight,
                                                  Index offset, int first, int end) {
#pragma unroll 1
  for (int key = first; key < end; ++key) {
    const float key_weight = shuffle(weight, key);
    float values[kDims];
    load_elements<T>(v_pool + shuffle(offset, key), values);
#pragma unroll
    for (int dim = 0; dim < kDims; ++dim) {
      row.output[dim] = fused_multiply_add(key_weight, values[dim], row.output[dim]);
    }
  }
}

/// Folds the tile's scores into maximum and sum; `weight` in is the lane's score, out its weight.
template <int kDims>
__device__ __forceinline__ void update_softmax(FmaRow<kDims>& row, float& weight) {
  const float new_maximum = maximum(row.maximum_log2, warp_maximum(weight));
  const float subtrahend = finite_maximum(new_maximum);
  const float rescale = exp2_approximate(row.maximum_log2 - subtrahend);
  weight = exp2_approximate(weight - subtrahend);
  row.maximum_log2 = new_maximum;
  row.sum = fused_multiply_add(row.sum, rescale, warp_sum(weight));
#pragma unroll
  for (int dim = 0; dim < kDims; ++dim) row.output[dim] *= rescale;
}

template <class T, int kHeadDim, class Policy, int kDims>
__device__ __forceinline__ void store_row(const AttentionArguments<T>& arguments, Index row_index,
                                          const FmaRow<kDims>& row) {
  const float inverse = Policy::inverse_sum(row.sum);
  float values[kDims];
#pragma unroll
  for (int dim = 0; dim < kDims; ++dim) values[dim] = finish_output(row.output[dim], inverse);
  using Dims = LaneDims<T, kHeadDim>;
  if (Dims::is_owner()) {
    store_elements<T>(arguments.out + row_index * kHeadDim + Dims::first(), values);
  }
  if (lane_index() == 0) {
    arguments.lse[row_index] = finish_lse<Policy>(row.maximum_log2, row.sum);
  }
}

/// A score in base 2; `is_visible` is false for -inf.
template <class Policy, class T>
__device__ __forceinline__ float scale_score(const AttentionArguments<T>& arguments, float score,
                                             bool is_visible) {
  const bool is_capped = arguments.soft_cap_scale != 0.0F;
  if (is_capped && (is_visible || Policy::kCapsMaskedScores)) {
    score = Policy::cap(score, arguments.soft_cap_scale);
  }
  return score * arguments.softmax_scale_log2;
}

/// Body of the entries. Grid (ceil(max_seqlen_q / 4), num_heads_q, num_seqs), 128 threads.
template <class T, int kHeadDim, class Policy>
__device__ __forceinline__ void attention_fma(const AttentionArguments<T>& arguments) {
  using Dims = LaneDims<T, kHeadDim>;
  const int head = block_index_y();
  const int query_index = block_index_x() * kCtaWarps + warp_index();
  const Sequence sequence = sequence_at<Policy>(arguments, block_index_z(), head);
  if (query_index >= sequence.query_len) return;

  const int visible = visible_keys<Policy>(sequence, query_index);
  const int first_visible = first_key<Policy>(arguments, query_index, visible);
  const Index row_index = head_row(arguments, sequence, query_index, head);
  float query[kHeadDim];
  load_query<T>(arguments.q + row_index * kHeadDim, query);

  FmaRow<Dims::kCount> row;
  row.maximum_log2 = sink_log2(arguments, head);
  row.sum = sink_weight(row.maximum_log2);
#pragma unroll 1
  for (int tile_key = first_visible / kTileKeys * kTileKeys; tile_key < visible;
       tile_key += kTileKeys) {
    const int key = tile_key + lane_index();
    const bool is_visible = key >= first_visible && key < visible;
    Index offset = 0;
    float score = kNegativeInfinity;
    if (is_visible) {
      offset = pool_offset<kHeadDim>(arguments, sequence, key);
      score = dot<T>(query, arguments.k_pool + offset);
    }
    score = scale_score<Policy>(arguments, score, is_visible);
    update_softmax(row, score);
    accumulate_values<T>(row, arguments.v_pool + Dims::first(), score, offset,
                         maximum(first_visible - tile_key, 0),
                         minimum(visible - tile_key, kTileKeys));
  }
  store_row<T, kHeadDim, Policy>(arguments, row_index, row);
}

}  // namespace cpverify::kernels
