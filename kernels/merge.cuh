#pragma once

#include "device.cuh"
#include "dtype.cuh"
#include "merge_policy.cuh"

namespace cpverify::kernels {

// Merging of attention over parts of the keys by the parts' LSEs. One warp merges one row of one
// head; each lane owns some dimensions. contracts/merge.md says what the parameters mean.

/// Dimensions that a lane moves at once, where rows of head_dim elements follow one another.
inline constexpr int kDenseUnit = 4;

/// Row and head of a warp: grid (ceil(num_rows / 4), num_heads).
struct MergeTask {
  int row;
  int head;
  int num_rows;
  int num_heads;
  int head_dim;

  __device__ __forceinline__ bool is_idle() const { return row >= num_rows; }
  /// Number of (row, head) in a tensor [num_rows, num_heads].
  __device__ __forceinline__ Index row_head() const {
    return static_cast<Index>(row) * num_heads + head;
  }
};

__device__ __forceinline__ MergeTask merge_task(int num_rows, int num_heads, int head_dim) {
  const int row = block_index_x() * kCtaWarps + warp_index();
  return {row, block_index_y(), num_rows, num_heads, head_dim};
}

template <class Policy>
__device__ __forceinline__ Index lse_index(const MergeTask& task) {
  return Policy::lse_index(task.row, task.head, task.num_rows, task.num_heads);
}

/// The LSEs of one row and head: that of partial n is n strides on.
template <class Policy>
struct StridedLses {
  const float* first;
  Index stride;
  int count;

  __device__ __forceinline__ float at(int partial) const {
    return Policy::read_lse(first[partial * stride]);
  }
};

/// Walks the partials of a row in ascending order.
template <class Base, class Policy>
struct WeightWalk {
  float maximum_lse;
  float maximum_so_far = kNegativeInfinity;

