#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cpverify/fault.hpp"
#include "cpverify/observer.hpp"
#include "sim/isa/code.hpp"
#include "sim/isa/insn.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/machine/access.hpp"
#include "sim/machine/async_work.hpp"
#include "sim/machine/bulk_access.hpp"
#include "sim/machine/bulk_combine.hpp"
#include "sim/machine/cta.hpp"
#include "sim/machine/global_memory.hpp"
#include "sim/machine/lanes.hpp"
#include "sim/machine/tensor_map.hpp"
#include "sim/machine/warp.hpp"

/// cp.async.bulk.tensor and cp.reduce.async.bulk.tensor, tile mode. Operands of a load: target,
/// map, coordinates, mbarrier, hint; of a store: map, coordinates, source, hint.
namespace cpverify::sim {
namespace {

/// Of shared memory. Source: PTX ISA, "cp.async.bulk.tensor".
constexpr std::uint32_t kTileAlignBytes = 128;
constexpr std::uint32_t kMapAlignBytes = 64;

enum class Direction : std::uint8_t { load, store, reduce };

const Modifiers& modifiers_of(const BulkLane& lane) {
  const Code& code = *lane.warp->cta->launch->code;
  return code.forms[static_cast<std::size_t>(lane.insn - lane.warp->code)].modifiers;
}

/// Operands by place, wherever the decoder has put them.
struct Operands {
  const std::uint32_t* rows = nullptr;
  std::size_t map = 0;
  std::size_t dimensions = 0;

