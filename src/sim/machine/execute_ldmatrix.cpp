#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include <fmt/format.h>

#include "cpverify/observer.hpp"
#include "sim/isa/insn.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/machine/access.hpp"
#include "sim/machine/checked_bytes.hpp"
#include "sim/machine/lanes.hpp"
#include "sim/machine/plain_access.hpp"
#include "sim/machine/warp.hpp"
#include "sim/machine/whole_warp.hpp"

/// ldmatrix, stmatrix and movmatrix. Lanes 8m to 8m+7 give the addresses of the rows of matrix m: 8
/// elements of 16 bits. Lane l receives elements 2(l%4) and 2(l%4)+1 of row l/4, so that a
/// register's 32 lanes are the matrix, row by row. With .trans, rows and columns change places.
namespace cpverify::sim {
namespace {

constexpr std::size_t kMatrixRows = 8;
constexpr std::uint32_t kRowBytes = 16;

using Matrix = std::array<std::array<std::uint16_t, kMatrixRows>, kMatrixRows>;

/// In three steps, each of which interleaves rows.
Matrix transposed(const Matrix& matrix) {
  using Row [[gnu::vector_size(kRowBytes)]] = std::uint16_t;
  const auto low = [](Row a, Row b) {
    return __builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
  };
  const auto high = [](Row a, Row b) {
    return __builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
  };
  std::array<Row, kMatrixRows> rows{};
  std::memcpy(rows.data(), matrix.data(), sizeof matrix);
  for (int step = 0; step < 3; ++step) {
    const std::array<Row, kMatrixRows> old = rows;
    for (std::size_t i = 0; i < kMatrixRows / 2; ++i) {
      rows[2 * i] = low(old[i], old[i + kMatrixRows / 2]);
      rows[2 * i + 1] = high(old[i], old[i + kMatrixRows / 2]);
    }
  }
  Matrix result{};
  std::memcpy(result.data(), rows.data(), sizeof result);
  return result;
}

/// The rows that 8 lanes address become the lanes of a register.
template <bool is_transposed>
void gather_rows(const std::byte* shared, const std::uint32_t* offsets, std::byte* target) {
  Matrix matrix;  // NOLINT(cppcoreguidelines-pro-type-member-init): set below.
  for (std::size_t row = 0; row < kMatrixRows; ++row) {
    std::memcpy(matrix[row].data(), shared + offsets[row], kRowBytes);
  }
  if constexpr (is_transposed) matrix = transposed(matrix);
  std::memcpy(target, matrix.data(), sizeof matrix);
}

/// Only the lanes that address a row of `count` matrices need a good address.
constexpr std::uint32_t address_lanes(std::size_t count) {
  return count == 4 ? kFullMask : (1U << (count * kMatrixRows % 32)) - 1;
}

template <std::size_t count, bool is_transposed>
const Insn* load_matrices(Warp& warp, const Insn* insn, std::uint32_t mask) {
  if (!is_whole_warp(warp, insn, mask)) return nullptr;
  if constexpr (count * kMatrixRows == kLanes) {
    PlainRowsEvent rows;
    const CheckedBytes* const shared = plain_rows<kRowBytes>(warp, insn, insn->r[count], rows);
    for (std::size_t i = 0; i < count && shared != nullptr; ++i) {
      gather_rows<is_transposed>(shared->data(), &rows.offsets[i * kMatrixRows],
                                 warp.row<std::byte>(insn->r[i]));
    }
    if (shared != nullptr) return insn + 1;
  }
  AddressOperand address = address_operand(insn, count);
  std::array<Matrix, count> matrices{};
  Access access;
  for (std::uint32_t left = address_lanes(count); left != 0; left &= ~access.lanes) {
    if (!begin_access(warp, insn, left, {address, {AccessKind::read, kRowBytes}}, access)) {
      return nullptr;
    }
    for (std::size_t lane = 0; lane < count * kMatrixRows; ++lane) {
      if (((access.lanes >> lane) & 1U) == 0) continue;
      std::memcpy(matrices[lane / kMatrixRows][lane % kMatrixRows].data(),
                  access.bytes->data() + access.offsets[lane], kRowBytes);
    }
  }
  for (std::size_t i = 0; i < count; ++i) {
    const Matrix matrix = is_transposed ? transposed(matrices[i]) : matrices[i];
    static_assert(sizeof matrix == kLanes * sizeof(std::uint32_t));
    std::memcpy(warp.row<std::uint32_t>(insn->r[i]), matrix.data(), sizeof matrix);
  }
  return insn + 1;
}

/// [address], then `count` registers.
template <std::size_t count, bool is_transposed>
const Insn* store_matrices(Warp& warp, const Insn* insn, std::uint32_t mask) {
  if (!is_whole_warp(warp, insn, mask)) return nullptr;
  std::array<Matrix, count> matrices{};
  for (std::size_t i = 0; i < count; ++i) {
    std::memcpy(matrices[i].data(), warp.row<const std::uint32_t>(insn->r[1 + i]),
                sizeof matrices[i]);
    if constexpr (is_transposed) matrices[i] = transposed(matrices[i]);
  }
  const AddressOperand address = address_operand(insn, 0);
  Access access;
  for (std::uint32_t left = address_lanes(count); left != 0; left &= ~access.lanes) {
    if (!begin_access(warp, insn, left, {address, {AccessKind::write, kRowBytes}}, access)) {
      return nullptr;
    }
    for (std::size_t lane = 0; lane < count * kMatrixRows; ++lane) {
      if (((access.lanes >> lane) & 1U) == 0) continue;
      std::memcpy(access.bytes->data() + access.offsets[lane],
                  matrices[lane / kMatrixRows][lane % kMatrixRows].data(), kRowBytes);
    }
  }
  return insn + 1;
}

const Insn* transpose_matrix(Warp& warp, const Insn* insn, std::uint32_t mask) {
  if (!is_whole_warp(warp, insn, mask)) return nullptr;
  Matrix matrix{};
  std::memcpy(matrix.data(), warp.row<const std::uint32_t>(insn->r[1]), sizeof matrix);
  const Matrix result = transposed(matrix);
  std::memcpy(warp.row<std::uint32_t>(insn->r[0]), result.data(), sizeof result);
  return insn + 1;
}

template <std::size_t count>
Handler choose_store(const Form& form) {
  return form.modifiers.is_trans ? &store_matrices<count, true> : &store_matrices<count, false>;
}

template <std::size_t count>
Handler choose(const Form& form) {
  return form.modifiers.is_trans ? &load_matrices<count, true> : &load_matrices<count, false>;
}

}  // namespace

template <>
Handler select<Op::ldmatrix_x1>(const Form& form) {
  return choose<1>(form);
}
template <>
Handler select<Op::ldmatrix_x2>(const Form& form) {
  return choose<2>(form);
}
template <>
Handler select<Op::ldmatrix_x4>(const Form& form) {
  return choose<4>(form);
}
template <>
Handler select<Op::stmatrix_x1>(const Form& form) {
  return choose_store<1>(form);
}
template <>
Handler select<Op::stmatrix_x2>(const Form& form) {
  return choose_store<2>(form);
}
template <>
Handler select<Op::stmatrix_x4>(const Form& form) {
  return choose_store<4>(form);
}
template <>
Handler select<Op::movmatrix>(const Form& /*form*/) {
  return &transpose_matrix;
}

}  // namespace cpverify::sim