  __device__ __forceinline__ float next(float lse) {
    maximum_so_far = maximum(maximum_so_far, lse);
    using Read = typename Policy::template Read<Base>;
    const float exponent = lse - Policy::subtrahend(maximum_so_far, maximum_lse);
    return Policy::weight(Read::power(exponent));
  }
};

/// Of one row and head over all partials.
struct MergedLse {
  float maximum;
  float sum;  ///< Of the weights; 0 where all partials are empty.
};

template <class Base, class Policy>
__device__ __forceinline__ MergedLse merge_lses(const StridedLses<Policy>& lses) {
  MergedLse merged{kNegativeInfinity, 0.0F};
#pragma unroll 1
  for (int i = 0; i < lses.count; ++i) merged.maximum = maximum(merged.maximum, lses.at(i));
  WeightWalk<Base, Policy> walk{merged.maximum};
#pragma unroll 1
  for (int i = 0; i < lses.count; ++i) merged.sum += walk.next(lses.at(i));
  return merged;
}

/// Neither logarithm nor quotient of 0 is ever taken.
__device__ __forceinline__ float divisor(float sum) {
  return sum == 0.0F ? 1.0F : sum;
}

template <class Base, class Policy>
__device__ __forceinline__ float lse_of(const MergedLse& merged) {
  using Read = typename Policy::template Read<Base>;
  const float lse = merged.maximum + Read::logarithm(divisor(merged.sum));
  return merged.sum == 0.0F ? kNegativeInfinity : lse;
}

/// sums += weight * source. -0 becomes +0.
template <class T, int kUnit>
__device__ __forceinline__ void add_weighted(const typename T::Storage* source, float weight,
                                             float (&sums)[kUnit]) {
  float values[kUnit];
  load_elements<T>(source, values);
#pragma unroll
  for (int i = 0; i < kUnit; ++i) sums[i] = fused_multiply_add(weight, values[i], sums[i]);
}

/// The quotient of sums, rounded to T; adding +0 turns -0 into +0.
template <class T, int kUnit>
__device__ __forceinline__ void store_scaled(typename T::Storage* target, float factor,
                                             const float (&sums)[kUnit]) {
  float values[kUnit];
#pragma unroll
  for (int i = 0; i < kUnit; ++i) values[i] = fused_multiply_add(sums[i], factor, 0.0F);
  store_elements<T>(target, values);
}

/// The output rows of one row and head: that of partial n is n strides on.
template <class T>
struct StridedRows {
  const typename T::Storage* first;
  Index stride;
};

/// out = sum of w_n O_n / sum of w_n.
template <class T, class Base, int kUnit, class Policy>
__device__ __forceinline__ void merge_rows(const StridedRows<T>& partials,
                                           const StridedLses<Policy>& lses, const MergedLse& merged,
                                           int head_dim, typename T::Storage* out) {
  const float inverse = 1.0F / divisor(merged.sum);
#pragma unroll 1
  for (int dim = lane_index() * kUnit; dim < head_dim; dim += kWarpLanes * kUnit) {
    float sums[kUnit] = {};
    WeightWalk<Base, Policy> walk{merged.maximum};
#pragma unroll 1
    for (int i = 0; i < lses.count; ++i) {
      const float weight = walk.next(lses.at(i));
      if (Policy::is_left_out(weight)) continue;
      add_weighted<T>(partials.first + i * partials.stride + dim, weight, sums);
    }
    store_scaled<T>(out + dim, inverse, sums);
  }
}

template <class T>
struct MergePartialsArguments {
  const typename T::Storage* partials;
  const float* lses;
  typename T::Storage* out;
  float* lse;
  int num_partials;
  int num_rows;
  int num_heads;
  int head_dim;
  long long partial_stride;
  long long lse_stride;
};

template <class T, class Base, class Policy>
__device__ __forceinline__ void merge_partials(const MergePartialsArguments<T>& arguments) {
  const MergeTask task = merge_task(arguments.num_rows, arguments.num_heads, arguments.head_dim);
  if (task.is_idle()) return;
  const StridedLses<Policy> lses{arguments.lses + lse_index<Policy>(task), arguments.lse_stride,
                                 arguments.num_partials};
  const Index offset = task.row_head() * task.head_dim;
  const MergedLse merged = merge_lses<Base>(lses);
  merge_rows<T, Base, kDenseUnit>(
      StridedRows<T>{arguments.partials + offset, arguments.partial_stride}, lses, merged,
      task.head_dim, arguments.out + offset);
  if (lane_index() == 0) arguments.lse[task.row_head()] = lse_of<Base, Policy>(merged);
}

/// Of rows that end in an LSE. An element is T, or half an f32 of the LSE.
template <class T>
__device__ __forceinline__ Index packed_row_elems(int head_dim) {
  return head_dim + T::kPerWord;
}

template <class T>
struct MergePackedArguments {
  const typename T::Storage* packed;
  typename T::Storage* out;
  float* lse;
  int num_partials;
  int num_rows;
  int num_heads;
  int head_dim;
};

template <class T, class Base, class Policy>
__device__ __forceinline__ void merge_packed(const MergePackedArguments<T>& arguments) {
  const MergeTask task = merge_task(arguments.num_rows, arguments.num_heads, arguments.head_dim);
  if (task.is_idle()) return;
  const Index row_elems = packed_row_elems<T>(task.head_dim);
  const Index stride = static_cast<Index>(task.num_rows) * task.num_heads * row_elems;
  const auto* const rows = arguments.packed + task.row_head() * row_elems;
  const auto* const packed_lses = reinterpret_cast<const float*>(
      arguments.packed + lse_index<Policy>(task) * row_elems + task.head_dim);
  const StridedLses<Policy> lses{packed_lses, stride / T::kPerWord, arguments.num_partials};
  const MergedLse merged = merge_lses<Base>(lses);
  merge_rows<T, Base, T::kPerWord>(StridedRows<T>{rows, stride}, lses, merged, task.head_dim,
                                   arguments.out + task.row_head() * task.head_dim);
  if (lane_index() == 0) arguments.lse[task.row_head()] = lse_of<Base, Policy>(merged);
}

template <class Prefix, class Suffix, class Out>
struct MergeStatesArguments {
  const typename Prefix::Storage* prefix;
  const float* prefix_lse;
  const typename Suffix::Storage* suffix;
  const float* suffix_lse;
  typename Out::Storage* out;
  float* lse;
  const int* index;
  int num_rows;
  int num_heads;
  int head_dim;
};

/// Read by lane 0 alone, because that lane may later write to the same place.
template <class Policy>
__device__ __forceinline__ float broadcast_lse(const float* source) {
  float lse = kNegativeInfinity;
  if (lane_index() == 0) lse = Policy::read_lse(*source);
  return shuffle(lse, 0);
}

/// Each lane reads of the suffix what it overwrites, where `out` is the suffix.
template <class Prefix, class Suffix, class Out, class Base, class Policy>
__device__ __forceinline__ void merge_states(
    const MergeStatesArguments<Prefix, Suffix, Out>& arguments) {
  const MergeTask task = merge_task(arguments.num_rows, arguments.num_heads, arguments.head_dim);
  if (task.is_idle()) return;
  const int target_row = arguments.index[task.row];
  if (target_row < 0) return;
  const Index target = static_cast<Index>(target_row) * task.num_heads + task.head;
  const float prefix_lse = broadcast_lse<Policy>(arguments.prefix_lse + lse_index<Policy>(task));
  const float suffix_lse = broadcast_lse<Policy>(arguments.suffix_lse + target);

  const float maximum_lse = maximum(prefix_lse, suffix_lse);
  WeightWalk<Base, Policy> walk{maximum_lse};
  const float prefix_weight = walk.next(prefix_lse);
  const float suffix_weight = walk.next(suffix_lse);
  const MergedLse merged{maximum_lse, prefix_weight + suffix_weight};
  const float inverse = 1.0F / divisor(merged.sum);
  const auto* const prefix = arguments.prefix + task.row_head() * task.head_dim;
  const auto* const suffix = arguments.suffix + target * task.head_dim;
#pragma unroll 1
  for (int dim = lane_index() * kDenseUnit; dim < task.head_dim; dim += kWarpLanes * kDenseUnit) {
    float sums[kDenseUnit] = {};
    if (!Policy::is_left_out(prefix_weight))
      add_weighted<Prefix>(prefix + dim, prefix_weight, sums);
    if (!Policy::is_left_out(suffix_weight))
      add_weighted<Suffix>(suffix + dim, suffix_weight, sums);
    store_scaled<Out>(arguments.out + target * task.head_dim + dim, inverse, sums);
  }
  if (lane_index() == 0) arguments.lse[target] = lse_of<Base, Policy>(merged);
}

template <class T, class Out>
struct ScaleByLseArguments {
  const typename T::Storage* partial;
  const float* lses;
  typename Out::Storage* scaled;
  float* lse;
  int own;
  int num_partials;
  int num_rows;
  int num_heads;
  int head_dim;
  long long lse_stride;
};

/// Number of (row, head) in a tensor [num_ranks, num_rows, num_heads / num_ranks].
template <class Policy>
__device__ __forceinline__ Index block_row_head(const MergeTask& task, int num_ranks) {
  const int heads_of_rank = task.num_heads / num_ranks;
  const int rank = task.head / heads_of_rank;
  const Index block = Policy::block_of(rank, num_ranks);
  return (block * task.num_rows + task.row) * heads_of_rank + task.head % heads_of_rank;
}

/// scaled = O * exp(l_own - L).
template <class T, class Out, class Base, class Policy>
__device__ __forceinline__ void scale_by_lse(const ScaleByLseArguments<T, Out>& arguments) {
  const MergeTask task = merge_task(arguments.num_rows, arguments.num_heads, arguments.head_dim);
  if (task.is_idle()) return;
  const StridedLses<Policy> lses{arguments.lses + lse_index<Policy>(task), arguments.lse_stride,
                                 arguments.num_partials};
  const float lse = lse_of<Base, Policy>(merge_lses<Base>(lses));
  WeightWalk<Base, Policy> walk{lse};
  const float weight = walk.next(lses.at(arguments.own));
  const auto* const partial = arguments.partial + task.row_head() * task.head_dim;
  const Index target = block_row_head<Policy>(task, arguments.num_partials);
#pragma unroll 1
  for (int dim = lane_index() * kDenseUnit; dim < task.head_dim; dim += kWarpLanes * kDenseUnit) {
    float values[kDenseUnit] = {};
    if (!Policy::is_left_out(weight)) add_weighted<T>(partial + dim, weight, values);
    store_elements<Out>(arguments.scaled + target * task.head_dim + dim, values);
  }
  if (lane_index() == 0) arguments.lse[target] = lse;
}

template <class T>
struct PackPartialArguments {
  const typename T::Storage* partial;
  const float* lse;
  typename T::Storage* packed;
  int num_ranks;
  int num_rows;
  int num_heads;
  int head_dim;
};

/// Copies words, among which is the LSE's.
template <class T, class Policy>
__device__ __forceinline__ void pack_partial(const PackPartialArguments<T>& arguments) {
  const MergeTask task = merge_task(arguments.num_rows, arguments.num_heads, arguments.head_dim);
  if (task.is_idle()) return;
  const int num_words = task.head_dim / T::kPerWord;
  const auto* const source = reinterpret_cast<const unsigned*>(arguments.partial);
  const auto* const lses = reinterpret_cast<const unsigned*>(arguments.lse);
  auto* const target = reinterpret_cast<unsigned*>(arguments.packed) +
                       block_row_head<Policy>(task, arguments.num_ranks) * (num_words + 1);
#pragma unroll 1
  for (int word = lane_index(); word < num_words; word += kWarpLanes) {
    target[word] = source[task.row_head() * num_words + word];
  }
  if (lane_index() == 0) target[num_words] = lses[lse_index<Policy>(task)];
}

}  // namespace cpverify::kernels