  [[nodiscard]] std::uint32_t after_coordinates() const { return rows[map + 1 + dimensions]; }
};

Operands operands_of(const BulkLane& lane, Direction direction) {
  Operands operands;
  operands.dimensions = modifiers_of(lane).dimensions;
  operands.map = direction == Direction::load ? 1 : 0;
  const std::size_t count = operands.dimensions + (direction == Direction::load ? 4 : 3);
  const Insn& insn = *lane.insn;
  operands.rows = count <= insn.r.size() ? insn.r.data() : lane.warp->wide + insn.target;
  return operands;
}

/// The tensor map that a generic address points to.
std::optional<TensorMap> find_map(const BulkLane& lane, const Operands& operands) {
  Access access;
  const AddressOperand address{operands.rows[operands.map], 8, Space::generic, 0};
  if (!locate(*lane.warp, lane.insn, 1U << lane.lane,
              {address, {AccessKind::async_read, kMapAlignBytes}}, access)) {
    return std::nullopt;
  }
  const std::uint64_t offset = access.offsets[lane.lane];
  std::optional<TensorMap> map;
  if (access.bytes->size() - offset >= TensorMap::kBytes) {
    map = decode_tensor_map(std::span<const std::byte, TensorMap::kBytes>{
        access.bytes->data() + offset, TensorMap::kBytes});
  }
  if (!map) {
    report_operands(lane, "no tensor map of cuTensorMapEncodeTiled is at its address");
    return std::nullopt;
  }
  if (map->rank == operands.dimensions) return map;
  report_operands(lane, fmt::format("the tensor map has {} dimensions, the instruction {}",
                                    map->rank, operands.dimensions));
  return std::nullopt;
}

/// A tensor that reaches beyond the allocation of its first byte.
bool report_outside(const BulkLane& lane, const TilePiece& piece, const BulkCopy::Side& global,
                    bool is_load) {
  ViolationEvent event;
  event.kind = is_load ? FaultKind::out_of_bounds_read : FaultKind::out_of_bounds_write;
  event.lanes = 1U << lane.lane;
  event.size_bytes = static_cast<std::uint32_t>(piece.size_bytes);
  const std::uint64_t end = global.base + global.bytes->size();
  event.address = piece.address < global.base ? piece.address : std::max(piece.address, end);
  event.allocation = global.base;
  event.allocation_bytes = global.bytes->size();
  event.detail = "inside of the tensor that the tensor map describes";
  report(*lane.warp, lane.insn, event);
  return false;
}

/// The allocation that a tensor begins in.
bool find_tensor(const BulkLane& lane, const TensorMap& map, BulkCopy::Side& side, bool is_load) {
  const LaunchState& launch = *lane.warp->cta->launch;
  Allocation* const allocation = launch.memory->find(map.address);
  if (allocation != nullptr && allocation->is_live && allocation->device == launch.device) {
    side = {&allocation->bytes, MemorySpace::global, allocation->base};
    return true;
  }
  ViolationEvent event;
  const bool is_freed = allocation != nullptr && !allocation->is_live;
  event.kind = is_freed  ? FaultKind::use_after_free
               : is_load ? FaultKind::out_of_bounds_read
                         : FaultKind::out_of_bounds_write;
  event.lanes = 1U << lane.lane;
  event.size_bytes = size_bytes(map.element);
  event.address = map.address;
  if (allocation != nullptr) {
    event.allocation = allocation->base;
    event.allocation_bytes = allocation->size_bytes;
  }
  event.detail = "the tensor of a tensor map";
  report(*lane.warp, lane.insn, event);
  return false;
}

/// Turns the tile into pieces between `global` and shared memory. What is outside of the tensor is
/// filled by a load and left out by a store.
bool add_pieces(const BulkLane& lane, const std::vector<TilePiece>& tile, BulkCopy& copy,
                bool is_load) {
  const BulkCopy::Side& global = is_load ? copy.source : copy.target;
  for (const TilePiece& piece : tile) {
    if (!piece.is_inside) {
      if (is_load) copy.pieces.push_back({piece.shared, BulkCopy::Piece::kFill, piece.size_bytes});
      continue;
    }
    const std::uint64_t offset = piece.address - global.base;
    const std::uint64_t size = global.bytes->size();
    if (offset > size || piece.size_bytes > size - offset) {
      return report_outside(lane, piece, global, is_load);
    }
    copy.pieces.push_back(is_load ? BulkCopy::Piece{piece.shared, offset, piece.size_bytes}
                                  : BulkCopy::Piece{offset, piece.shared, piece.size_bytes});
  }
  return true;
}

template <Direction direction>
bool copy_one(const BulkLane& lane) {
  constexpr bool is_load = direction == Direction::load;
  const Operands operands = operands_of(lane, direction);
  BulkCopy copy;
  copy.insn = lane.insn;
  copy.warp = lane.warp->index;
  copy.lane = lane.lane;
  if (is_load && !find_counter(lane, operands.after_coordinates(), copy)) return false;
  const std::optional<TensorMap> map = find_map(lane, operands);
  if (!map) return false;
  BulkCopy::Side& shared = is_load ? copy.target : copy.source;
  BulkCopy::Side& global = is_load ? copy.source : copy.target;
  if (!find_tensor(lane, *map, global, is_load)) return false;
  const BulkRange range{is_load ? operands.rows[0] : operands.after_coordinates(), Space::shared,
                        is_load ? AccessKind::async_write : AccessKind::async_read,
                        map->row_count() * map->pitch_bytes(), kTileAlignBytes};
  std::uint64_t offset = 0;
  if (!find_range(lane, range, shared, offset)) return false;
  std::array<std::int32_t, TensorMap::kRankMax> coordinates{};
  for (std::size_t i = 0; i < operands.dimensions; ++i) {
    coordinates[i] = lane.value<std::int32_t>(operands.rows[operands.map + 1 + i]);
  }
  if (!add_pieces(lane, tile_pieces(*map, coordinates, offset), copy, is_load)) return false;
  if (direction == Direction::reduce) {
    copy.combine = find_combine(map->element, modifiers_of(lane).reduce);
    if (copy.combine == nullptr) {
      return report_operands(lane, "the elements of the tensor cannot be combined so");
    }
  }
  copy.fill = map->fill_bits();
  copy.size_bytes = map->row_count() * map->row_bytes();
  issue(*lane.warp->cta, std::move(copy));
  return true;
}

template <Direction direction>
const Insn* copy(Warp& warp, const Insn* insn, std::uint32_t mask) {
  for (; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(mask));
    if (!copy_one<direction>({&warp, insn, lane})) return nullptr;
  }
  return insn + 1;
}

}  // namespace

template <>
Handler select<Op::bulk_tensor_load>(const Form& /*form*/) {
  return &copy<Direction::load>;
}
template <>
Handler select<Op::bulk_tensor_store>(const Form& /*form*/) {
  return &copy<Direction::store>;
}
template <>
Handler select<Op::bulk_tensor_reduce>(const Form& /*form*/) {
  return &copy<Direction::reduce>;
}

}  // namespace cpverify::sim
