#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sim/isa/special_register.hpp"
#include "sim/isa/type.hpp"

namespace cpverify::sim {

/// Bytes of one lane in a row that holds values of `type`; 0 for a predicate, which is one 32-bit
/// mask for all lanes.
using RowWidth = std::uint32_t;

struct ConstantRow {
  std::uint32_t offset = 0;
  RowWidth width = 4;
  std::uint64_t bits = 0;
};

/// Filled with the kernel parameter at `parameter_offset`.
struct ParameterRow {
  std::uint32_t offset = 0;
  RowWidth width = 4;
  std::uint32_t parameter_offset = 0;
};

struct SpecialRow {
  std::uint32_t offset = 0;
  SpecialRegister which = SpecialRegister::laneid;
};

/// The register file of one warp: rows of 32 lanes at 64-byte boundaries. Offset 0 is the predicate
/// that is always true.
class RegisterFile {
 public:
  RegisterFile();

  /// A fresh row; its byte offset.
  [[nodiscard]] std::uint32_t add_row(RowWidth width);
  /// Rows that are filled before the kernel starts; equal requests share one.
  [[nodiscard]] std::uint32_t constant(std::uint64_t bits, RowWidth width);
  [[nodiscard]] std::uint32_t parameter(std::uint32_t parameter_offset, RowWidth width);
  [[nodiscard]] std::uint32_t special(SpecialRegister which);
  /// The offset of dynamic shared memory, set when it is known.
  [[nodiscard]] std::uint32_t dynamic_shared(RowWidth width);
  void set_dynamic_shared(std::uint64_t offset);

  /// What the program calls a row.
  void set_name(std::uint32_t row, std::string_view name) { names_[row] = name; }
  /// Empty when the program has no name for it.
  [[nodiscard]] std::string name(std::uint32_t row) const;

  [[nodiscard]] std::uint32_t size_bytes() const noexcept { return size_bytes_; }
  [[nodiscard]] const std::vector<ConstantRow>& constants() const noexcept { return constants_; }
  [[nodiscard]] const std::vector<ParameterRow>& parameters() const noexcept { return parameters_; }
  [[nodiscard]] const std::vector<SpecialRow>& specials() const noexcept { return specials_; }

 private:
  std::uint32_t size_bytes_ = 0;
  std::uint32_t predicates_end_ = 0;  ///< Where the next predicate of the open 64 bytes goes.
  std::uint32_t predicates_left_ = 0;
  std::vector<ConstantRow> constants_;
  std::vector<ParameterRow> parameters_;
  std::vector<SpecialRow> specials_;
  std::map<std::pair<std::uint64_t, RowWidth>, std::uint32_t> constant_rows_;
  std::map<std::pair<std::uint32_t, RowWidth>, std::uint32_t> parameter_rows_;
  std::map<SpecialRegister, std::uint32_t> special_rows_;
  std::map<RowWidth, std::uint32_t> dynamic_shared_rows_;
  std::map<std::uint32_t, std::string> names_;
};

}  // namespace cpverify::sim
