#pragma once

#include <cstddef>
#include <vector>

#include "cpverify/data.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/step.hpp"

namespace cpverify::run {

/// Metadata values in the buffer's integer dtype, little endian. Throws nothing; a value that does
/// not fit is cut as the host code of a real system would cut it.
[[nodiscard]] std::vector<std::byte> metadata_bytes(const Buffer& buffer);

/// The rows of an input buffer: the step's new tokens in flattened order, heads sliced, then pad
/// rows of `pad` bytes.
[[nodiscard]] std::vector<std::byte> input_bytes(const Buffer& buffer, const Step& step,
                                                 const std::vector<RequestData>& data,
                                                 std::byte pad);

/// The logits of an input buffer's heads, of those of the whole model.
[[nodiscard]] std::vector<std::byte> sink_bytes(const Buffer& buffer,
                                                const std::vector<float>& logits);

/// What a pool of one rank holds.
struct PoolContent {
  TensorKind tensor = TensorKind::k;  ///< k or v.
  HeadRange heads;                    ///< KV heads of the rank.
  bool is_poisoned = false;           ///< Unused slots hold NaN instead of canaries.
  KvShard shard = {};                 ///< Tokens of the rank.
};

/// A pool before step 0: every byte a canary, or NaN, then the cached tokens at their slots.
[[nodiscard]] std::vector<std::byte> initial_pool_bytes(const Buffer& buffer,
                                                        const PoolContent& content,
                                                        const Problem& problem,
                                                        const std::vector<RequestData>& data);

/// NaN in f32, f16 and bf16 alike.
inline constexpr unsigned char kNanByte = 0xff;

}  // namespace cpverify::run
