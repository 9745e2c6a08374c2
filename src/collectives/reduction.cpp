#include "collectives/reduction.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <span>
#include <type_traits>
#include <vector>

#include "cpverify/reduction.hpp"
#include "gpu/nccl_api.hpp"
#include "numerics/float16.hpp"
#include "support/check.hpp"
#include "support/rng.hpp"

namespace cpverify::collectives {
namespace {

using gpu::NcclDataType;
using gpu::NcclRedOp;

/// How an element is stored and what it is computed in. `round` takes a value as it is computed to
/// the nearest one that can be stored.
template <class Value>
struct Plain {
  using Stored = Value;
  using Computed = Value;
  static Computed load(Stored bits) { return bits; }
  static Stored store(Computed value) { return value; }
};
struct Bf16 {
  using Stored = std::uint16_t;
  using Computed = float;
  static float load(Stored bits) { return numerics::bf16_to_f32(bits); }
  static Stored store(float value) { return numerics::f32_to_bf16(value); }
};
struct F16 {
  using Stored = std::uint16_t;
  using Computed = float;
  static float load(Stored bits) { return numerics::f16_to_f32(bits); }
  static Stored store(float value) { return numerics::f32_to_f16(value); }
};

template <class Computed>
Computed apply(NcclRedOp op, Computed a, Computed b) {
  // Integers are unsigned here but for max and min: sums and products wrap.
  const auto wrapped = [a, b](auto compute) {
    if constexpr (std::is_integral_v<Computed>) {
      using Bits = std::make_unsigned_t<Computed>;
      using Wide = std::conditional_t<(sizeof(Bits) < 4), std::uint32_t, Bits>;
      return static_cast<Computed>(compute(static_cast<Wide>(a), static_cast<Wide>(b)));
    } else {
      return compute(a, b);
    }
  };
  switch (op) {
    case NcclRedOp::prod:
      return wrapped([](auto x, auto y) { return x * y; });
    case NcclRedOp::max:
      return std::max(a, b);
    case NcclRedOp::min:
      return std::min(a, b);
    case NcclRedOp::sum:
    case NcclRedOp::avg:
      break;
  }
  return wrapped([](auto x, auto y) { return x + y; });
}

/// Values of one element over all ranks, and the operation on them.
template <class Format>
class Element {
 public:
  using Computed = typename Format::Computed;

  Element(NcclRedOp op, std::size_t ranks) : op_{op}, values_(ranks) {}

  void load(std::span<const std::byte* const> inputs, std::size_t index) {
    for (std::size_t rank = 0; rank < values_.size(); ++rank) {
      typename Format::Stored bits{};
      std::memcpy(&bits, inputs[rank] + index * sizeof bits, sizeof bits);
      values_[rank] = Format::load(bits);
      // NCCL multiplies floats by 1/n before it adds them up.
      if constexpr (!std::is_integral_v<Computed>) {
        if (op_ == NcclRedOp::avg) {
          values_[rank] =
              rounded(values_[rank] * (Computed{1} / static_cast<Computed>(values_.size())));
        }
      }
    }
  }
  [[nodiscard]] Computed value(std::size_t rank) const { return values_[rank]; }
  [[nodiscard]] Computed rounded(Computed value) const {
    return Format::load(Format::store(value));
  }
  /// As a hop of a ring does it: rounded to the element type.
  [[nodiscard]] Computed combine(Computed local, Computed incoming) const {
    return rounded(apply(op_, local, incoming));
  }
  [[nodiscard]] Computed combine_unrounded(Computed sum, Computed value) const {
    return apply(op_, sum, value);
  }
  void store(Computed value, std::byte* output, std::size_t index) const {
    if constexpr (std::is_integral_v<Computed>) {
      if (op_ == NcclRedOp::avg)
        value = static_cast<Computed>(value / static_cast<Computed>(values_.size()));
    }
    const typename Format::Stored bits = Format::store(value);
    std::memcpy(output + index * sizeof bits, &bits, sizeof bits);
  }

