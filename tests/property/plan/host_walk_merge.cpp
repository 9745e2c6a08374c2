// Merges of partial results, on the keys that they saw. By kernels/contracts/merge.md.
#include <cstddef>
#include <cstdint>
#include <optional>

#include <fmt/format.h>

#include "cpverify/dtype.hpp"
#include "cpverify/launch.hpp"
#include "cpverify/plan.hpp"
#include "property/plan/host_walk.hpp"
#include "property/plan/key_partials.hpp"

namespace cpverify::test {
namespace {

constexpr std::int64_t kEmptyLse = 0xff800000;

BufferRef pointer(const Launch& launch, std::size_t index) {
  return std::get<BufferRef>(launch.arguments.at(index));
}

std::int64_t number(const Launch& launch, std::size_t index) {
  return std::get<std::int32_t>(launch.arguments.at(index));
}

}  // namespace

HostWalk::HeadRow HostWalk::load_head(const RankPlan& plan, const Rank& rank,
                                      const HeadPlace& place) {
  const std::int64_t dim = problem_.scenario.model.head_dim;
  HeadRow row;
  row.lse = load(plan, rank, place.lse, place.head);
  // Of a partial that saw no key, the elements may be anything.
  for (std::int64_t j = 0; row.lse != kEmptyLse && j < dim; ++j) {
    row.elements.push_back(load(plan, rank, place.out, place.head * dim + j));
  }
  return row;
}

void HostWalk::store_head(const RankPlan& plan, Rank& rank, const HeadPlace& place,
                          const HeadRow& row) {
  const std::int64_t dim = problem_.scenario.model.head_dim;
  for (std::int64_t j = 0; j < dim; ++j) {
    const bool is_empty = row.elements.empty();
    store(plan, rank, place.out, place.head * dim + j,
          is_empty ? 0 : row.elements.at(static_cast<std::size_t>(j)));
  }
  store(plan, rank, place.lse, place.head, row.lse);
}

HostWalk::HeadRow HostWalk::merge_heads(const RankPlan& plan, const HeadRow& one,
                                        const HeadRow& other) {
  if (one.elements.empty() || other.elements.empty()) return one.elements.empty() ? other : one;
  const auto merged_cell = [&](Cell left, Cell right) -> Cell {
    const bool are_partials = KeyPartials::is_partial(left) && KeyPartials::is_partial(right) &&
                              KeyPartials::element_of(left) == KeyPartials::element_of(right);
    const std::optional<std::int64_t> sum =
        are_partials
            ? partials_.merged(KeyPartials::partial_of(left), KeyPartials::partial_of(right))
            : std::nullopt;
    if (sum) return KeyPartials::cell(*sum, KeyPartials::element_of(left));
    complain(fmt::format("rank {} merges what does not belong together", plan.rank.value()));
    return 0;
  };
  HeadRow sum;
  for (std::size_t j = 0; j < one.elements.size(); ++j) {
    sum.elements.push_back(merged_cell(one.elements[j], other.elements.at(j)));
  }
  sum.lse = merged_cell(one.lse, other.lse);
  return sum;
}

void HostWalk::merge_states(const RankPlan& plan, const Launch& launch, Rank& rank) {
  const std::int64_t heads = number(launch, 8);
  for (std::int64_t row = 0; row < number(launch, 7); ++row) {
    const std::int64_t target = load(plan, rank, pointer(launch, 6), row);
    for (std::int64_t head = 0; target >= 0 && head < heads; ++head) {
      const std::int64_t own = row * heads + head;
      const std::int64_t other = target * heads + head;
      const HeadRow prefix = load_head(plan, rank, {pointer(launch, 0), pointer(launch, 1), own});
      const HeadRow suffix = load_head(plan, rank, {pointer(launch, 2), pointer(launch, 3), other});
      store_head(plan, rank, {pointer(launch, 4), pointer(launch, 5), other},
                 merge_heads(plan, prefix, suffix));
    }
  }
}

void HostWalk::pack_partial(const RankPlan& plan, const Launch& launch, Rank& rank) {
  const std::int64_t ranks = number(launch, 3);
  const std::int64_t rows = number(launch, 4);
  const std::int64_t heads = number(launch, 5);
  const std::int64_t dim = number(launch, 6);
  const std::int64_t lanes = problem_.scenario.model.dtype == DType::f32 ? 1 : 2;
  std::int64_t place = 0;
  for (std::int64_t block = 0; block < ranks; ++block) {
    for (std::int64_t i = 0; i < rows * heads / ranks; ++i) {
      const std::int64_t head =
          i / (heads / ranks) * heads + block * (heads / ranks) + i % (heads / ranks);
      for (std::int64_t j = 0; j < dim; ++j) {
        store(plan, rank, pointer(launch, 2), place++,
              load(plan, rank, pointer(launch, 0), head * dim + j));
      }
      for (std::int64_t lane = 0; lane < lanes; ++lane) {
        store(plan, rank, pointer(launch, 2), place++, load(plan, rank, pointer(launch, 1), head));
      }
    }
  }
}

void HostWalk::merge_packed(const RankPlan& plan, const Launch& launch, Rank& rank) {
  const std::int64_t rows = number(launch, 4) * number(launch, 5);
  const std::int64_t dim = number(launch, 6);
  const std::int64_t stride = dim + (problem_.scenario.model.dtype == DType::f32 ? 1 : 2);
  const BufferRef packed = pointer(launch, 0);
  for (std::int64_t row = 0; row < rows; ++row) {
    HeadRow sum{{}, kEmptyLse};
    for (std::int64_t partial = 0; partial < number(launch, 3); ++partial) {
      const std::int64_t first = (partial * rows + row) * stride;
      const BufferRef elements{packed.buffer, packed.offset_elems + first};
      const BufferRef lse{packed.buffer, packed.offset_elems + first + dim};
      sum = merge_heads(plan, sum, load_head(plan, rank, {elements, lse, 0}));
    }
    store_head(plan, rank, {pointer(launch, 1), pointer(launch, 2), row}, sum);
  }
}

void HostWalk::copy(const RankPlan& plan, const Copy& copy, Rank& rank) {
  const DType dtype = plan.buffers.at(copy.source.buffer.value()).dtype;
  for (std::int64_t i = 0; i < copy.bytes / static_cast<std::int64_t>(size_bytes(dtype)); ++i) {
    store(plan, rank, copy.target, i, load(plan, rank, copy.source, i));
  }
}

}  // namespace cpverify::test
