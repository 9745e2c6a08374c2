#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "cpverify/fault.hpp"
#include "cpverify/observer.hpp"
#include "property/racecheck/race_oracle.hpp"
#include "sim/check/fault_table.hpp"
#include "sim/check/racecheck.hpp"
#include "sim/isa/code.hpp"
#include "sim/isa/insn.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/syntax.hpp"

/// Random launches, as the machine would tell racecheck of them, against RaceOracle. Deliberate
/// differences: of many races at one byte only the first must be reported, and one access names one
/// earlier access.
namespace cpverify::sim {
namespace {

constexpr std::uint64_t kBase = 0x10000;
constexpr std::uint64_t kObjectBytes = 1024;
constexpr std::uint32_t kAllWarps = (1U << RaceOracle::kWarps) - 1;

enum class What : std::uint8_t { access, copy, end_copy, barrier, some, arrive, wait, fence, cta };
enum class Shape : std::uint8_t { dense, uniform, permuted, strided };

struct Step {
  What what = What::access;
  std::uint32_t warp = 0;
  std::uint32_t bits = 0;  ///< Lanes, or warps.
  Shape shape = Shape::dense;
  std::uint32_t place = 0;
  std::uint32_t size_log2 = 2;
  AccessKind kind = AccessKind::read;
  MemoryOrder order = MemoryOrder::weak;
  bool is_shared = true;
  bool is_cta_scope = false;
};

rc::Gen<Step> any_step(bool is_partial) {
  using rc::gen::element;
  const auto what = is_partial ? rc::gen::weightedElement<What>({{24, What::access},
                                                                 {4, What::copy},
                                                                 {4, What::end_copy},
                                                                 {1, What::barrier},
                                                                 {4, What::some},
                                                                 {3, What::arrive},
                                                                 {3, What::wait},
                                                                 {2, What::fence},
                                                                 {1, What::cta}})
                               : rc::gen::weightedElement<What>({{24, What::access},
                                                                 {4, What::copy},
                                                                 {4, What::end_copy},
                                                                 {4, What::barrier},
                                                                 {2, What::fence},
                                                                 {1, What::cta}});
  return rc::gen::build<Step>(
      rc::gen::set(&Step::what, what), rc::gen::set(&Step::warp, rc::gen::inRange(0U, 4U)),
      rc::gen::set(&Step::bits, element(~0U, ~0U, ~0U, 0xFU, 0xFF00U, 1U, 0x10U, 0x80000003U)),
      rc::gen::set(&Step::shape, element(Shape::dense, Shape::dense, Shape::uniform,
                                         Shape::permuted, Shape::strided)),
      rc::gen::set(&Step::place, rc::gen::inRange(0U, 4U)),
      rc::gen::set(&Step::size_log2, element(0U, 1U, 2U, 2U, 3U, 4U, 4U, 4U)),
      rc::gen::set(&Step::kind, element(AccessKind::read, AccessKind::read, AccessKind::write,
                                        AccessKind::write, AccessKind::atomic)),
      rc::gen::set(&Step::order,
                   element(MemoryOrder::weak, MemoryOrder::weak, MemoryOrder::weak,
                           MemoryOrder::relaxed, MemoryOrder::acquire, MemoryOrder::release)),
      rc::gen::set(&Step::is_shared, rc::gen::arbitrary<bool>()),
      rc::gen::set(&Step::is_cta_scope, element(false, false, true)));
}

std::uint64_t offset_of(const Step& step, std::uint32_t lane) {
  const std::uint64_t size = 1ULL << step.size_log2;
  switch (step.shape) {
    case Shape::dense:
      return step.place * size * 8 + lane * size;
    case Shape::uniform:
      return step.place * size;
    case Shape::permuted:
      return (lane ^ (step.place * 5U)) * size;
    case Shape::strided:
      return std::uint64_t{lane} * 2 * size;
  }
  return 0;
}

/// One launch: racecheck and the oracle side by side. Every step is an instruction of its own, so
/// that each has a fault of its own.
class Launch {
 public:
  Launch(const std::vector<Step>& steps, bool is_partial)
      : code_{code_of(steps, is_partial)}, checker_{faults_, code_, RaceOracle::kWarps} {
    next_cta();
    for (const Step& step : steps) {
      take(step);
      ++id_;
    }
  }

