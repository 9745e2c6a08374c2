#include "sim/machine/warpgroup.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "cpverify/fault.hpp"
#include "cpverify/observer.hpp"
#include "sim/isa/insn.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/machine/checked_bytes.hpp"
#include "sim/machine/cta.hpp"
#include "sim/machine/flow.hpp"
#include "sim/machine/matrix_descriptor.hpp"
#include "sim/machine/warp.hpp"

namespace cpverify::sim {
namespace {

constexpr std::uint32_t kChunkBytes = 16;
constexpr std::uint32_t kRows = 64;
constexpr std::uint32_t kAllWarps = (1U << kGroupWarps) - 1;

std::span<Warp> warps_of(Cta& cta, std::size_t first) {
  return std::span{cta.warps}.subspan(first, kGroupWarps);
}

void report_text(Warp& warp, const Insn* insn, FaultKind kind, std::string_view detail) {
  ViolationEvent event;
  event.kind = kind;
  event.space = MemorySpace::registers;
  event.lanes = warp.active;
  event.detail = detail;
  report(warp, insn, event);
}

/// Calls visit(address) for every 16 bytes of an operand with `rows` rows of M or N.
template <class Visit>
void for_each_chunk(const MatrixDescriptor& operand, std::uint32_t rows, std::uint32_t parts,
                    Visit visit) {
  const std::uint32_t count = operand.is_transposed ? rows / 8 : rows;
  for (std::uint32_t i = 0; i < count; ++i) {
    for (std::uint32_t part = 0; part < parts; ++part) visit(operand.address(i, part));
  }
}

std::uint32_t parts_of(const MatrixDescriptor& operand) {
  return operand.is_transposed ? 16U : 2U;
}

template <class Visit>
void for_each_chunk(const GroupProduct& product, Visit visit) {
  if (product.a_rows.empty()) for_each_chunk(product.a, kRows, parts_of(product.a), visit);
  for_each_chunk(product.b, product.columns, parts_of(product.b), visit);
}

/// What is wrong with the operands in shared memory, if anything.
struct Trouble {
  std::uint32_t unreachable = kFullMask;  ///< Lowest address beyond shared memory.
  std::uint32_t unwritten = kFullMask;
};

Trouble look_at_operands(const CheckedBytes& shared, const GroupProduct& product) {
  Trouble trouble;
  const bool is_all_written = shared.is_all_written();
  for_each_chunk(product, [&](std::uint32_t address) {
    if (address + kChunkBytes > shared.size()) {
      trouble.unreachable = std::min(trouble.unreachable, address);
    } else if (!is_all_written && !shared.is_block_written(address, kChunkBytes)) {
      const auto first = static_cast<std::uint32_t>(shared.first_unwritten(address, kChunkBytes));
      trouble.unwritten = std::min(trouble.unwritten, first);
    }
  });
  return trouble;
}

void report_operand(Warp& warp, const Insn* insn, FaultKind kind, std::uint32_t address) {
  ViolationEvent event;
  event.kind = kind;
  event.space = MemorySpace::shared;
  event.lanes = 1;
  event.size_bytes = kChunkBytes;
  event.address = address;
  event.detail = "operand of wgmma.mma_async";
  report(warp, insn, event);
}

/// False when an operand is out of bounds: the launch is aborted.
bool check_operands(Cta& cta, std::size_t first, const GroupProduct& product) {
  const Trouble trouble = look_at_operands(cta.shared, product);
  Warp& warp = cta.warps[first];
  if (trouble.unreachable != kFullMask) {
    report_operand(warp, product.insn, FaultKind::out_of_bounds_read, trouble.unreachable);
    return false;
  }
  if (trouble.unwritten != kFullMask) {
    report_operand(warp, product.insn, FaultKind::uninitialised_read, trouble.unwritten);
  }
  return true;
}

/// Tells the observers of accesses that the operands are being read, or no longer are. The product
/// counts as its first warp's; a warp that has waited for it is behind that one.
void notify(Cta& cta, std::size_t first, const GroupProduct& product, bool is_end) {
  const LaunchState& launch = *cta.launch;
  if (launch.access_observers.empty()) return;
  const ExecutionPoint point = execution_point(cta.warps[first], product.insn);
  std::array<std::uint64_t, kLanes> addresses{};
  std::uint32_t count = 0;
  const auto flush = [&] {
    if (count == 0) return;
    AccessEvent event;
    event.kind = AccessKind::async_read;
    event.space = MemorySpace::shared;
    event.lanes = count == kLanes ? kFullMask : (1U << count) - 1;
    event.size_bytes = kChunkBytes;
    event.addresses = addresses;
    event.rank = cta.rank;
    event.object_bytes = cta.shared.size();
    event.memory = cta.shared.data();
    for (Observer* const observer : launch.access_observers) {
      if (is_end) {
        observer->on_completed(point, event);
      } else {
        observer->on_access(point, event);
      }
    }
    count = 0;
  };
  for_each_chunk(product, [&](std::uint32_t address) {
    addresses[count++] = address;
    if (count == kLanes) flush();
  });
  flush();
}

/// Registers that the products in flight own, one bit for each 64 bytes of the register file.
void mark_in_flight(Cta& cta, std::size_t first) {
  const Warpgroup& group = cta.warpgroups[first / kGroupWarps];
  for (std::size_t i = 0; i < kGroupWarps; ++i) {
    std::vector<std::uint64_t>& bits = cta.warps[first + i].in_flight;
    bits.clear();
    for (const GroupProduct& product : group.products) {
      if ((product.waiting >> i & 1U) == 0) continue;
      for (const auto& rows : {product.d_rows, product.a_rows}) {
        for (const std::uint32_t row : rows) {
          const std::size_t cell = row / 64;
          if (bits.size() <= cell / 64) bits.resize(cell / 64 + 1);
          bits[cell / 64] |= 1ULL << (cell % 64);
        }
      }
    }
  }
}

bool has_common_row(std::span<const std::uint32_t> left, std::span<const std::uint32_t> right) {
  return std::find_first_of(left.begin(), left.end(), right.begin(), right.end()) != left.end();
}

/// Products may follow each other without a wait when they have the same shape and accumulators.
/// Source: PTX ISA, "wgmma.fence".
bool may_follow(const GroupProduct& earlier, const GroupProduct& product) {
  const bool is_same =
      earlier.insn->op == product.insn->op && std::ranges::equal(earlier.d_rows, product.d_rows);
  return (is_same || !has_common_row(earlier.d_rows, product.d_rows)) &&
         !has_common_row(earlier.d_rows, product.a_rows) &&
         !has_common_row(earlier.a_rows, product.d_rows);
}

template <class T>
bool is_uniform(std::span<const Warp> warps, std::uint32_t row) {
  const T value = warps[0].row<const T>(row)[0];
  return std::all_of(warps.begin(), warps.end(), [&](const Warp& warp) {
    const T* const lanes = warp.row<const T>(row);
    return std::all_of(lanes, lanes + kLanes, [&](const T& lane) { return lane == value; });
  });
}

}  // namespace

void visit_operands(const GroupProduct& product,
                    const std::function<void(bool is_a, std::uint32_t address)>& visit) {
  const auto visit_one = [&](const MatrixDescriptor& operand, std::uint32_t rows, bool is_a) {
    for_each_chunk(operand, rows, parts_of(operand),
                   [&](std::uint32_t address) { visit(is_a, address); });
  };
  if (product.a_rows.empty()) visit_one(product.a, kRows, true);
  visit_one(product.b, product.columns, false);
}

OperandRows operand_rows(const Warp& warp, const Insn* insn, const Form& form) {
  const std::uint32_t* const wide = warp.wide + insn->target;
  const std::span<const std::uint32_t> rows{wide, wide[-1]};
  const bool has_halves = form.op == Op::wgmma_half_f16 ||
                          form.op == Op::wgmma_half_f16_registers || form.op == Op::wgmma_f8_f16 ||
                          form.op == Op::wgmma_f8_f16_registers;
  const std::size_t d = form.modifiers.columns / (has_halves ? 4U : 2U);
  const std::size_t a = info(form.op).name.ends_with("_registers") ? 4 : 1;
  return {rows.first(d), rows.subspan(d, a), rows[d + a], rows[d + a + 1], rows.subspan(d + a + 2)};
}

namespace {

/// Why the warps may not issue this together; empty when they may.
std::string_view find_mismatch(std::span<const Warp> warps, const OperandRows& rows) {
  if (!is_uniform<std::uint64_t>(warps, rows.b) ||
      (!rows.has_a_registers() && !is_uniform<std::uint64_t>(warps, rows.a[0]))) {
    return "the threads of a warpgroup give different matrix descriptors";
  }
  const std::uint32_t scale = warps[0].predicate(rows.scale_d);
  const bool is_same = std::all_of(warps.begin(), warps.end(), [&](const Warp& warp) {
    return warp.predicate(rows.scale_d) == scale;
  });
  if (!is_same || (scale != 0 && scale != kFullMask)) {
    return "the threads of a warpgroup give different values of scale-d";
  }
  const bool has_fence = std::all_of(warps.begin(), warps.end(),
                                     [](const Warp& warp) { return warp.has_fenced_registers; });
  return has_fence ? "" : "wgmma.mma_async without a wgmma.fence before it";
}

GroupProduct make_product(const Warp& warp, const Insn* insn, const OperandRows& rows,
                          const Form& form) {
  const auto constant = [&](std::size_t i, std::uint32_t missing) {
    return i < rows.constants.size() ? warp.row<const std::uint32_t>(rows.constants[i])[0]
                                     : missing;
  };
  const bool has_a_rows = rows.has_a_registers();
  const auto descriptor = [&](std::uint32_t row, bool is_transposed) {
    return MatrixDescriptor::decode(warp.row<const std::uint64_t>(row)[0], is_transposed);
  };
  GroupProduct product;
  product.insn = insn;
  product.multiply = find_multiply(form);
  product.columns = form.modifiers.columns;
  product.d_rows = rows.d;
  if (has_a_rows) product.a_rows = rows.a;
  if (!has_a_rows) product.a = descriptor(rows.a[0], constant(2, 0) != 0);
  product.b = descriptor(rows.b, constant(has_a_rows ? 2 : 3, 0) != 0);
  product.negates_a = constant(0, 1) != 1;
  product.negates_b = constant(1, 1) != 1;
  product.accumulates = warp.predicate(rows.scale_d) != 0;
  product.waiting = kAllWarps;
  return product;
}

/// Looked for where accesses are looked at, since it takes time. False when one has been reported.
bool check_fence(std::span<Warp> warps, const Warpgroup& group, const Insn* insn,
                 const OperandRows& rows) {
  if (warps[0].cta->launch->access_observers.empty()) return true;
  for (Warp& warp : warps) {
    ViolationEvent event;
    event.lanes = group.fence.changed_lanes(warp, rows.d);
    if (rows.has_a_registers()) event.lanes |= group.fence.changed_lanes(warp, rows.a);
    if (event.lanes == 0) continue;
    event.kind = FaultKind::race;
    event.space = MemorySpace::registers;
    event.detail = "a register of this wgmma.mma_async has been written since the last wgmma.fence";
    report(warp, insn, event);
    return false;
  }
  return true;
}

/// False when the launch is aborted.
bool issue_product(Cta& cta, std::size_t first, const Insn* insn) {
  const std::span<Warp> warps = warps_of(cta, first);
  Warpgroup& group = cta.warpgroups[first / kGroupWarps];
  const Form& form = cta.launch->code->forms[static_cast<std::size_t>(insn - warps[0].code)];
  const OperandRows rows = operand_rows(warps[0], insn, form);
  const std::string_view mismatch = find_mismatch(warps, rows);
  if (!mismatch.empty()) {
    report_text(warps[0], insn, FaultKind::illegal_instruction, mismatch);
    return false;
  }
  GroupProduct product = make_product(warps[0], insn, rows, form);
  product.group = group.committed;
  for (const GroupProduct& earlier : group.products) {
    if (may_follow(earlier, product)) continue;
    report_text(warps[0], insn, FaultKind::race,
                "this wgmma.mma_async names registers of another one that is in flight: "
                "wgmma.wait_group is missing");
    return false;
  }
  if (!check_fence(warps, group, insn, rows)) return false;
  if (!check_operands(cta, first, product)) return false;
  group.products.push_back(product);
  notify(cta, first, product, false);
  mark_in_flight(cta, first);
  return true;
}

void finish(Cta& cta, std::size_t first, GroupProduct& product) {
  // The operands may have become unwritten again, by a copy into them.
  if (!cta.shared.is_all_written() && !check_operands(cta, first, product)) return;
  FlowChecker* const special_values = cta.launch->flow_checkers.special_values;
  if (special_values != nullptr) special_values->before_product(cta, first, product);
  product.multiply(cta, first, product);
  if (special_values != nullptr) special_values->after_product(cta, first, product);
  product.is_done = true;
  for (const Warp& warp : warps_of(cta, first)) {
    cta.warpgroups[first / kGroupWarps].fence.update(warp, product.d_rows);
  }
  notify(cta, first, product, true);
}

bool is_set_registers(Op op) {
  return op == Op::set_registers_inc || op == Op::set_registers_dec;
}

/// Registers of each thread of a warp: what is not known is at least this.
constexpr std::uint32_t kRegistersMin = 24;

/// Registers that the warps of the CTA may have together, each counted once for its 32 threads.
std::uint32_t register_pool(const Cta& cta) {
  constexpr std::uint32_t kRegistersOfSm = 65536;
  const std::uint32_t at_launch = cta.launch->code->info.registers;
  if (at_launch == 0) return kRegistersOfSm / kLanes;
  return at_launch * static_cast<std::uint32_t>(cta.warps.size());
}

/// What a warpgroup makes of its instruction.
enum class Outcome : std::uint8_t { done, blocked, aborted };

/// setmaxnreg: .inc waits until others have given up enough. Source: PTX ISA, "setmaxnreg".
Outcome set_registers(Cta& cta, std::size_t first, const Insn* insn) {
  const std::span<Warp> warps = warps_of(cta, first);
  const std::uint32_t limit = warps[0].row<const std::uint32_t>(insn->r[0])[0];
  const std::uint32_t before = warps[0].register_limit;
  const bool is_increase = insn->op == Op::set_registers_inc;
  if (before != 0 && (is_increase ? limit < before : limit > before)) {
    const std::string detail = fmt::format("setmaxnreg.{} to {} registers from {}",
                                           is_increase ? "inc" : "dec", limit, before);
    report_text(warps[0], insn, FaultKind::illegal_instruction, detail);
    return Outcome::aborted;
  }
  std::uint32_t sum = 0;
  for (const Warp& warp : cta.warps) {
    const bool is_member = warp.index / kGroupWarps == first / kGroupWarps;
    if (warp.state == WarpState::done) continue;
    sum += is_member ? limit : std::max(warp.register_limit, kRegistersMin);
  }
  if (is_increase && sum > register_pool(cta)) return Outcome::blocked;
  for (Warp& warp : warps) warp.register_limit = limit;
  return Outcome::done;
}

Outcome execute(Cta& cta, std::size_t first, const Insn* insn) {
  if (is_set_registers(insn->op)) return set_registers(cta, first, insn);
  return issue_product(cta, first, insn) ? Outcome::done : Outcome::aborted;
}

bool are_all_waiting(std::span<const Warp> warps) {
  return std::all_of(warps.begin(), warps.end(),
                     [](const Warp& warp) { return warp.state == WarpState::at_warpgroup; });
}

}  // namespace

bool open_warpgroups(Cta& cta) {
  bool has_opened = false;
  for (std::size_t first = 0; first + kGroupWarps <= cta.warps.size(); first += kGroupWarps) {
    const std::span<Warp> warps = warps_of(cta, first);
    if (!are_all_waiting(warps)) continue;
    const Insn* const insn = warps[0].next - 1;
    for (Warp& warp : warps) {
      if (warp.next - 1 == insn) continue;
      report_text(warp, warp.next - 1, FaultKind::illegal_instruction,
                  "the warps of a warpgroup execute different warpgroup instructions");
      return false;
    }
    const Outcome outcome = execute(cta, first, insn);
    if (outcome == Outcome::aborted) return false;
    if (outcome == Outcome::blocked) continue;
    for (Warp& warp : warps) warp.state = WarpState::ready;
    has_opened = true;
  }
  return has_opened;
}

void commit_products(Warp& warp) noexcept {
  Warpgroup& group = warp.cta->warpgroups[warp.index / kGroupWarps];
  ++group.committed[warp.index % kGroupWarps];
}

void wait_for_products(Warp& warp, std::uint32_t pending) {
  const std::size_t place = warp.index % kGroupWarps;
  const std::size_t first = warp.index - place;
  Warpgroup& group = warp.cta->warpgroups[warp.index / kGroupWarps];
  bool has_changed = false;
  for (GroupProduct& product : group.products) {
    const bool is_complete = std::uint64_t{product.group[place]} + pending < group.committed[place];
    if (!is_complete || (product.waiting >> place & 1U) == 0) continue;
    if (!product.is_done) finish(*warp.cta, first, product);
    product.waiting &= ~(1U << place);
    has_changed = true;
  }
  if (!has_changed) return;
  for (Observer* const observer : warp.cta->launch->access_observers) {
    observer->on_ordered(warp.cta->rank, 1U << first | 1U << warp.index);
  }
  std::erase_if(group.products, [](const GroupProduct& product) { return product.waiting == 0; });
  mark_in_flight(*warp.cta, first);
}

bool is_reaching_into_flight(Warp& warp, const Insn* insn, std::uint32_t mask) {
  const auto is_owned = [&warp](std::uint32_t row) {
    const std::size_t cell = row / 64;
    return cell / 64 < warp.in_flight.size() &&
           (warp.in_flight[cell / 64] >> (cell % 64) & 1U) != 0;
  };
  // Other products in flight are looked at when all four warps have come.
  if (info(insn->op).name.starts_with("wgmma_")) return false;
  std::span<const std::uint32_t> rows{insn->r};
  if (insn->target != kNoIndex && info(insn->op).effect != Effect::branch) {
    const std::uint32_t* const wide = warp.wide + insn->target;
    rows = {wide, wide[-1]};
  }
  if (std::none_of(rows.begin(), rows.end(), is_owned)) return false;
  ViolationEvent event;
  event.kind = FaultKind::race;
  event.space = MemorySpace::registers;
  event.lanes = mask;
  event.detail = "a register of a wgmma.mma_async that is in flight: wgmma.wait_group is missing";
  report(warp, insn, event);
  return true;
}

}  // namespace cpverify::sim
