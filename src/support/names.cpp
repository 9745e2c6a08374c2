#include <string>
#include <string_view>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cpverify/launch.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/reduction.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/schedule.hpp"
#include "cpverify/verdict.hpp"

namespace cpverify {

std::string_view name(AttentionKind kind) noexcept {
  switch (kind) {
    case AttentionKind::mha:
      return "mha";
    case AttentionKind::gqa:
      return "gqa";
    case AttentionKind::mqa:
      return "mqa";
  }
  return "?";
}

std::string_view name(KvSharding sharding) noexcept {
  switch (sharding) {
    case KvSharding::dcp:
      return "dcp";
    case KvSharding::pcp_dcp:
      return "pcp_dcp";
    case KvSharding::dcp_over_pcp:
      return "dcp_over_pcp";
  }
  return "?";
}

std::string_view name(DcpVisibility visibility) noexcept {
  switch (visibility) {
    case DcpVisibility::split:
      return "split";
    case DcpVisibility::cached:
      return "cached";
  }
  return "?";
}

std::string_view name(DcpCombine combine) noexcept {
  switch (combine) {
    case DcpCombine::ag_rs:
      return "ag_rs";
    case DcpCombine::ag_rs_f32:
      return "ag_rs_f32";
    case DcpCombine::ag_ar:
      return "ag_ar";
    case DcpCombine::a2a:
      return "a2a";
  }
  return "?";
}

std::string_view name(DcpOwner owner) noexcept {
  switch (owner) {
    case DcpOwner::position:
      return "position";
    case DcpOwner::slot:
      return "slot";
  }
  return "?";
}

std::string_view name(CacheUnit unit) noexcept {
  switch (unit) {
    case CacheUnit::block:
      return "block";
    case CacheUnit::slot:
      return "slot";
  }
  return "?";
}

std::string_view name(CacheReuse reuse) noexcept {
  switch (reuse) {
    case CacheReuse::never:
      return "never";
    case CacheReuse::finished:
      return "finished";
  }
  return "?";
}

std::string_view name(CollectiveKind kind) noexcept {
  switch (kind) {
    case CollectiveKind::all_gather:
      return "all_gather";
    case CollectiveKind::all_reduce:
      return "all_reduce";
    case CollectiveKind::reduce_scatter:
      return "reduce_scatter";
    case CollectiveKind::all_to_all:
      return "all_to_all";
    case CollectiveKind::send_recv:
      return "send_recv";
  }
  return "?";
}

std::string_view name(DataMode mode) noexcept {
  switch (mode) {
    case DataMode::random:
      return "random";
    case DataMode::count:
      return "count";
    case DataMode::poison:
      return "poison";
  }
  return "?";
}

std::string_view name(StrategyKind kind) noexcept {
  switch (kind) {
    case StrategyKind::single:
      return "single";
    case StrategyKind::zigzag:
      return "zigzag";
    case StrategyKind::zigzag_combined:
      return "zigzag_combined";
    case StrategyKind::interleave:
      return "interleave";
    case StrategyKind::contiguous:
      return "contiguous";
    case StrategyKind::dcp:
      return "dcp";
    case StrategyKind::dcp_virtual:
      return "dcp_virtual";
    case StrategyKind::pcp_dcp:
      return "pcp_dcp";
    case StrategyKind::pcp_head_tail:
      return "pcp_head_tail";
    case StrategyKind::pcp_virtual_batch:
      return "pcp_virtual_batch";
    case StrategyKind::ring:
      return "ring";
    case StrategyKind::ring_contiguous:
      return "ring_contiguous";
    case StrategyKind::ulysses:
      return "ulysses";
    case StrategyKind::launch:
      return "launch";
  }
  return "?";
}

std::string_view name(BufferFill fill) noexcept {
  switch (fill) {
    case BufferFill::unwritten:
      return "unwritten";
    case BufferFill::zero:
      return "zero";
    case BufferFill::iota:
      return "iota";
    case BufferFill::random:
      return "random";
    case BufferFill::values:
      return "values";
  }
  return "?";
}

std::string_view name(AttentionKernel kernel) noexcept {
  switch (kernel) {
    case AttentionKernel::automatic:
      return "auto";
    case AttentionKernel::fma:
      return "fma";
    case AttentionKernel::mma:
      return "mma";
    case AttentionKernel::hopper:
      return "hopper";
  }
  return "?";
}

std::string_view name(SchedulePolicy policy) noexcept {
  switch (policy) {
    case SchedulePolicy::round_robin:
      return "round_robin";
    case SchedulePolicy::reverse:
      return "reverse";
    case SchedulePolicy::run_to_block:
      return "run_to_block";
    case SchedulePolicy::random:
      return "random";
    case SchedulePolicy::pct:
      return "pct";
  }
  return "?";
}

std::string_view name(ThreadScheduling threads) noexcept {
  switch (threads) {
    case ThreadScheduling::converged:
      return "converged";
    case ThreadScheduling::independent:
      return "independent";
  }
  return "?";
}

std::string text(const ScheduleSpec& schedule) {
  const std::string policy{name(schedule.policy)};
  const std::string_view suffix = schedule.threads == ThreadScheduling::independent ? "+its" : "";
  return is_seeded(schedule.policy) ? fmt::format("{}:{}{}", policy, schedule.seed, suffix)
                                    : fmt::format("{}{}", policy, suffix);
}

std::string_view name(ReductionOrder order) noexcept {
  switch (order) {
    case ReductionOrder::ring:
      return "ring";
    case ReductionOrder::tree:
      return "tree";
    case ReductionOrder::rank_ascending:
      return "rank_ascending";
    case ReductionOrder::adversarial:
      return "adversarial";
  }
  return "?";
}

std::string text(const ReductionSpec& reduction) {
  switch (reduction.order) {
    case ReductionOrder::ring:
      return fmt::format(
          "ring({}; channels {}; chunk {})",
          reduction.ring.empty() ? "in rank order"
                                 : fmt::format("{}", fmt::join(reduction.ring, " ")),
          reduction.channels,
          reduction.chunk_elems == 0 ? "even" : std::to_string(reduction.chunk_elems));
    case ReductionOrder::adversarial:
      return fmt::format("adversarial({})", reduction.seed);
    default:
      return std::string{name(reduction.order)};
  }
}

std::string_view name(Check check) noexcept {
  switch (check) {
    case Check::metadata:
      return "metadata";
    case Check::collectives:
      return "collectives";
    case Check::memcheck:
      return "memcheck";
    case Check::initcheck:
      return "initcheck";
    case Check::racecheck:
      return "racecheck";
    case Check::synccheck:
      return "synccheck";
    case Check::nancheck:
      return "nancheck";
    case Check::kv_pool:
      return "kv_pool";
    case Check::count:
      return "count";
    case Check::poison:
      return "poison";
    case Check::lse:
      return "lse";
    case Check::output:
      return "output";
    case Check::bitwise:
      return "bitwise";
    case Check::determinism:
      return "determinism";
  }
  return "?";
}

std::string_view name(Outcome outcome) noexcept {
  switch (outcome) {
    case Outcome::passed:
      return "PASS";
    case Outcome::failed:
      return "FAIL";
    case Outcome::weak:
      return "WEAK";
    case Outcome::refused:
      return "REFUSED";
    case Outcome::skipped:
      return "SKIPPED";
    case Outcome::error:
      return "ERROR";
  }
  return "?";
}

}  // namespace cpverify
