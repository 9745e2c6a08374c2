#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <vector>

#include "sim/isa/insn.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/machine/matrix_descriptor.hpp"
#include "sim/machine/register_fence.hpp"

namespace cpverify::sim {

struct Cta;
struct Warp;
struct GroupProduct;

inline constexpr std::size_t kGroupWarps = 4;

/// D = A * B (+ D) of one warpgroup, whose first warp is `first`.
using GroupMultiply = void (*)(Cta& cta, std::size_t first, const GroupProduct& product);

/// A wgmma.mma_async that has been issued and that not all warps have waited for.
struct GroupProduct {
  const Insn* insn = nullptr;
  GroupMultiply multiply = nullptr;
  MatrixDescriptor a;  ///< Unless A is in registers.
  MatrixDescriptor b;
  std::span<const std::uint32_t> d_rows;
  std::span<const std::uint32_t> a_rows;  ///< Empty when A is in shared memory.
  std::uint32_t columns = 0;              ///< N.
  std::uint32_t parts = 2;                ///< 16 bytes of A and B along K, or rows, transposed.
  bool accumulates = false;               ///< scale-d
  bool negates_a = false;
  bool negates_b = false;
  bool is_done = false;                            ///< D has been written.
  std::array<std::uint32_t, kGroupWarps> group{};  ///< Each warp's commit group.
  std::uint32_t waiting = 0;                       ///< Bit i: warp i has not waited for it.
};

/// Operands: D, descriptor of A or four registers, descriptor of B, scale-d, then what the row has
/// of scale-a, scale-b, trans-a and trans-b.
struct OperandRows {
  std::span<const std::uint32_t> d;
  std::span<const std::uint32_t> a;
  std::uint32_t b = 0;
  std::uint32_t scale_d = 0;
  std::span<const std::uint32_t> constants;

  [[nodiscard]] bool has_a_registers() const noexcept { return a.size() != 1; }
};
[[nodiscard]] OperandRows operand_rows(const Warp& warp, const Insn* insn, const Form& form);

/// What a warpgroup has in flight. D is computed at the last legal moment, the first wait of one of
/// the warps, from what the operands hold then.
struct Warpgroup {
  std::vector<GroupProduct> products;  ///< In order of issue.
  std::array<std::uint32_t, kGroupWarps> committed{};
  RegisterFence fence;  ///< Of use only where accesses are looked at.

  void reset() noexcept {
    products.clear();
    committed.fill(0);
  }
};

/// The warps of a warpgroup that all stand at a warpgroup instruction execute it. Says whether any
/// goes on.
bool open_warpgroups(Cta& cta);

/// wgmma.commit_group of one warp.
void commit_products(Warp& warp) noexcept;

/// wgmma.wait_group of one warp: all but its newest `pending` groups are done.
void wait_for_products(Warp& warp, std::uint32_t pending);

/// True when the instruction names a register that a product in flight owns; it has been reported.
[[nodiscard]] bool is_reaching_into_flight(Warp& warp, const Insn* insn, std::uint32_t mask);

/// Calls visit(whether it is of A, offset in shared memory) for every 16 bytes of the operands
/// there.
void visit_operands(const GroupProduct& product,
                    const std::function<void(bool is_a, std::uint32_t address)>& visit);

/// How an instruction multiplies; null for combinations that are not supported.
[[nodiscard]] GroupMultiply find_multiply(const Form& form) noexcept;

}  // namespace cpverify::sim
