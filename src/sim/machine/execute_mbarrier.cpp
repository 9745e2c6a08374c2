#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>
#include <string>

#include <fmt/format.h>

#include "cpverify/fault.hpp"
#include "cpverify/observer.hpp"
#include "sim/isa/insn.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/machine/access.hpp"
#include "sim/machine/async_work.hpp"
#include "sim/machine/cluster.hpp"
#include "sim/machine/cta.hpp"
#include "sim/machine/lanes.hpp"
#include "sim/machine/mbarrier.hpp"
#include "sim/machine/mbarrier_access.hpp"
#include "sim/machine/warp.hpp"

/// mbarrier and cp.async.mbarrier.arrive. The counts are kept beside shared memory; the object's
/// bytes show them, so that a store over an object in use is seen by the next operation on it.
namespace cpverify::sim {
namespace {

constexpr std::uint32_t kObjectBytes = 8;

/// Always false.
bool report_misuse(const MbarrierUse& use, const std::string& what) {
  const std::string detail = fmt::format("mbarrier at byte {}: {}", use.offset, what);
  ViolationEvent event;
  event.kind = FaultKind::mbarrier_misuse;
  event.space = MemorySpace::shared;
  event.lanes = 1U << use.lane;
  event.size_bytes = kObjectBytes;
  event.address = use.offset;
  event.detail = detail;
  report(*use.warp, use.insn, event);
  return false;
}

bool is_intact(const MbarrierUse& use, const Mbarrier& object) {
  std::uint64_t bits = 0;
  std::memcpy(&bits, use.cta().shared.data() + use.offset, kObjectBytes);
  return bits == object.bits();
}

/// Tells the observers of accesses; a write stores `stored`, one element per lane.
void notify(Warp& warp, const Insn* insn, const Access& access, const std::uint64_t* stored) {
  const LaunchState& launch = *warp.cta->launch;
  if (launch.access_observers.empty()) return;
  AccessEvent event;
  event.kind = stored == nullptr ? AccessKind::atomic : AccessKind::write;
  event.space = MemorySpace::shared;
  event.rank = rank_of(*warp.cta, *access.bytes);
  event.lanes = access.lanes;
  event.size_bytes = kObjectBytes;
  event.addresses = access.offsets;
  event.object_bytes = access.bytes->size();
  event.memory = access.bytes->data();
  const auto* const first = reinterpret_cast<const std::byte*>(stored);
  if (stored != nullptr) event.stored = std::span{&first, 1};
  const ExecutionPoint point = execution_point(warp, insn);
  for (Observer* const observer : launch.access_observers) observer->on_access(point, event);
}

/// Calls visit(use) for each lane until one returns false, which has been reported. The address is
/// operand `operand`; `stored` is for notify().
template <class Visit>
bool for_each_object(Warp& warp, const Insn* insn, std::uint32_t lanes, std::size_t operand,
                     const std::uint64_t* stored, Visit visit) {
  Access access;
  for (std::uint32_t left = lanes; left != 0; left &= ~access.lanes) {
    const AccessRequest request{address_operand(insn, operand), {AccessKind::atomic, kObjectBytes}};
    if (!locate(warp, insn, left, request, access)) return false;
    const auto first = static_cast<std::uint32_t>(std::countr_zero(access.lanes));
    if (access.bytes != &warp.cta->shared) {
      return report_misuse({&warp, insn, first, static_cast<std::uint32_t>(access.offsets[first])},
                           "not in shared memory");
    }
    notify(warp, insn, access, stored);
    for (std::uint32_t rest = access.lanes; rest != 0; rest &= rest - 1) {
      const auto lane = static_cast<std::uint32_t>(std::countr_zero(rest));
      if (!visit(
              MbarrierUse{&warp, insn, lane, static_cast<std::uint32_t>(access.offsets[lane])})) {
        return false;
      }
    }
  }
  return true;
}

const Insn* init(Warp& warp, const Insn* insn, std::uint32_t mask) {
  std::array<std::uint64_t, kLanes> stored{};
  const auto* const counts = warp.row<const std::uint32_t>(insn->r[1]);
  for (std::size_t lane = 0; lane < kLanes; ++lane) stored[lane] = Mbarrier{counts[lane]}.bits();
  const bool is_good =
      for_each_object(warp, insn, mask, 0, stored.data(), [](const MbarrierUse& use) {
        const auto count = use.operand<std::uint32_t>(1);
        if (count == 0 || count > Mbarrier::kCountMax) {
          return report_misuse(use, fmt::format("expects {} arrivals, from 1 to {} are possible",
                                                count, Mbarrier::kCountMax));
        }
        auto& objects = use.cta().mbarriers;
        const auto found = objects.find(use.offset);
        if (found != objects.end() && is_intact(use, found->second)) {
          return report_misuse(use, "initialised again without mbarrier.inval");
        }
        objects[use.offset] = Mbarrier{count};
        settle({use.warp, use.insn, use.offset, 0}, false);
        return true;
      });
  return is_good ? insn + 1 : nullptr;
}

/// The bytes stay what they are: free for any use.
const Insn* invalidate(Warp& warp, const Insn* insn, std::uint32_t mask) {
  const std::array<std::uint64_t, kLanes> stored{};
  const bool is_good =
      for_each_object(warp, insn, mask, 0, stored.data(), [](const MbarrierUse& use) {
        if (find_mbarrier(use) == nullptr) return false;
        use.cta().mbarriers.erase(use.offset);
        return true;
      });
  return is_good ? insn + 1 : nullptr;
}

template <bool is_expect>
const Insn* transact(Warp& warp, const Insn* insn, std::uint32_t mask) {
  const bool is_good = for_each_object(warp, insn, mask, 0, nullptr, [](const MbarrierUse& use) {
    Mbarrier* const object = find_mbarrier(use);
    if (object == nullptr) return false;
    const std::uint64_t phase = object->phase();
    const std::int64_t bytes = use.operand<std::uint32_t>(1);
    const std::string wrong = object->add_bytes(is_expect ? bytes : -bytes);
    if (!wrong.empty()) return report_misuse(use, wrong);
    settle({use.warp, use.insn, use.offset, phase}, false);
    return true;
  });
  return is_good ? insn + 1 : nullptr;
}

/// Operands: token, address, and the count, or the bytes that are expected before one arrival.
template <Mbarrier::Arrival arrival, bool has_bytes, bool is_release>
const Insn* arrive(Warp& warp, const Insn* insn, std::uint32_t mask) {
  const bool is_good = for_each_object(warp, insn, mask, 1, nullptr, [](const MbarrierUse& use) {
    Mbarrier* const object = find_mbarrier(use);
    if (object == nullptr) return false;
    const std::uint64_t phase = object->phase();
    const auto operand = use.operand<std::uint32_t>(2);
    std::string wrong;
    if (has_bytes) wrong = object->add_bytes(operand);
    const std::uint64_t token = object->bits();
    // All ones: not given.
    const std::uint32_t count = has_bytes || operand == kFullMask ? 1 : operand;
    if (wrong.empty()) wrong = object->arrive(count, arrival);
    if (!wrong.empty()) return report_misuse(use, wrong);
    use.warp->row<std::uint64_t>(use.insn->r[0])[use.lane] = token;
    settle({use.warp, use.insn, use.offset, phase}, is_release);
    return true;
  });
  return is_good ? insn + 1 : nullptr;
}

/// A wait that fails lets the other warps run; what only the machine can do is done first.
template <bool is_parity, bool is_acquire>
const Insn* wait(Warp& warp, const Insn* insn, std::uint32_t mask) {
  std::uint32_t over = 0;
  std::uint32_t awaited = kNoIndex;
  const auto test = [&](const MbarrierUse& use) {
    const Mbarrier* const object = find_mbarrier(use);
    if (object == nullptr) return false;
    const auto is_over = [&] {
      return is_parity ? object->is_parity_over(use.operand<std::uint32_t>(2))
                       : object->is_over(use.operand<std::uint64_t>(2));
    };
    if (!is_parity && !object->is_recent(use.operand<std::uint64_t>(2))) {
      return report_misuse(use, "waits with a token that is no longer that of the last phase");
    }
    if (is_over() || (complete_phase(use.cta(), use.offset) && is_over())) {
      over |= 1U << use.lane;
      const LaunchState& launch = *warp.cta->launch;
      if (!is_acquire || launch.access_observers.empty()) return true;
      const ExecutionPoint point = execution_point(warp, insn);
      for (Observer* const observer : launch.access_observers) {
        observer->on_mbarrier(point, use.offset, MbarrierEvent::wait);
      }
    } else if (awaited == kNoIndex) {
      awaited = use.offset;
    }
    return !warp.cta->launch->is_aborted;
  };
  if (!for_each_object(warp, insn, mask, 1, nullptr, test)) return nullptr;
  write_predicate(warp.predicate(insn->r[0]), over, mask);
  warp.awaited = awaited;
  if (awaited == kNoIndex) return insn + 1;
  warp.awaited_at = insn;
  warp.has_polled = true;
  warp.next = insn + 1;
  return nullptr;
}

const Insn* pending_count(Warp& warp, const Insn* insn, std::uint32_t mask) {
  struct PendingCount {
    static std::uint32_t apply(std::uint64_t token) { return Mbarrier::pending_of(token); }
  };
  return lanewise<PendingCount, std::uint32_t, std::uint64_t>(warp, insn, mask);
}

/// Without .noinc the arrival is one more than the phase expects.
template <bool is_extra>
const Insn* arrive_after_copies(Warp& warp, const Insn* insn, std::uint32_t mask) {
  const bool is_good = for_each_object(warp, insn, mask, 0, nullptr, [](const MbarrierUse& use) {
    Mbarrier* const object = find_mbarrier(use);
    if (object == nullptr) return false;
    if (is_extra) {
      const std::string wrong = object->expect_one_more();
      if (!wrong.empty()) return report_misuse(use, wrong);
    }
    settle({use.warp, use.insn, use.offset, object->phase()}, false);
    use.cta().async.arrivals.push_back(
        {use.insn, use.warp->index, use.lane, use.offset, use.warp->async.issued()});
    return true;
  });
  return is_good ? insn + 1 : nullptr;
}

template <Mbarrier::Arrival arrival, bool has_bytes>
Handler select_arrive(const Form& form) {
  return form.modifiers.order == MemoryOrder::relaxed ? &arrive<arrival, has_bytes, false>
                                                      : &arrive<arrival, has_bytes, true>;
}

template <bool is_parity>
Handler select_wait(const Form& form) {
  return form.modifiers.order == MemoryOrder::relaxed ? &wait<is_parity, false>
                                                      : &wait<is_parity, true>;
}

}  // namespace

Mbarrier* find_mbarrier(const MbarrierUse& use) {
  auto& objects = use.cta().mbarriers;
  const auto found = objects.find(use.offset);
  if (found == objects.end()) {
    report_misuse(use, "not initialised, or invalidated since");
    return nullptr;
  }
  if (!is_intact(use, found->second)) {
    report_misuse(use, "a store has changed the object while it was in use");
    return nullptr;
  }
  return &found->second;
}

void settle(const MbarrierChange& change, bool is_release) {
  Cta& cta = *change.warp->cta;
  const Mbarrier& object = cta.mbarriers.at(change.offset);
  const std::uint64_t bits = object.bits();
  std::memcpy(cta.shared.data() + change.offset, &bits, kObjectBytes);
  cta.shared.mark_written(change.offset, kObjectBytes);
  if (cta.launch->access_observers.empty()) return;
  const ExecutionPoint point = execution_point(*change.warp, change.insn);
  const bool is_complete = object.phase() != change.phase;
  for (Observer* const observer : cta.launch->access_observers) {
    if (is_release) observer->on_mbarrier(point, change.offset, MbarrierEvent::arrive);
    if (is_complete) observer->on_mbarrier(point, change.offset, MbarrierEvent::complete);
  }
}

template <>
Handler select<Op::mbarrier_init>(const Form& /*form*/) {
  return &init;
}
template <>
Handler select<Op::mbarrier_inval>(const Form& /*form*/) {
  return &invalidate;
}
template <>
Handler select<Op::mbarrier_expect_tx>(const Form& /*form*/) {
  return &transact<true>;
}
template <>
Handler select<Op::mbarrier_complete_tx>(const Form& /*form*/) {
  return &transact<false>;
}
template <>
Handler select<Op::mbarrier_arrive>(const Form& form) {
  return select_arrive<Mbarrier::Arrival::whole, false>(form);
}
template <>
Handler select<Op::mbarrier_arrive_tx>(const Form& form) {
  return select_arrive<Mbarrier::Arrival::whole, true>(form);
}
template <>
Handler select<Op::mbarrier_arrive_part>(const Form& form) {
  return select_arrive<Mbarrier::Arrival::no_complete, false>(form);
}
template <>
Handler select<Op::mbarrier_drop>(const Form& form) {
  return select_arrive<Mbarrier::Arrival::drop, false>(form);
}
template <>
Handler select<Op::mbarrier_drop_tx>(const Form& form) {
  return select_arrive<Mbarrier::Arrival::drop, true>(form);
}
template <>
Handler select<Op::mbarrier_drop_part>(const Form& form) {
  return select_arrive<Mbarrier::Arrival::drop_no_complete, false>(form);
}
template <>
Handler select<Op::mbarrier_test>(const Form& form) {
  return select_wait<false>(form);
}
template <>
Handler select<Op::mbarrier_test_parity>(const Form& form) {
  return select_wait<true>(form);
}
template <>
Handler select<Op::mbarrier_try>(const Form& form) {
  return select_wait<false>(form);
}
template <>
Handler select<Op::mbarrier_try_parity>(const Form& form) {
  return select_wait<true>(form);
}
template <>
Handler select<Op::mbarrier_pending>(const Form& /*form*/) {
  return &pending_count;
}
template <>
Handler select<Op::cp_mbarrier>(const Form& /*form*/) {
  return &arrive_after_copies<true>;
}
template <>
Handler select<Op::cp_mbarrier_noinc>(const Form& /*form*/) {
  return &arrive_after_copies<false>;
}

}  // namespace cpverify::sim
