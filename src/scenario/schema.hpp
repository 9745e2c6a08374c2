#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "cpverify/dtype.hpp"
#include "cpverify/scenario.hpp"

namespace cpverify::scenario {

/// A map of the scenario file. `finding` is an entry of expect.findings.
enum class Section : std::uint8_t {
  scenario,
  system,
  model,
  topology,
  dcp,
  cache,
  request,
  shared_prefix,
  trace,
  scheduler,
  padding,
  data,
  schedule,
  reduction,
  inject,
  expect,
  finding,
  expected_values,
  launch,
  buffer,
  launch_step,
  argument,
};

struct SectionKeys {
  Section section = Section::scenario;
  std::string_view name;  ///< As messages and docs/scenario.md call it.
  std::vector<std::string> keys;
};

/// Every key that the reader knows, section by section in the order of enum Section. Section inject
/// also takes the parameters of the defect that it names.
[[nodiscard]] const std::vector<SectionKeys>& schema();
[[nodiscard]] const SectionKeys& keys_of(Section section);

inline constexpr std::array kAttentionKinds{AttentionKind::mha, AttentionKind::gqa,
                                            AttentionKind::mqa};
inline constexpr std::array kModelDTypes{DType::f32, DType::f16, DType::bf16};
inline constexpr std::array kDataModes{DataMode::random, DataMode::count, DataMode::poison};
inline constexpr std::array kStrategies{StrategyKind::single,
                                        StrategyKind::zigzag,
                                        StrategyKind::zigzag_combined,
                                        StrategyKind::interleave,
                                        StrategyKind::contiguous,
                                        StrategyKind::dcp,
                                        StrategyKind::dcp_virtual,
                                        StrategyKind::pcp_dcp,
                                        StrategyKind::pcp_head_tail,
                                        StrategyKind::pcp_virtual_batch,
                                        StrategyKind::ring,
                                        StrategyKind::ring_contiguous,
                                        StrategyKind::ulysses};
inline constexpr std::array kDcpVisibilities{DcpVisibility::split, DcpVisibility::cached};
inline constexpr std::array kDcpCombines{DcpCombine::ag_rs, DcpCombine::ag_rs_f32,
                                         DcpCombine::ag_ar, DcpCombine::a2a};
inline constexpr std::array kDcpOwners{DcpOwner::position, DcpOwner::slot};
inline constexpr std::array kCacheUnits{CacheUnit::block, CacheUnit::slot};
inline constexpr std::array kCacheReuses{CacheReuse::never, CacheReuse::finished};
inline constexpr std::array kKvShardings{KvSharding::dcp, KvSharding::pcp_dcp,
                                         KvSharding::dcp_over_pcp};
/// The types of buffers that a launch scenario has.
inline constexpr std::array kBufferDTypes{DType::f32, DType::f16, DType::bf16,
                                          DType::i32, DType::i64, DType::u8};
inline constexpr std::array kBufferFills{BufferFill::unwritten, BufferFill::zero, BufferFill::iota,
                                         BufferFill::random};
inline constexpr std::array kAttentionKernels{AttentionKernel::automatic, AttentionKernel::fma,
                                              AttentionKernel::mma, AttentionKernel::hopper};
inline constexpr std::array kChecks{
    Check::metadata,  Check::collectives, Check::memcheck, Check::initcheck,  Check::racecheck,
    Check::synccheck, Check::nancheck,    Check::kv_pool,  Check::count,      Check::poison,
    Check::lse,       Check::output,      Check::bitwise,  Check::determinism};

/// Those that judge kernels without an attention problem.
inline constexpr std::array kLaunchChecks{Check::memcheck,   Check::initcheck, Check::racecheck,
                                          Check::synccheck,  Check::nancheck,  Check::output,
                                          Check::determinism};

/// Only where a scenario asks for them: kernels take half as long again, or many times as long.
inline constexpr std::array kSlowChecks{Check::racecheck, Check::nancheck};

/// Every token is simulated on all ranks and compared with a reference whose work grows with the
/// square of the length, so longer scenarios would never end; lengths of 32 bits are not reached.
inline constexpr std::int64_t kMaxTokens = std::int64_t{1} << 20;
inline constexpr std::int64_t kMaxRequests = 1024;
/// One simulated GPU per rank, each with its own pool and buffers.
inline constexpr std::int64_t kMaxWorldSize = 64;
inline constexpr std::int64_t kMaxHeads = 1024;
inline constexpr std::int64_t kMaxBlockSize = 1024;
/// num_blocks * block_size.
inline constexpr std::int64_t kMaxPoolSlots = std::int64_t{1} << 22;
/// Values of q, k and v over all tokens of all requests: 4 GiB in f32.
inline constexpr std::int64_t kMaxDataValues = std::int64_t{1} << 30;
inline constexpr std::int64_t kMaxTokenMultiple = 1024;
/// Of schedule pct: more changes make it like random.
inline constexpr std::int64_t kMaxScheduleDepth = 64;
/// Of all buffers of a launch scenario together: every byte is held in several copies.
inline constexpr std::int64_t kMaxLaunchBytes = std::int64_t{1} << 28;
/// A fraction of a second to a few seconds, and far more than small kernels need.
inline constexpr std::int64_t kDefaultInstructionBudget = std::int64_t{1} << 26;
inline constexpr std::int64_t kMaxInstructionBudget = std::int64_t{1} << 40;
/// NCCL has at most 64 channels; a chunk larger than any message is none.
inline constexpr std::int64_t kMaxReductionChannels = 64;
inline constexpr std::int64_t kMaxReductionChunk = std::int64_t{1} << 40;
inline constexpr std::int64_t kMaxArrivalStep = std::int64_t{1} << 20;

}  // namespace cpverify::scenario
