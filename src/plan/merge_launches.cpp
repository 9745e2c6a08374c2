#include "plan/merge_launches.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cpverify/dtype.hpp"
#include "cpverify/launch.hpp"
#include "support/check.hpp"

namespace cpverify::plan {
namespace {

constexpr std::uint32_t kThreads = 128;
/// One warp merges one row of one head.
constexpr std::int64_t kRowsPerCta = 4;
/// Lanes move up to 4 dimensions at once; 8 is what the contract promises to be enough.
constexpr std::int64_t kHeadDimUnit = 8;

std::int32_t to_s32(std::int64_t value) {
  CPVERIFY_CHECK(std::in_range<std::int32_t>(value));
  return static_cast<std::int32_t>(value);
}

Launch launch_of(const MergeShape& shape, std::string entry,
                 std::vector<KernelArgument> arguments) {
  CPVERIFY_CHECK(shape.num_rows >= 0 && shape.head_dim % kHeadDimUnit == 0);
  const std::int64_t ctas = (shape.num_rows + kRowsPerCta - 1) / kRowsPerCta;
  Launch launch;
  launch.module = "merge";
  launch.entry = std::move(entry);
  launch.grid = {static_cast<std::uint32_t>(to_s32(ctas)),
                 static_cast<std::uint32_t>(to_s32(shape.num_heads)), 1};
  launch.block = {kThreads, 1, 1};
  launch.arguments = std::move(arguments);
  return launch;
}

/// Whether the heads can be dealt out to the ranks.
bool divides(std::int64_t num_ranks, const MergeShape& shape) {
  return num_ranks > 0 && shape.num_heads % num_ranks == 0;
}

/// The entries exist for these types of prefix, suffix and out.
std::string merge_states_entry(DType prefix, DType suffix, DType out) {
  if (prefix == suffix && suffix == out) return fmt::format("merge_states_{}", name(out));
  const DType narrow = prefix == DType::f32 ? out : prefix;
  CPVERIFY_CHECK(size_bytes(narrow) == 2 && suffix == DType::f32);
  CPVERIFY_CHECK(out == DType::f32 || out == narrow);
  return fmt::format("merge_states_{}_{}_{}", name(prefix), name(suffix), name(out));
}

}  // namespace

PartialMerge dense_merge(const MergeShape& shape, std::int64_t num_partials) {
  PartialMerge merge;
  merge.num_partials = num_partials;
  merge.partial_stride = shape.out_elems();
  merge.lse_stride = shape.num_lses();
  return merge;
}

Launch merge_partials_launch(const MergeShape& shape, const PartialMerge& merge) {
  CPVERIFY_CHECK(merge.partial_stride % kHeadDimUnit == 0);
  const std::string_view base = merge.base == LseBase::two ? "base2_" : "";
  return launch_of(shape, fmt::format("merge_partials_{}{}", base, name(shape.dtype)),
                   {merge.partials, merge.lses, merge.out, merge.lse, to_s32(merge.num_partials),
                    to_s32(shape.num_rows), to_s32(shape.num_heads), to_s32(shape.head_dim),
                    merge.partial_stride, merge.lse_stride});
}

Launch merge_states_launch(const MergeShape& shape, const StatesMerge& merge) {
  return launch_of(
      shape, merge_states_entry(merge.prefix_dtype, merge.suffix_dtype, shape.dtype),
      {merge.prefix, merge.prefix_lse, merge.suffix, merge.suffix_lse, merge.out, merge.lse,
       merge.index, to_s32(shape.num_rows), to_s32(shape.num_heads), to_s32(shape.head_dim)});
}

Launch scale_by_lse_launch(const MergeShape& shape, const LseScale& scale) {
  CPVERIFY_CHECK(divides(scale.num_partials, shape));
  CPVERIFY_CHECK(scale.own >= 0 && scale.own < scale.num_partials);
  std::string entry = fmt::format("scale_by_lse_{}", name(shape.dtype));
  if (scale.scaled_dtype != shape.dtype) {
    CPVERIFY_CHECK(scale.scaled_dtype == DType::f32);
    entry += "_f32";
  }
  return launch_of(shape, std::move(entry),
                   {scale.partial, scale.lses, scale.scaled, scale.lse, to_s32(scale.own),
                    to_s32(scale.num_partials), to_s32(shape.num_rows), to_s32(shape.num_heads),
                    to_s32(shape.head_dim), shape.num_lses()});
}

std::int64_t packed_row_elems(const MergeShape& shape) {
  return shape.head_dim + 4 / static_cast<std::int64_t>(size_bytes(shape.dtype));
}

Launch pack_partial_launch(const MergeShape& shape, const PartialPack& pack) {
  CPVERIFY_CHECK(divides(pack.num_ranks, shape));
  return launch_of(shape, fmt::format("pack_partial_{}", name(shape.dtype)),
                   {pack.partial, pack.lse, pack.packed, to_s32(pack.num_ranks),
                    to_s32(shape.num_rows), to_s32(shape.num_heads), to_s32(shape.head_dim)});
}

Launch merge_packed_launch(const MergeShape& shape, const PackedMerge& merge) {
  return launch_of(shape, fmt::format("merge_packed_{}", name(shape.dtype)),
                   {merge.packed, merge.out, merge.lse, to_s32(merge.num_partials),
                    to_s32(shape.num_rows), to_s32(shape.num_heads), to_s32(shape.head_dim)});
}

}  // namespace cpverify::plan
