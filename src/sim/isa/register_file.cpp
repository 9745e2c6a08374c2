#include "sim/isa/register_file.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>

#include "sim/isa/special_register.hpp"

namespace cpverify::sim {
namespace {

constexpr std::uint32_t kAlignBytes = 64;
constexpr std::uint32_t kLanes = 32;
constexpr std::uint32_t kPredicateBytes = 4;

}  // namespace

RegisterFile::RegisterFile() {
  (void)constant(~0ULL, 0);
}

std::uint32_t RegisterFile::add_row(RowWidth width) {
  if (width == 0) {
    if (predicates_left_ == 0) {
      predicates_end_ = size_bytes_;
      predicates_left_ = kAlignBytes / kPredicateBytes;
      size_bytes_ += kAlignBytes;
    }
    --predicates_left_;
    predicates_end_ += kPredicateBytes;
    return predicates_end_ - kPredicateBytes;
  }
  const std::uint32_t offset = size_bytes_;
  size_bytes_ += std::max(kAlignBytes, width * kLanes);
  return offset;
}

std::uint32_t RegisterFile::constant(std::uint64_t bits, RowWidth width) {
  const std::uint64_t kept = width == 0   ? (bits == 0 ? 0 : ~0ULL)
                             : width == 8 ? bits
                                          : bits & ((1ULL << (8 * width)) - 1);
  const auto [found, is_new] = constant_rows_.try_emplace(std::pair{kept, width}, 0);
  if (is_new) {
    found->second = add_row(width);
    constants_.push_back({found->second, width, kept});
  }
  return found->second;
}

std::uint32_t RegisterFile::parameter(std::uint32_t parameter_offset, RowWidth width) {
  const auto [found, is_new] = parameter_rows_.try_emplace(std::pair{parameter_offset, width}, 0);
  if (is_new) {
    found->second = add_row(width);
    parameters_.push_back({found->second, width, parameter_offset});
  }
  return found->second;
}

std::uint32_t RegisterFile::special(SpecialRegister which) {
  const auto [found, is_new] = special_rows_.try_emplace(which, 0);
  if (is_new) {
    found->second = add_row(4);
    specials_.push_back({found->second, which});
  }
  return found->second;
}

std::uint32_t RegisterFile::dynamic_shared(RowWidth width) {
  const auto [found, is_new] = dynamic_shared_rows_.try_emplace(width, 0);
  if (is_new) found->second = add_row(width);
  return found->second;
}

void RegisterFile::set_dynamic_shared(std::uint64_t offset) {
  for (const auto& [width, row] : dynamic_shared_rows_) constants_.push_back({row, width, offset});
}

std::string RegisterFile::name(std::uint32_t row) const {
  const auto found = names_.find(row);
  return found == names_.end() ? std::string{} : found->second;
}

}  // namespace cpverify::sim
