#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "cpverify/reduction.hpp"
#include "gpu/nccl_api.hpp"

namespace cpverify::collectives {

/// One reduction over all ranks.
struct Reduction {
  gpu::NcclDataType type = gpu::NcclDataType::float32;
  gpu::NcclRedOp op = gpu::NcclRedOp::sum;
  std::size_t count = 0;  ///< Elements of each rank's input.
  /// Rank that ends the chain of every element: of ncclReduce the root, of a block of
  /// ncclReduceScatter its receiver. Negative for all-reduce, where it depends on the element.
  int last_rank = -1;
};

/// The value of every element after the reduction of `inputs`, one per rank, as NCCL would get it
/// in that order. All ranks of an all-reduce get these bits. Integers wrap, as in NCCL.
///
/// ring, source: NCCL 2.30 src/device/all_reduce.h, reduce_scatter.h and reduce.h. Each of the
/// channels has a contiguous part of the buffer and goes over it in loops of one chunk per rank;
/// chunk j of a loop starts at the rank behind ring position j and ends there.
/// tree, source: Sanders, Speck, Traff 2009, "Two-tree algorithms for full bandwidth broadcast,
/// reduction and scan": a node adds its own value and those of its children, in this order; the
/// second half of the buffer goes up the mirrored tree.
void reduce(const ReductionSpec& spec, const Reduction& reduction,
            std::span<const std::byte* const> inputs, std::byte* output);

/// Ranks of `spec`.ring, completed; true when it is a permutation of them.
[[nodiscard]] bool is_valid(const ReductionSpec& spec, std::size_t ranks);

}  // namespace cpverify::collectives
