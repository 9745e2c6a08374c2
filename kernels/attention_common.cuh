#pragma once

#include "attention_policy.cuh"
#include "device.cuh"

namespace cpverify::kernels {

/// Keys per update of the online softmax. Both kernels walk the keys of a sequence in tiles of this
/// size from key 0, whatever rows they compute, so that a row's bits depend on that row alone.
inline constexpr int kTileKeys = 32;

/// The parameters of an attention entry, in order; contracts/attention_fma.md says what they mean.
template <class T>
struct AttentionArguments {
  const typename T::Storage* q;
  const typename T::Storage* k_pool;
  const typename T::Storage* v_pool;
  const int* cu_seqlens_q;
  const int* kv_lens;
  const int* block_table;
  typename T::Storage* out;
  float* lse;
  int num_seqs;
  int max_pages;
  int block_size;
  int num_heads_q;
  int num_heads_kv;
  float softmax_scale_log2;
  int is_causal;
};

/// One sequence of the batch as one query head sees it.
struct Sequence {
  Index first_row;  ///< Of its queries, in q, out and lse.
  int query_len;    ///< 0 for an index beyond the batch.
  int kv_len;
  Index first_page;  ///< Of its row of the block table.
  int kv_head;
  bool is_causal;
};

template <class Policy, class T>
__device__ __forceinline__ Sequence sequence_at(const AttentionArguments<T>& arguments, int index,
                                                int head) {
  if (index >= arguments.num_seqs) return Sequence{0, 0, 0, 0, 0, false};
  const int begin = arguments.cu_seqlens_q[index];
  const int end = arguments.cu_seqlens_q[index + 1];
  const int kv_len = Policy::readable_keys(arguments.kv_lens[index], arguments.block_size);
  const Index first_page = static_cast<Index>(index) * arguments.max_pages;
  const int group = arguments.num_heads_q / arguments.num_heads_kv;
  return Sequence{begin, end - begin, kv_len, first_page, head / group, arguments.is_causal != 0};
}

/// How many keys, from key 0, query `query` of the sequence sees.
template <class Policy>
__device__ __forceinline__ int visible_keys(const Sequence& sequence, int query) {
  if (!sequence.is_causal) return sequence.kv_len;
  return Policy::visible_keys(query, sequence.query_len, sequence.kv_len);
}

/// Element offset in k_pool and v_pool of a key < kv_len. Reads the block table.
template <int kHeadDim, class T>
__device__ __forceinline__ Index pool_offset(const AttentionArguments<T>& arguments,
                                             const Sequence& sequence, int key) {
  const int page = key / arguments.block_size;
  const int slot_in_block = key - page * arguments.block_size;
  const int block = arguments.block_table[sequence.first_page + page];
  const Index slot = static_cast<Index>(block) * arguments.block_size + slot_in_block;
  return (slot * arguments.num_heads_kv + sequence.kv_head) * kHeadDim;
}

/// Index of (row, head) in lse; times head_dim, in q and out.
template <class T>
__device__ __forceinline__ Index head_row(const AttentionArguments<T>& arguments,
                                          const Sequence& sequence, int query, int head) {
  return (sequence.first_row + query) * arguments.num_heads_q + head;
}

/// What to subtract from scores: the running maximum, or 0 while no score above -inf was seen,
/// because -inf - (-inf) is NaN.
__device__ __forceinline__ float finite_maximum(float running_maximum) {
  return running_maximum == kNegativeInfinity ? 0.0F : running_maximum;
}

/// The LSE of a row; -inf for a row that saw no key.
template <class Policy>
__device__ __forceinline__ float finish_lse(float maximum_log2, float sum) {
  return sum == 0.0F ? Policy::empty_lse() : Policy::log_sum_exp(maximum_log2, sum);
}

/// An accumulator times CorrectAttention::inverse_sum. Adding +0 turns -0 into +0: masked tiles add
/// zeros of either sign, and whether they are visited depends on the other rows of the CTA.
__device__ __forceinline__ float finish_output(float accumulator, float inverse) {
  return fused_multiply_add(accumulator, inverse, 0.0F);
}

}  // namespace cpverify::kernels
