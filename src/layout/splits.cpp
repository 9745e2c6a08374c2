#include "layout/splits.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cpverify/error.hpp"
#include "layout/intervals.hpp"
#include "layout/request_parts.hpp"
#include "support/round_up.hpp"

namespace cpverify::layout {
namespace {

struct KindName {
  SplitKind kind;
  std::string_view name;
};

constexpr std::array kKindNames{
    KindName{SplitKind::single, "single"},
    KindName{SplitKind::zigzag, "zigzag"},
    KindName{SplitKind::zigzag_combined, "zigzag_combined"},
    KindName{SplitKind::interleave, "interleave"},
    KindName{SplitKind::contiguous, "contiguous"},
    KindName{SplitKind::dcp, "dcp"},
    KindName{SplitKind::dcp_virtual, "dcp_virtual"},
    KindName{SplitKind::pcp_head_tail, "pcp_head_tail"},
    KindName{SplitKind::pcp_virtual_batch, "pcp_virtual_batch"},
    KindName{SplitKind::ring, "ring"},
    KindName{SplitKind::ulysses, "ulysses"},
    KindName{SplitKind::ulysses_ring, "ulysses_ring"},
};

/// Pairs of 10^8 tokens times 10^3 heads still fit into 63 bits.
constexpr std::int64_t kTokensMax = 100'000'000;
constexpr std::uint32_t kRanksMax = 4096;
constexpr std::uint32_t kHeadsMax = 1024;
/// Places of a ring: its parts grow with their square.
constexpr std::int64_t kPlacesMax = 512;
/// Requests times ranks (times places of a ring): about a minute, and some hundred MiB.
constexpr std::int64_t kSharesMax = 10'000'000;

std::uint32_t count_ranks(const SplitSpec& spec) {
  switch (spec.kind) {
    case SplitKind::single:
      return 1;
    case SplitKind::dcp:
    case SplitKind::dcp_virtual:
      return spec.dcp;
    case SplitKind::pcp_head_tail:
      return spec.cp * spec.dcp;
    case SplitKind::pcp_virtual_batch:
      return std::max(spec.cp, spec.dcp);
    case SplitKind::zigzag:
    case SplitKind::zigzag_combined:
    case SplitKind::interleave:
    case SplitKind::contiguous:
    case SplitKind::ring:
    case SplitKind::ulysses:
    case SplitKind::ulysses_ring:
      return spec.cp;
  }
  return 1;
}

/// Ranks among which the query heads are cut into slices.
std::uint32_t count_head_slices(const SplitSpec& spec) {
  switch (spec.kind) {
    case SplitKind::dcp:
    case SplitKind::dcp_virtual:
    case SplitKind::pcp_head_tail:
      return spec.dcp;
    case SplitKind::pcp_virtual_batch:
      return std::max(1U, spec.dcp / spec.cp);
    case SplitKind::ulysses:
      return spec.cp;
    case SplitKind::ulysses_ring:
      return spec.ulysses;
    default:
      return 1;
  }
}

void check_size(std::string_view what, std::int64_t value, std::int64_t largest) {
  if (value < 1 || value > largest) {
    throw InputError{fmt::format("{} must be 1 to {}, not {}", what, largest, value)};
  }
}

void check_spec(const SplitSpec& spec) {
  check_size("cp", spec.cp, kRanksMax);
  check_size("dcp", spec.dcp, kRanksMax);
  check_size("ulysses", spec.ulysses, kRanksMax);
  check_size("interleave size", spec.interleave_size, 1 << 20);
  check_size("block size", spec.block_size, 1 << 20);
  check_size("query heads", spec.num_heads_q, kHeadsMax);
  check_size("ranks", count_ranks(spec), kRanksMax);
  if (spec.num_heads_q % count_head_slices(spec) != 0) {
    throw InputError{fmt::format("{}: {} query heads cannot be dealt to {} ranks", name(spec.kind),
                                 spec.num_heads_q, count_head_slices(spec))};
  }
  if (spec.kind == SplitKind::ulysses_ring && spec.cp % spec.ulysses != 0) {
    throw InputError{
        fmt::format("ulysses_ring: cp {} is not a multiple of ulysses {}", spec.cp, spec.ulysses)};
  }
  if (spec.kind == SplitKind::pcp_virtual_batch && spec.dcp != 1 && spec.dcp % spec.cp != 0) {
    throw InputError{fmt::format("pcp_virtual_batch: dcp {} is neither 1 nor a multiple of cp {}",
                                 spec.dcp, spec.cp)};
  }
}

void check_window(const SplitSpec& spec) {
  if (spec.window < 0) throw InputError{fmt::format("a window of {} keys", spec.window)};
  if (spec.window == 0 || computes_whole_rows(spec)) return;
  throw InputError{
      fmt::format("{}: the keys of a query are in several parts, and a window would be counted "
                  "back from the end of each",
                  name(spec.kind))};
}

void check_rows(const std::vector<SplitRow>& rows) {
  std::int64_t total = 0;
  for (const SplitRow& row : rows) {
    if (row.computed < 0 || row.scheduled < 0) {
      throw InputError{
          fmt::format("a request of {} new tokens after {} is none", row.scheduled, row.computed)};
    }
    total += std::min(row.computed, kTokensMax + 1) + std::min(row.scheduled, kTokensMax + 1);
    if (total > kTokensMax) {
      throw InputError{fmt::format("more than {} tokens in a batch", kTokensMax)};
    }
  }
}

void check_effort(const SplitSpec& spec, std::size_t num_requests) {
  const bool is_ring = spec.kind == SplitKind::ring || spec.kind == SplitKind::ulysses_ring;
  const std::int64_t degree = spec.kind == SplitKind::ulysses_ring ? spec.ulysses : 1;
  const std::int64_t places = is_ring ? spec.cp / degree : 1;
  check_size("places of a ring", places, kPlacesMax);
  const std::int64_t per_request = std::int64_t{count_ranks(spec)} * places;
  if (static_cast<std::int64_t>(num_requests) > kSharesMax / per_request) {
    throw InputError{fmt::format("{} requests on {} ranks are too many for one plan", num_requests,
                                 count_ranks(spec))};
  }
}

/// Whether the strategy splits this batch; if not, every rank computes all of it.
bool splits_batch(const SplitSpec& spec, const std::vector<SplitRow>& rows) {
  const auto all = [&rows](const auto& holds) {
    return std::all_of(rows.begin(), rows.end(), holds);
  };
  switch (spec.kind) {
    case SplitKind::zigzag:
    case SplitKind::zigzag_combined:
      return spec.cp > 1 && all([&spec](const SplitRow& row) {
               return !row.is_decode && row.scheduled >= 2 * std::int64_t{spec.cp};
             });
    case SplitKind::contiguous:
      return spec.cp > 1 && all([](const SplitRow& row) { return !row.is_decode; });
    case SplitKind::interleave: {
      std::int64_t tokens = 0;
      for (const SplitRow& row : rows) tokens += row.scheduled;
      return spec.cp > 1 && tokens >= spec.cp &&
             !all([](const SplitRow& row) { return row.is_decode; });
    }
    default:
      return true;
  }
}

}  // namespace

const std::vector<SplitKind>& all_split_kinds() {
  static const std::vector<SplitKind> kinds = [] {
    std::vector<SplitKind> all;
    all.reserve(kKindNames.size());
    for (const KindName& entry : kKindNames) all.push_back(entry.kind);
    return all;
  }();
  return kinds;
}

std::string_view name(SplitKind kind) noexcept {
  for (const KindName& entry : kKindNames) {
    if (entry.kind == kind) return entry.name;
  }
  return "?";
}

std::int64_t bottom_right_diagonal(const TokenSet& queries, const TokenSet& keys) noexcept {
  return keys.end - queries.end;
}

bool computes_whole_rows(const SplitSpec& spec) noexcept {
  switch (spec.kind) {
    case SplitKind::single:
    case SplitKind::zigzag:
    case SplitKind::zigzag_combined:
    case SplitKind::interleave:
    case SplitKind::contiguous:
    case SplitKind::ulysses:
      return true;
    case SplitKind::dcp:
    case SplitKind::dcp_virtual:
    case SplitKind::pcp_head_tail:
    case SplitKind::ring:
    case SplitKind::ulysses_ring:
      return false;
    case SplitKind::pcp_virtual_batch:
      return spec.dcp == 1;
  }
  return false;
}

std::int64_t shard_length(std::int64_t length, std::int64_t shard, std::int64_t num_shards,
                          std::int64_t interleave_size) noexcept {
  const std::int64_t base = length / interleave_size / num_shards * interleave_size;
  const std::int64_t rest = length - base * num_shards;
  return base + std::clamp<std::int64_t>(rest - shard * interleave_size, 0, interleave_size);
}

BatchSplit::BatchSplit(const SplitSpec& spec, std::vector<SplitRow> rows)
    : spec_{spec}, rows_{std::move(rows)} {
  check_spec(spec_);
  check_window(spec_);
  check_rows(rows_);
  check_effort(spec_, rows_.size());
  if (spec_.kind == SplitKind::dcp_virtual) spec_.interleave_size = 1;
  num_ranks_ = count_ranks(spec_);
  is_split_ = splits_batch(spec_, rows_);
  start_.push_back(0);
  first_block_.push_back(1);
  for (const SplitRow& row : rows_) {
    start_.push_back(start_.back() + row.scheduled);
    const std::int64_t largest = RequestGeometry{*this, row, 0}.largest_local_length();
    first_block_.push_back(first_block_.back() +
                           round_up(largest, spec_.block_size) / spec_.block_size);
  }
}

std::uint32_t BatchSplit::num_shards() const noexcept {
  switch (spec_.kind) {
    case SplitKind::dcp:
    case SplitKind::dcp_virtual:
    case SplitKind::pcp_head_tail:
      return num_ranks_;
    case SplitKind::pcp_virtual_batch:
      return spec_.dcp;
    default:
      return 1;
  }
}

std::uint32_t BatchSplit::shard(std::uint32_t rank) const noexcept {
  return num_shards() == 1 ? 0 : rank;
}

RequestSplit BatchSplit::request(std::size_t index) const {
  const RequestGeometry geometry{*this, rows_[index], start_[index]};
  RequestSplit split;
  split.request = static_cast<std::uint32_t>(index);
  split.row = rows_[index];
  split.window = spec_.window;
  geometry.add_parts(split);
  geometry.add_rows(split);
  geometry.add_stored(split);
  geometry.add_slots(split, first_block_[index] * spec_.block_size);
  return split;
}

std::int64_t BatchSplit::local_length(std::size_t index, std::uint32_t rank) const {
  return RequestGeometry{*this, rows_[index], start_[index]}.local_length(rank);
}

std::vector<std::int64_t> BatchSplit::rows_per_rank() const {
  std::vector<std::int64_t> rows(num_ranks_, 0);
  for (std::size_t index = 0; index < rows_.size(); ++index) {
    RequestSplit split;
    split.row = rows_[index];
    split.window = spec_.window;
    RequestGeometry{*this, rows_[index], start_[index]}.add_rows(split);
    for (const TokenShare& share : split.rows) rows[share.rank] += share.length;
  }
  return rows;
}

}  // namespace cpverify::layout
