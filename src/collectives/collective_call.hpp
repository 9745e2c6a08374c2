#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "gpu/driver_types.hpp"
#include "gpu/nccl_api.hpp"

namespace cpverify::collectives {

enum class CallKind : std::uint8_t {
  all_gather,
  all_reduce,
  reduce_scatter,
  reduce,
  broadcast,
  all_to_all,
  send,
  recv,
};

/// One rank's call of a collective, or half of a transfer between two ranks.
struct CollectiveCall {
  CallKind kind = CallKind::all_gather;
  gpu::CuDevicePtr send = 0;
  gpu::CuDevicePtr recv = 0;
  std::size_t count = 0;  ///< Elements, of kinds with a block per rank those of a block.
  gpu::NcclDataType type = gpu::NcclDataType::uint8;
  gpu::CuStream stream = nullptr;
  gpu::NcclRedOp op = gpu::NcclRedOp::sum;
  int root = 0;  ///< Of reduce and broadcast; the peer of send and recv.

  /// Bytes of `count` elements.
  [[nodiscard]] std::size_t size_bytes() const noexcept { return count * gpu::size_bytes(type); }
  [[nodiscard]] bool is_transfer() const noexcept {
    return kind == CallKind::send || kind == CallKind::recv;
  }
  [[nodiscard]] bool is_reduction() const noexcept {
    return kind == CallKind::all_reduce || kind == CallKind::reduce_scatter ||
           kind == CallKind::reduce;
  }
};

/// "ncclAllGather".
[[nodiscard]] const char* name(CallKind kind) noexcept;

/// What a call alone gets wrong: types, ranks, null buffers, sizes that overflow.
[[nodiscard]] std::optional<std::string> problem_of(const CollectiveCall& call, std::size_t rank,
                                                    std::size_t ranks);

/// In what `call` of `rank` differs from rank 0's, or how its buffers overlap other than in place.
[[nodiscard]] std::optional<std::string> difference(const CollectiveCall& call, std::size_t rank,
                                                    std::size_t ranks, const CollectiveCall& first);

}  // namespace cpverify::collectives
