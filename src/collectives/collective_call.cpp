#include "collectives/collective_call.hpp"

#include <cstddef>
#include <limits>
#include <optional>
#include <string>

#include <fmt/format.h>

#include "gpu/nccl_api.hpp"

namespace cpverify::collectives {
namespace {

/// Blocks in the buffers of a call.
struct Blocks {
  std::size_t send = 1;
  std::size_t recv = 1;
};

Blocks blocks_of(const CollectiveCall& call, std::size_t rank, std::size_t ranks) noexcept {
  const bool is_root = static_cast<std::size_t>(call.root) == rank;
  switch (call.kind) {
    case CallKind::all_gather:
      return {1, ranks};
    case CallKind::reduce_scatter:
      return {ranks, 1};
    case CallKind::all_to_all:
      return {ranks, ranks};
    case CallKind::reduce:
      return {1, is_root ? 1U : 0U};
    case CallKind::broadcast:
      return {is_root ? 1U : 0U, 1};
    case CallKind::send:
      return {1, 0};
    case CallKind::recv:
      return {0, 1};
    case CallKind::all_reduce:
      break;
  }
  return {};
}

/// Where send and recv coincide when a call works in place.
bool is_in_place(const CollectiveCall& call, std::size_t rank) noexcept {
  const std::size_t offset = rank * call.size_bytes();
  switch (call.kind) {
    case CallKind::all_gather:
      return call.send == call.recv + offset;
    case CallKind::reduce_scatter:
      return call.recv == call.send + offset;
    case CallKind::all_reduce:
    case CallKind::reduce:
    case CallKind::broadcast:
      return call.send == call.recv;
    case CallKind::all_to_all:
    case CallKind::send:
    case CallKind::recv:
      break;
  }
  return false;
}

const char* place_of(CallKind kind) noexcept {
  switch (kind) {
    case CallKind::all_gather:
      return "in place (at recv + rank * count)";
    case CallKind::reduce_scatter:
      return "in place (recv at send + rank * count)";
    case CallKind::all_to_all:
      return "not at all";
    default:
      return "in place (recv == send)";
  }
}

bool is_overlap_allowed(const CollectiveCall& call, std::size_t rank, std::size_t ranks) noexcept {
  const Blocks blocks = blocks_of(call, rank, ranks);
  const std::size_t send_bytes = blocks.send * call.size_bytes();
  const std::size_t recv_bytes = blocks.recv * call.size_bytes();
  if (send_bytes == 0 || recv_bytes == 0) return true;
  const bool is_apart = call.send + send_bytes <= call.recv || call.recv + recv_bytes <= call.send;
  return is_apart || is_in_place(call, rank);
}

}  // namespace

const char* name(CallKind kind) noexcept {
  switch (kind) {
    case CallKind::all_gather:
      return "ncclAllGather";
    case CallKind::all_reduce:
      return "ncclAllReduce";
    case CallKind::reduce_scatter:
      return "ncclReduceScatter";
    case CallKind::reduce:
      return "ncclReduce";
    case CallKind::broadcast:
      return "ncclBroadcast";
    case CallKind::all_to_all:
      return "ncclAlltoAll";
    case CallKind::send:
      return "ncclSend";
    case CallKind::recv:
      return "ncclRecv";
  }
  return "?";
}

std::optional<std::string> problem_of(const CollectiveCall& call, std::size_t rank,
                                      std::size_t ranks) {
  const char* const called = name(call.kind);
  const std::size_t width = gpu::size_bytes(call.type);
  if (width == 0) {
    return fmt::format("{}: {} is no data type", called, static_cast<int>(call.type));
  }
  const bool is_op = call.op >= gpu::NcclRedOp::sum && call.op <= gpu::NcclRedOp::avg;
  if (call.is_reduction() && !is_op) {
    return fmt::format("{}: {} is no reduction", called, static_cast<int>(call.op));
  }
  if (call.root < 0 || static_cast<std::size_t>(call.root) >= ranks) {
    return fmt::format("{}: {} is no rank of {}", called, call.root, ranks);
  }
  if (call.count > std::numeric_limits<std::size_t>::max() / width / ranks) {
    return fmt::format("{}: {} elements per rank overflow", called, call.count);
  }
  const Blocks blocks = blocks_of(call, rank, ranks);
  const bool is_null = (blocks.send > 0 && call.send == 0) || (blocks.recv > 0 && call.recv == 0);
  if (call.count > 0 && is_null) return fmt::format("{}: null buffer on rank {}", called, rank);
  return std::nullopt;
}

std::optional<std::string> difference(const CollectiveCall& call, std::size_t rank,
                                      std::size_t ranks, const CollectiveCall& first) {
  if (call.kind != first.kind) {
    return fmt::format("rank {} calls {}, rank 0 calls {}", rank, name(call.kind),
                       name(first.kind));
  }
  if (call.count != first.count || call.type != first.type) {
    return fmt::format("rank {} sends {} elements of type {}, rank 0 sends {} of type {}", rank,
                       call.count, static_cast<int>(call.type), first.count,
                       static_cast<int>(first.type));
  }
  if (call.op != first.op || call.root != first.root) {
    return fmt::format("rank {} asks for reduction {} and root {}, rank 0 for {} and {}", rank,
                       static_cast<int>(call.op), call.root, static_cast<int>(first.op),
                       first.root);
  }
  if (!is_overlap_allowed(call, rank, ranks)) {
    return fmt::format("send of rank {} overlaps recv other than {}", rank, place_of(call.kind));
  }
  return std::nullopt;
}

}  // namespace cpverify::collectives
