// Defects of merging: launches of the module merge name a twin of kernels/mutants/ with one.

#include <cstddef>

#include "mutants/injection.hpp"
#include "mutants/replace_module.hpp"

namespace cpverify::mutants {

std::size_t use_merge_lse_base_swapped(const Injection& injection) {
  return replace_modules(injection, "merge", "mutants/merge_lse_base_swapped");
}

std::size_t use_merge_plain_mean(const Injection& injection) {
  return replace_modules(injection, "merge", "mutants/merge_plain_mean");
}

std::size_t use_merge_missing_rescale(const Injection& injection) {
  return replace_modules(injection, "merge", "mutants/merge_missing_rescale");
}

std::size_t use_merge_unguarded_empty_row(const Injection& injection) {
  return replace_modules(injection, "merge", "mutants/merge_unguarded_empty_row");
}

std::size_t use_merge_lse_transposed(const Injection& injection) {
  return replace_modules(injection, "merge", "mutants/merge_lse_transposed");
}

std::size_t use_merge_lse_16_bit(const Injection& injection) {
  return replace_modules(injection, "merge", "mutants/merge_lse_16_bit");
}

std::size_t use_merge_blocks_reversed(const Injection& injection) {
  return replace_modules(injection, "merge", "mutants/merge_blocks_reversed");
}

}  // namespace cpverify::mutants
