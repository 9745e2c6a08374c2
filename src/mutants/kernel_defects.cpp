// Defects inside kernels: launches name a module of kernels/mutants/ with the same entries.

#include <cstddef>
#include <string_view>
#include <variant>

#include "cpverify/plan.hpp"
#include "mutants/injection.hpp"
#include "mutants/replace_module.hpp"

namespace cpverify::mutants {
namespace {

/// Makes the launches of a module load its defective twin; false when there are none.
bool replace_module(RankPlan& rank, std::string_view module, std::string_view mutant) {
  bool has_changed = false;
  for (Operation& operation : rank.operations) {
    auto* launch = std::get_if<Launch>(&operation.body);
    if (launch != nullptr && launch->module == module) {
      launch->module = mutant;
      has_changed = true;
    }
  }
  return has_changed;
}

}  // namespace

std::size_t replace_modules(const Injection& injection, std::string_view module,
                            std::string_view mutant) {
  return injection.for_each_rank(
      [=](const Plan& /*plan*/, RankPlan& rank) { return replace_module(rank, module, mutant); });
}

std::size_t use_causal_plus_one(const Injection& injection) {
  return replace_modules(injection, "attention_fma", "mutants/attention_fma_causal_plus_one") +
         replace_modules(injection, "attention_mma", "mutants/attention_mma_causal_plus_one");
}

std::size_t use_lse_base2(const Injection& injection) {
  return replace_modules(injection, "attention_fma", "mutants/attention_fma_lse_base2") +
         replace_modules(injection, "attention_mma", "mutants/attention_mma_lse_base2");
}

std::size_t use_empty_row_finite(const Injection& injection) {
  return replace_modules(injection, "attention_fma", "mutants/attention_fma_empty_row_finite") +
         replace_modules(injection, "attention_mma", "mutants/attention_mma_empty_row_finite");
}

std::size_t use_missing_barrier(const Injection& injection) {
  return replace_modules(injection, "attention_mma", "mutants/attention_mma_missing_barrier");
}

std::size_t use_page_rounded(const Injection& injection) {
  return replace_modules(injection, "attention_fma", "mutants/attention_fma_page_rounded");
}

std::size_t use_no_wait(const Injection& injection) {
  return replace_modules(injection, "attention_mma", "mutants/attention_mma_no_wait") +
         replace_modules(injection, "attention_hopper", "mutants/attention_hopper_no_wait");
}

std::size_t use_no_trailing_barrier(const Injection& injection) {
  return replace_modules(injection, "attention_mma", "mutants/attention_mma_no_trailing_barrier");
}

std::size_t use_divergent_barrier(const Injection& injection) {
  return replace_modules(injection, "attention_mma", "mutants/attention_mma_divergent_barrier");
}

std::size_t use_divergent_shuffle(const Injection& injection) {
  return replace_modules(injection, "attention_mma", "mutants/attention_mma_divergent_shuffle");
}

std::size_t use_crowded_barrier(const Injection& injection) {
  return replace_modules(injection, "attention_mma", "mutants/attention_mma_crowded_barrier");
}

std::size_t use_one_slot(const Injection& injection) {
  return replace_modules(injection, "kv_write", "mutants/kv_write_one_slot");
}

std::size_t use_negative_slot(const Injection& injection) {
  return replace_modules(injection, "kv_write", "mutants/kv_write_negative_slot");
}

}  // namespace cpverify::mutants