  /// Empty when racecheck and the oracle agree.
  std::string difference() {
    for (const Fault& fault : faults_.take()) {
      const std::string text = check(fault);
      if (!text.empty()) return text;
    }
    if (required_.empty()) return {};
    const std::uint32_t id = *required_.begin();
    const RaceOracle::Race& race = races_[id].front();
    return fmt::format("instruction {}: not reported: lane {} at byte {} after instruction {}", id,
                       race.lane, race.byte, race.earlier);
  }

 private:
  struct Copy {
    std::uint32_t id = 0;
    RaceOracle::Access target;
    RaceOracle::Access source;
  };

  static Code code_of(const std::vector<Step>& steps, bool is_partial);
  void take(const Step& step);
  void next_cta();
  void access(const RaceOracle::Access& access, bool may_be_plain);
  void judge(const RaceOracle::Access& access);
  void end_copy(const Step& step);
  [[nodiscard]] RaceOracle::Access access_of(const Step& step) const;
  [[nodiscard]] ExecutionPoint point_of(std::uint32_t warp) const;
  [[nodiscard]] static AccessEvent event_of(const RaceOracle::Access& access,
                                            const std::array<std::uint64_t, 32>& addresses);
  [[nodiscard]] std::string check(const Fault& fault);

  Code code_;
  FaultTable faults_;
  Racecheck checker_;
  RaceOracle oracle_;
  std::uint32_t id_ = 0;
  std::uint32_t ctas_ = 0;
  std::vector<Copy> copies_;
  std::vector<std::vector<RaceOracle::Race>> races_;  ///< By instruction.
  std::set<std::uint32_t> required_;                  ///< Instructions that must have a fault.
  std::set<std::pair<bool, std::uint64_t>> raced_;    ///< Bytes with a race so far.
};

Code Launch::code_of(const std::vector<Step>& steps, bool is_partial) {
  Code code;
  for (std::size_t i = 0; i < steps.size() + 1; ++i) {
    Form form;
    form.op = Op::membar;
    if (i < steps.size() && steps[i].what == What::copy) form.op = Op::cp_async;
    if (i < steps.size() && steps[i].what == What::access) {
      const AccessKind kind = steps[i].kind;
      form.op = kind == AccessKind::read ? Op::ld : kind == AccessKind::write ? Op::st : Op::atom;
      form.modifiers.order = steps[i].order;
    }
    if (i == steps.size() && is_partial) form.op = Op::bar_arrive;
    code.forms.push_back(form);
    Insn insn;
    insn.op = form.op;
    code.insns.push_back(insn);
    code.lines.push_back({static_cast<std::uint32_t>(i), 0, 0, 0});
  }
  return code;
}

void Launch::next_cta() {
  oracle_.begin_cta();
  checker_.on_cta({ctas_++, 0, 0});
  copies_.clear();
}

ExecutionPoint Launch::point_of(std::uint32_t warp) const {
  ExecutionPoint point;
  point.instruction = id_;
  point.ptx_line = id_;
  point.cta = {ctas_ - 1, 0, 0};
  point.block = {RaceOracle::kWarps * 32, 1, 1};
  point.warp = warp;
  return point;
}

RaceOracle::Access Launch::access_of(const Step& step) const {
  RaceOracle::Access access;
  access.id = id_;
  access.warp = step.warp;
  access.lanes = step.bits;
  access.size_bytes = 1U << step.size_log2;
  for (std::uint32_t lane = 0; lane < 32; ++lane) access.offsets[lane] = offset_of(step, lane);
  access.kind = step.kind;
  access.order = step.order;
  access.is_shared = step.is_shared;
  access.is_cta_scope = step.is_cta_scope;
  return access;
}

AccessEvent Launch::event_of(const RaceOracle::Access& access,
                             const std::array<std::uint64_t, 32>& addresses) {
  // Every store stores what is not there yet, the same in all lanes.
  static const std::array<std::byte, kObjectBytes> memory{};
  static const auto stored = [] {
    std::array<std::byte, 512> bytes{};
    bytes.fill(std::byte{0x11});
    return bytes;
  }();
  static const std::array<const std::byte*, 1> columns{stored.data()};
  AccessEvent event;
  event.kind = access.kind;
  event.space = access.is_shared ? MemorySpace::shared : MemorySpace::global;
  event.lanes = access.lanes;
  event.size_bytes = access.size_bytes;
  event.addresses = addresses;
  event.order = access.order;
  event.is_cta_scope = access.is_cta_scope;
  event.base = access.is_shared ? 0 : kBase;
  event.object_bytes = kObjectBytes;
  event.memory = memory.data();
  if (access.kind == AccessKind::write) event.stored = columns;
  return event;
}

std::array<std::uint64_t, 32> addresses_of(const RaceOracle::Access& access) {
  std::array<std::uint64_t, 32> addresses = access.offsets;
  if (!access.is_shared) {
    for (std::uint64_t& address : addresses) address += kBase;
  }
  // Lanes that are not active repeat the first active one, as in the machine.
  std::uint32_t first = 0;
  while ((access.lanes >> first & 1U) == 0) ++first;
  for (std::uint32_t lane = 0; lane < 32; ++lane) {
    if ((access.lanes >> lane & 1U) == 0) addresses[lane] = addresses[first];
  }
  return addresses;
}

void Launch::access(const RaceOracle::Access& access, bool may_be_plain) {
  judge(access);
  const std::array<std::uint64_t, 32> addresses = addresses_of(access);
  const AccessEvent event = event_of(access, addresses);
  if (may_be_plain) {
    PlainAccessEvent plain;
    plain.kind = access.kind;
    plain.space = event.space;
    plain.is_uniform = access.offsets[0] == access.offsets[1];
    plain.size_bytes = access.size_bytes;
    plain.instruction = id_;
    plain.warp = access.warp;
    plain.base = event.base;
    plain.object_bytes = kObjectBytes;
    plain.offset = access.offsets[0];
    if (checker_.on_plain_access(plain)) return;
  }
  if (access.is_shared && access.kind == AccessKind::read && access.size_bytes == 16 &&
      access.lanes == ~0U) {
    PlainRowsEvent rows;
    rows.size_bytes = 16;
    rows.instruction = id_;
    rows.warp = access.warp;
    std::copy(access.offsets.begin(), access.offsets.end(), rows.offsets.begin());
    if (checker_.on_plain_rows(rows)) return;
  }
  checker_.on_access(point_of(access.warp), event);
}

/// What must be reported: a race at a byte that had none before.
void Launch::judge(const RaceOracle::Access& access) {
  races_.resize(id_ + 1);
  for (const RaceOracle::Race& race : oracle_.add(access)) {
    races_[id_].push_back(race);
    if (raced_.count({race.is_shared, race.byte}) == 0) required_.insert(id_);
  }
  for (const RaceOracle::Race& race : races_[id_]) raced_.insert({race.is_shared, race.byte});
}

void Launch::end_copy(const Step& step) {
  const auto copy = std::find_if(copies_.begin(), copies_.end(), [&](const Copy& candidate) {
    return candidate.target.warp == step.warp && (candidate.target.lanes & step.bits) != 0;
  });
  if (copy == copies_.end()) return;
  const std::uint32_t lanes = copy->target.lanes & step.bits;
  for (RaceOracle::Access* const side : {&copy->target, &copy->source}) {
    RaceOracle::Access part = *side;
    part.lanes = lanes;
    const std::array<std::uint64_t, 32> addresses = addresses_of(part);
    checker_.on_completed(point_of(step.warp), event_of(part, addresses));
    side->lanes &= ~lanes;
  }
  oracle_.end_copy(copy->id, lanes);
  if (copy->target.lanes == 0) copies_.erase(copy);
}

void Launch::take(const Step& step) {
  RaceOracle::Access one = access_of(step);
  switch (step.what) {
    case What::access: {
      const bool is_of_pattern = step.shape == Shape::dense || step.shape == Shape::uniform;
      access(one, step.kind != AccessKind::atomic && step.bits == ~0U && is_of_pattern);
      return;
    }
    case What::copy: {
      one.kind = AccessKind::async_write;
      one.order = MemoryOrder::weak;
      one.is_cta_scope = false;
      one.is_shared = true;
      one.size_bytes = std::max(one.size_bytes, 4U);
      Step source = step;
      source.shape = Shape::dense;
      source.size_log2 = std::max(step.size_log2, 2U);
      // Lanes that copy to one place are not looked at: they race with each other.
      if (source.size_log2 != step.size_log2 || step.shape == Shape::uniform) {
        for (std::uint32_t lane = 0; lane < 32; ++lane)
          one.offsets[lane] = std::uint64_t{lane} * one.size_bytes;
      }
      Copy copy{id_, one, one};
      copy.source.kind = AccessKind::async_read;
      copy.source.is_shared = false;
      for (std::uint32_t lane = 0; lane < 32; ++lane) {
        copy.source.offsets[lane] = offset_of(source, lane);
      }
      access(copy.target, false);
      access(copy.source, false);
      copies_.push_back(copy);
      return;
    }
    case What::end_copy:
      end_copy(step);
      return;
    case What::barrier:
      oracle_.meet(kAllWarps);
      checker_.on_ordered(0, kAllWarps);
      return;
    case What::some: {
      const std::uint32_t warps = 1U << step.warp | 1U << step.place;
      oracle_.meet(warps);
      checker_.on_ordered(0, warps);
      return;
    }
    case What::arrive:
      oracle_.arrive(step.warp, step.size_log2 % 2);
      checker_.on_mbarrier(point_of(step.warp), step.size_log2 % 2, MbarrierEvent::arrive);
      if (step.place % 2 == 0) return;
      oracle_.complete_phase(step.size_log2 % 2);
      checker_.on_mbarrier(point_of(step.warp), step.size_log2 % 2, MbarrierEvent::complete);
      return;
    case What::wait:
      oracle_.wait(step.warp, step.size_log2 % 2);
      checker_.on_mbarrier(point_of(step.warp), step.size_log2 % 2, MbarrierEvent::wait);
      return;
    case What::fence:
      oracle_.fence();
      checker_.on_fence(point_of(step.warp));
      return;
    case What::cta:
      next_cta();
      return;
  }
}

/// A fault must be a race of the oracle: the first byte, the thread of it, and the earlier
/// instruction and thread that its detail names.
std::string Launch::check(const Fault& fault) {
  const std::uint32_t id = fault.ptx_line;
  required_.erase(id);
  const std::uint64_t base = fault.space == MemorySpace::shared ? 0 : kBase;
  const auto is_named = [&](const RaceOracle::Race& race) {
    const std::string thread =
        fmt::format("thread ({},0,0), PTX line {} are in no order",
                    race.earlier_warp * 32 + race.earlier_lane, race.earlier);
    return race.is_shared == (fault.space == MemorySpace::shared) &&
           race.byte + base == fault.address && race.lane == fault.thread[0] % 32 &&
           fault.detail.find(thread) != std::string::npos;
  };
  const std::vector<RaceOracle::Race>& races = races_[id];
  if (std::any_of(races.begin(), races.end(), is_named)) return {};
  return fmt::format("instruction {}: reported, but no race: thread {} at byte {}: {}", id,
                     fault.thread[0], fault.address - base, fault.detail);
}

std::string describe(std::size_t index, const Step& step) {
  return fmt::format(
      "{}: what {} warp {} bits {:x} shape {} place {} size {} kind {} order {} shared {} "
      "cta-scope "
      "{}\n",
      index, static_cast<int>(step.what), step.warp, step.bits, static_cast<int>(step.shape),
      step.place, 1U << step.size_log2, static_cast<int>(step.kind), static_cast<int>(step.order),
      step.is_shared, step.is_cta_scope);
}

void compare(const std::vector<Step>& steps, bool is_partial) {
  Launch launch{steps, is_partial};
  const std::string difference = launch.difference();
  if (difference.empty()) return;
  std::string text = difference + "\n";
  for (std::size_t i = 0; i < steps.size(); ++i) text += describe(i, steps[i]);
  RC_FAIL(text);
}

/// Ten launches for each case that RapidCheck counts.
void compare_some(bool is_partial) {
  const auto steps = rc::gen::container<std::vector<Step>>(any_step(is_partial));
  const auto launches = *rc::gen::container<std::vector<std::vector<Step>>>(10, steps).as("steps");
  for (const std::vector<Step>& launch : launches) compare(launch, is_partial);
}

RC_GTEST_PROP(RacecheckProperty, SeesWhatTheOracleSeesUnderBarriersOfAllWarps, ()) {
  compare_some(false);
}

RC_GTEST_PROP(RacecheckProperty, SeesWhatTheOracleSeesUnderBarriersOfSomeWarps, ()) {
  compare_some(true);
}

}  // namespace
}  // namespace cpverify::sim
