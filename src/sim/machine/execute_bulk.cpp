#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>

#include <fmt/format.h>

#include "cpverify/observer.hpp"
#include "sim/isa/insn.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/machine/async_work.hpp"
#include "sim/machine/bulk_access.hpp"
#include "sim/machine/bulk_combine.hpp"
#include "sim/machine/cta.hpp"
#include "sim/machine/lanes.hpp"
#include "sim/machine/warp.hpp"

/// cp.async.bulk, cp.reduce.async.bulk and their groups. Each lane copies for itself. Operands:
/// target, source, bytes, then the mbarrier where one counts.
namespace cpverify::sim {
namespace {

/// Unit of sizes and addresses. Source: PTX ISA, "cp.async.bulk".
constexpr std::uint32_t kBlockBytes = 16;

template <class Visit>
const Insn* for_each_lane(Warp& warp, const Insn* insn, std::uint32_t mask, Visit visit) {
  for (; mask != 0; mask &= mask - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(mask));
    if (!visit(BulkLane{&warp, insn, lane})) return nullptr;
  }
  return insn + 1;
}

BulkCopy::Combine combine_of(const BulkLane& lane) {
  const Modifiers& modifiers =
      lane.warp->cta->launch->code->forms[static_cast<std::size_t>(lane.insn - lane.warp->code)]
          .modifiers;
  return find_combine(modifiers.type, modifiers.reduce);
}

/// Where a copy goes from and to.
struct Route {
  Space target = Space::shared;
  Space source = Space::global;
  bool is_combined = false;
};

template <Route route>
bool copy_one(const BulkLane& lane) {
  BulkCopy copy;
  copy.insn = lane.insn;
  copy.warp = lane.warp->index;
  copy.lane = lane.lane;
  copy.size_bytes = lane.value<std::uint32_t>(lane.insn->r[2]);
  if (copy.size_bytes % kBlockBytes != 0) {
    return report_operands(
        lane, fmt::format("copies {} bytes, not a multiple of {}", copy.size_bytes, kBlockBytes));
  }
  const bool is_counted = route.target == Space::shared;
  if (is_counted && !find_counter(lane, lane.insn->r[3], copy)) return false;
  BulkCopy::Piece piece;
  piece.size_bytes = copy.size_bytes;
  if (copy.size_bytes > 0) {
    const BulkRange target{lane.insn->r[0], route.target, AccessKind::async_write, copy.size_bytes,
                           kBlockBytes};
    const BulkRange source{lane.insn->r[1], route.source, AccessKind::async_read, copy.size_bytes,
                           kBlockBytes};
    if (!find_range(lane, target, copy.target, piece.target) ||
        !find_range(lane, source, copy.source, piece.source)) {
      return false;
    }
    copy.pieces.push_back(piece);
  }
  if (route.is_combined) copy.combine = combine_of(lane);
  issue(*lane.warp->cta, std::move(copy));
  return true;
}

template <Route route>
const Insn* copy(Warp& warp, const Insn* insn, std::uint32_t mask) {
  return for_each_lane(warp, insn, mask, &copy_one<route>);
}

const Insn* commit(Warp& warp, const Insn* insn, std::uint32_t mask) {
  return for_each_lane(warp, insn, mask, [](const BulkLane& lane) {
    commit_bulk(*lane.warp->cta, lane.warp->index, lane.lane);
    return true;
  });
}

template <bool is_read_enough>
const Insn* wait(Warp& warp, const Insn* insn, std::uint32_t mask) {
  return for_each_lane(warp, insn, mask, [](const BulkLane& lane) {
    wait_bulk(*lane.warp->cta, {lane.warp->index, lane.lane},
              lane.value<std::uint32_t>(lane.insn->r[0]), is_read_enough);
    return true;
  });
}

/// Nothing is in a cache.
const Insn* do_nothing(Warp& /*warp*/, const Insn* insn, std::uint32_t /*mask*/) {
  return insn + 1;
}

constexpr Route kLoad{Space::shared, Space::global};
constexpr Route kMove{Space::shared, Space::shared};
constexpr Route kStore{Space::global, Space::shared};
constexpr Route kReduce{Space::global, Space::shared, true};
constexpr Route kReduceMove{Space::shared, Space::shared, true};

bool can_combine(const Form& form) {
  return find_combine(form.modifiers.type, form.modifiers.reduce) != nullptr;
}

}  // namespace

template <>
Handler select<Op::bulk_load>(const Form& /*form*/) {
  return &copy<kLoad>;
}
template <>
Handler select<Op::bulk_move>(const Form& /*form*/) {
  return &copy<kMove>;
}
template <>
Handler select<Op::bulk_store>(const Form& /*form*/) {
  return &copy<kStore>;
}
template <>
Handler select<Op::bulk_reduce>(const Form& form) {
  return can_combine(form) ? &copy<kReduce> : nullptr;
}
template <>
Handler select<Op::bulk_reduce_move>(const Form& form) {
  return can_combine(form) ? &copy<kReduceMove> : nullptr;
}
template <>
Handler select<Op::bulk_commit>(const Form& /*form*/) {
  return &commit;
}
template <>
Handler select<Op::bulk_wait>(const Form& /*form*/) {
  return &wait<false>;
}
template <>
Handler select<Op::bulk_wait_read>(const Form& /*form*/) {
  return &wait<true>;
}
template <>
Handler select<Op::bulk_prefetch>(const Form& /*form*/) {
  return &do_nothing;
}
template <>
Handler select<Op::bulk_tensor_prefetch>(const Form& /*form*/) {
  return &do_nothing;
}
template <>
Handler select<Op::prefetch_tensormap>(const Form& /*form*/) {
  return &do_nothing;
}

}  // namespace cpverify::sim
