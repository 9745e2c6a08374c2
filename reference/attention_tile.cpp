#include "reference/attention_tile.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include <Eigen/Core>

namespace cpverify::reference {

namespace {

using Eigen::Index;

/// Doubles that are handled at once. Every exp, log and sum runs over whole groups of fixed size,
/// so that Eigen takes its own vector code and never the C library's, whatever the length of a row.
constexpr Index kLanes = 8;
using Lanes = Eigen::Array<double, kLanes, 1>;
using LanesMap = Eigen::Map<Lanes, Eigen::Aligned32>;

/// Keys per product; tuned with bench/reference.
constexpr Index kKeyTile = 256;

/// Weights below e^-700 = 1e-304 count as zero. That keeps subnormal numbers, which are slow, out
/// of the products, and turns a masked score of -inf into an exact 0.
constexpr double kSmallestExponent = -700.0;

constexpr double kInfinity = std::numeric_limits<double>::infinity();

constexpr Index round_up(Index count) {
  return (count + kLanes - 1) / kLanes * kLanes;
}

using StripMap = Eigen::Map<RowMatrix, Eigen::Aligned32, Eigen::OuterStride<>>;

Index num_keys(const QueryTile& tile, Index row) {
  return tile.first_num_keys + row / tile.group;
}

/// Grows, never shrinks: a buffer that is freed and taken again costs page faults.
void ensure_size(Eigen::ArrayXd& buffer, Index size) {
  if (buffer.size() < size) buffer.resize(size);
}

/// Keys [first, end) of a strip.
struct VisibleKeys {
  Index first = 0;
  Index end = 0;
};

/// What a row of the tile sees of a strip that begins with key `strip_first`.
VisibleKeys visible_keys(const QueryTile& tile, Index row, Index strip_first) {
  const Index end = num_keys(tile, row);
  const Index first = tile.window > 0 ? std::max<Index>(end - tile.window, 0) : 0;
  return {first - strip_first, end - strip_first};
}

/// x tanh(s / x) = x sign(s) (1 - t) / (1 + t), t = e^(-2 |s| / x): nothing overflows, and the only
/// function is one that Eigen vectorises by itself.
void cap_row(double* scores, double cap, Index stride) {
  for (Index key = 0; key < stride; key += kLanes) {
    LanesMap lanes{scores + key};
    const Lanes exponents = lanes.abs() * (-2.0 / cap);
    const Lanes powers = exponents.exp();
    const Lanes sizes = cap * (1.0 - powers) / (1.0 + powers);
    lanes = (lanes < 0.0).select(-sizes, sizes);
  }
}

/// Masks the other keys and returns the largest score left.
double mask_row(double* scores, const VisibleKeys& visible, Index stride) {
  std::fill(scores, scores + visible.first, -kInfinity);
  std::fill(scores + visible.end, scores + stride, -kInfinity);
  Lanes largest = LanesMap{scores};
  for (Index key = kLanes; key < stride; key += kLanes) {
    largest = largest.max(LanesMap{scores + key});
  }
  return largest.maxCoeff();
}

/// Turns scores into exp(score - maximum) and returns their sum.
double exponentiate_row(double* scores, double maximum, Index stride) {
  Lanes sum = Lanes::Zero();
  for (Index key = 0; key < stride; key += kLanes) {
    LanesMap lanes{scores + key};
    const Lanes exponents = lanes - maximum;
    // A step of its own: Eigen has no vector code for exp inside select, and would call libm's.
    const Lanes weights = exponents.exp();
    lanes = (exponents < kSmallestExponent).select(0.0, weights);
    sum += lanes;
  }
  return sum.sum();
}

}  // namespace

void fix_product_blocking() {
  // 32 KiB, 256 KiB and 2 MiB: fits every machine with AVX2. Static: done once, before any return.
  static const bool is_fixed = [] {
    Eigen::initParallel();
    Eigen::setCpuCacheSizes(32 << 10, 256 << 10, 2 << 20);
    return true;
  }();
  static_cast<void>(is_fixed);
}

void AttentionTile::compute(const QueryTile& tile, const KeyValueHead& keys, TileResult& result) {
  Strip strip;
  strip.rows = tile.q.rows();
  strip.first = visible_keys(tile, 0, 0).first;
  strip.width = num_keys(tile, strip.rows - 1) - strip.first;
  strip.stride = std::max(round_up(strip.width), kLanes);
  ensure_size(scores_, strip.rows * strip.stride);
  maxima_.setZero(round_up(strip.rows));
  sums_.setOnes(round_up(strip.rows));

  result.max_abs_score.resize(0);
  if (keys.abs_k.size() != 0) {
    compute_scores(tile.q.cwiseAbs(), keys.abs_k, strip);
    read_max_abs_scores(tile, strip, result.max_abs_score);
  }
  compute_scores(tile.q, keys.k, strip);
  compute_weights(tile, strip);
  if (tile.sinks.size() != 0) count_sinks(tile, strip);
  compute_outputs(keys.v, strip, result.out);
  compute_lse(tile, strip, result.lse);
}

void AttentionTile::compute_scores(const RowMatrix& q, const RowMatrix& k, const Strip& strip) {
  for (Index key = 0; key < strip.width; key += kKeyTile) {
    const Index count = std::min(kKeyTile, strip.width - key);
    StripMap scores{scores_.data() + key, strip.rows, count, Eigen::OuterStride<>{strip.stride}};
    scores.noalias() = q * k.middleRows(strip.first + key, count).transpose();
  }
}

void AttentionTile::read_max_abs_scores(const QueryTile& tile, const Strip& strip,
                                        Eigen::ArrayXd& target) {
  target.resize(strip.rows);
  for (Index row = 0; row < strip.rows; ++row) {
    // A score of a visible key is never below 0 here, so 0 stands for "no key".
    const double largest = mask_row(scores_.data() + row * strip.stride,
                                    visible_keys(tile, row, strip.first), strip.stride);
    const double sink = tile.sinks.size() == 0 ? 0.0 : std::abs(tile.sinks[row % tile.group]);
    target[row] = std::max({largest, sink, 0.0});
  }
}

void AttentionTile::compute_weights(const QueryTile& tile, const Strip& strip) {
  for (Index row = 0; row < strip.rows; ++row) {
    double* const scores = scores_.data() + row * strip.stride;
    if (tile.soft_cap > 0.0) cap_row(scores, tile.soft_cap, strip.stride);
    const VisibleKeys visible = visible_keys(tile, row, strip.first);
    const double maximum = mask_row(scores, visible, strip.stride);
    if (visible.first == visible.end) {
      // -inf - (-inf) would be NaN; without keys every weight is 0.
      std::fill(scores, scores + strip.stride, 0.0);
      continue;
    }
    maxima_[row] = maximum;
    sums_[row] = exponentiate_row(scores, maximum, strip.stride);
  }
}

void AttentionTile::count_sinks(const QueryTile& tile, const Strip& strip) {
  for (Index row = 0; row < strip.rows; ++row) {
    const double sink = tile.sinks[row % tile.group];
    // Without keys the sink is all there is; every weight is 0.
    const bool is_alone = num_keys(tile, row) == 0;
    const double maximum = is_alone ? sink : std::max(maxima_[row], sink);
    // A group of lanes at a time: the C library's exp is none of ours.
    Lanes powers = Lanes::Zero();
    powers[0] = is_alone ? -kInfinity : maxima_[row] - maximum;
    powers[1] = sink - maximum;
    powers = powers.exp().eval();
    double* const weights = scores_.data() + row * strip.stride;
    for (Index key = 0; key < strip.stride; key += kLanes) LanesMap{weights + key} *= powers[0];
    sums_[row] = (is_alone ? 0.0 : sums_[row] * powers[0]) + powers[1];
    maxima_[row] = maximum;
  }
}

void AttentionTile::compute_outputs(const RowMatrix& v, const Strip& strip, RowMatrix& target) {
  const StripMap weights{scores_.data(), strip.rows, strip.stride,
                         Eigen::OuterStride<>{strip.stride}};
  target.setZero(strip.rows, v.cols());
  for (Index key = 0; key < strip.width; key += kKeyTile) {
    const Index count = std::min(kKeyTile, strip.width - key);
    target.noalias() += weights.middleCols(key, count) * v.middleRows(strip.first + key, count);
  }
  for (Index row = 0; row < strip.rows; ++row) target.row(row) /= sums_[row];
}

void AttentionTile::compute_lse(const QueryTile& tile, const Strip& strip, Eigen::ArrayXd& target) {
  target.resize(round_up(strip.rows));
  for (Index row = 0; row < strip.rows; row += kLanes) {
    LanesMap{target.data() + row} =
        LanesMap{maxima_.data() + row} + LanesMap{sums_.data() + row}.log();
  }
  target.conservativeResize(strip.rows);
  if (tile.sinks.size() != 0) return;
  for (Index row = 0; row < strip.rows && num_keys(tile, row) == 0; ++row) target[row] = -kInfinity;
}

}  // namespace cpverify::reference