 private:
  NcclRedOp op_;
  std::vector<Computed> values_;
};

std::vector<std::uint32_t> ring_of(const ReductionSpec& spec, std::size_t ranks) {
  std::vector<std::uint32_t> ring = spec.ring;
  if (ring.empty()) {
    ring.resize(ranks);
    std::iota(ring.begin(), ring.end(), 0U);
  }
  return ring;
}

std::size_t divide_up(std::size_t value, std::size_t divisor) {
  return (value + divisor - 1) / divisor;
}

/// Position on the ring at which the chunk of an element ends.
std::size_t last_position(const ReductionSpec& spec, const Reduction& reduction,
                          const std::vector<std::uint32_t>& ring, std::size_t index) {
  if (reduction.last_rank >= 0) {
    const auto rank = static_cast<std::uint32_t>(reduction.last_rank);
    return static_cast<std::size_t>(std::find(ring.begin(), ring.end(), rank) - ring.begin());
  }
  const std::size_t part = divide_up(reduction.count, std::max<std::size_t>(spec.channels, 1));
  const std::size_t within = index % part;
  const std::size_t part_elems = std::min(part, reduction.count - (index - within));
  const std::size_t chunk =
      spec.chunk_elems == 0 ? divide_up(part_elems, ring.size()) : spec.chunk_elems;
  return within / chunk % ring.size();
}

template <class Format>
typename Format::Computed reduce_along(const Element<Format>& element,
                                       const std::vector<std::uint32_t>& order, std::size_t first) {
  auto sum = element.value(order[first % order.size()]);
  for (std::size_t hop = 1; hop < order.size(); ++hop) {
    sum = element.combine(element.value(order[(first + hop) % order.size()]), sum);
  }
  return sum;
}

/// The children of a node of the first tree; absent ones are left out. Node 0 is the root, a node
/// of height h has children at distance 2^(h - 1) to both sides.
std::vector<std::size_t> children_of(std::size_t node, std::size_t nodes) {
  if (node == 0) {
    std::size_t top = 1;
    while (top < nodes) top *= 2;
    return nodes > 1 ? std::vector<std::size_t>{top / 2} : std::vector<std::size_t>{};
  }
  std::vector<std::size_t> children;
  std::size_t distance = (node & (~node + 1)) / 2;
  if (distance == 0) return children;
  children.push_back(node - distance);
  while (distance > 0 && node + distance >= nodes) distance /= 2;
  if (distance > 0) children.push_back(node + distance);
  return children;
}

/// The second tree is the first one in the mirror, or shifted by one for an odd number of ranks.
std::size_t rank_of_node(std::size_t node, std::size_t nodes, bool is_second) {
  if (!is_second) return node;
  return nodes % 2 == 0 ? nodes - 1 - node : (node + 1) % nodes;
}

template <class Format>
typename Format::Computed reduce_subtree(const Element<Format>& element, std::size_t node,
                                         std::size_t ranks, bool is_second) {
  auto sum = element.value(rank_of_node(node, ranks, is_second));
  // NOLINTNEXTLINE(misc-no-recursion): as deep as the tree, log2 of the ranks.
  for (const std::size_t child : children_of(node, ranks)) {
    sum = element.combine(sum, reduce_subtree(element, child, ranks, is_second));
  }
  return sum;
}

template <class Format>
typename Format::Computed reduce_element(const ReductionSpec& spec, const Reduction& reduction,
                                         const Element<Format>& element, std::size_t ranks,
                                         std::size_t index) {
  switch (spec.order) {
    case ReductionOrder::tree:
      return reduce_subtree(element, 0, ranks, index >= divide_up(reduction.count, 2));
    case ReductionOrder::rank_ascending: {
      auto sum = element.value(0);
      for (std::size_t rank = 1; rank < ranks; ++rank) {
        sum = element.combine_unrounded(sum, element.value(rank));
      }
      return sum;
    }
    case ReductionOrder::adversarial: {
      std::vector<std::uint32_t> order(ranks);
      std::iota(order.begin(), order.end(), 0U);
      Rng{mix64(spec.seed) ^ mix64(index)}.shuffle(order);
      return reduce_along(element, order, 0);
    }
    case ReductionOrder::ring:
      break;
  }
  const std::vector<std::uint32_t> ring = ring_of(spec, ranks);
  return reduce_along(element, ring, last_position(spec, reduction, ring, index) + 1);
}

template <class Format>
void reduce_as(const ReductionSpec& spec, const Reduction& reduction,
               std::span<const std::byte* const> inputs, std::byte* output) {
  Element<Format> element{reduction.op, inputs.size()};
  for (std::size_t i = 0; i < reduction.count; ++i) {
    element.load(inputs, i);
    element.store(reduce_element(spec, reduction, element, inputs.size(), i), output, i);
  }
}

}  // namespace

bool is_valid(const ReductionSpec& spec, std::size_t ranks) {
  if (spec.channels == 0) return false;
  std::vector<std::uint32_t> ring = ring_of(spec, ranks);
  if (ring.size() != ranks) return false;
  std::sort(ring.begin(), ring.end());
  for (std::size_t i = 0; i < ranks; ++i) {
    if (ring[i] != i) return false;
  }
  return true;
}

void reduce(const ReductionSpec& spec, const Reduction& reduction,
            std::span<const std::byte* const> inputs, std::byte* output) {
  CPVERIFY_CHECK(is_valid(spec, inputs.size()));
  switch (reduction.type) {
    case NcclDataType::int8:
      return reduce_as<Plain<std::int8_t>>(spec, reduction, inputs, output);
    case NcclDataType::uint8:
      return reduce_as<Plain<std::uint8_t>>(spec, reduction, inputs, output);
    case NcclDataType::int32:
      return reduce_as<Plain<std::int32_t>>(spec, reduction, inputs, output);
    case NcclDataType::uint32:
      return reduce_as<Plain<std::uint32_t>>(spec, reduction, inputs, output);
    case NcclDataType::int64:
      return reduce_as<Plain<std::int64_t>>(spec, reduction, inputs, output);
    case NcclDataType::uint64:
      return reduce_as<Plain<std::uint64_t>>(spec, reduction, inputs, output);
    case NcclDataType::float16:
      return reduce_as<F16>(spec, reduction, inputs, output);
    case NcclDataType::float32:
      return reduce_as<Plain<float>>(spec, reduction, inputs, output);
    case NcclDataType::float64:
      return reduce_as<Plain<double>>(spec, reduction, inputs, output);
    case NcclDataType::bfloat16:
      return reduce_as<Bf16>(spec, reduction, inputs, output);
  }
  CPVERIFY_CHECK(false);
}

}  // namespace cpverify::collectives
