// Defects of soft-cap, sinks and windows: arguments of attention launches, and kernels.

#include <cstddef>
#include <cstdint>
#include <numbers>
#include <string_view>
#include <utility>
#include <variant>

#include "cpverify/ids.hpp"
#include "cpverify/launch.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "mutants/injection.hpp"
#include "mutants/replace_module.hpp"
#include "plan/launches.hpp"
#include "support/check.hpp"

namespace cpverify::mutants {
namespace {

using Argument = plan::AttentionArguments;

/// Calls edit(rank, launch) -> bool for the attention launches of the selected ranks and steps; the
/// number of ranks and steps that have one that changed.
template <class Edit>
std::size_t for_each_attention(const Injection& injection, const Edit& edit) {
  return injection.for_each_rank([&edit](const Plan& /*plan*/, RankPlan& rank) {
    bool has_changed = false;
    for (Operation& operation : rank.operations) {
      auto* launch = std::get_if<Launch>(&operation.body);
      if (launch == nullptr || !std::string_view{launch->module}.starts_with("attention")) continue;
      has_changed = edit(rank, *launch) || has_changed;
    }
    return has_changed;
  });
}

KernelArgument& argument(Launch& launch, std::size_t index) {
  return launch.arguments.at(index);
}

bool has_sinks(Launch& launch) {
  return std::holds_alternative<BufferRef>(argument(launch, Argument::kSinks));
}

/// What scores are multiplied by without a cap.
float plain_scale_log2(const ModelSpec& model) {
  return static_cast<float>(static_cast<double>(model.softmax_scale) * std::numbers::log2e);
}

BufferId sinks_of(const RankPlan& rank) {
  for (std::uint32_t id = 0; id < rank.buffers.size(); ++id) {
    if (rank.buffers[id].name == "sinks") return BufferId{id};
  }
  CPVERIFY_CHECK(false);
  return BufferId{0};
}

}  // namespace

std::size_t lose_soft_cap(const Injection& injection) {
  const float scale = plain_scale_log2(injection.model());
  if (injection.model().soft_cap == 0.0F) return 0;
  return for_each_attention(injection, [scale](const RankPlan& /*rank*/, Launch& launch) {
    argument(launch, Argument::kSoftCapScale) = 0.0F;
    argument(launch, Argument::kSoftmaxScaleLog2) = scale;
    return true;
  });
}

std::size_t scale_capped_scores(const Injection& injection) {
  const float scale = plain_scale_log2(injection.model());
  if (injection.model().soft_cap == 0.0F) return 0;
  return for_each_attention(injection, [scale](const RankPlan& /*rank*/, Launch& launch) {
    argument(launch, Argument::kSoftmaxScaleLog2) = scale;
    return true;
  });
}

std::size_t use_capped_mask(const Injection& injection) {
  if (injection.model().soft_cap == 0.0F) return 0;
  return replace_modules(injection, "attention_fma", "mutants/attention_fma_capped_mask");
}

std::size_t lose_sinks(const Injection& injection) {
  return for_each_attention(injection, [](const RankPlan& /*rank*/, Launch& launch) {
    if (!has_sinks(launch)) return false;
    argument(launch, Argument::kSinks) = std::int64_t{0};
    return true;
  });
}

std::size_t count_sinks_everywhere(const Injection& injection) {
  if (!injection.model().has_sinks) return 0;
  return for_each_attention(injection, [](const RankPlan& rank, Launch& launch) {
    if (has_sinks(launch)) return false;
    argument(launch, Argument::kSinks) = BufferRef{sinks_of(rank), 0};
    return true;
  });
}

std::size_t shift_window(const Injection& injection) {
  const std::int64_t window = injection.model().sliding_window;
  const std::int64_t shifted = window + injection.value("shift");
  if (window == 0 || shifted == window || !std::in_range<std::int32_t>(shifted) || shifted < 1) {
    return 0;
  }
  return for_each_attention(injection, [shifted](const RankPlan& /*rank*/, Launch& launch) {
    argument(launch, Argument::kWindow) = static_cast<std::int32_t>(shifted);
    return true;
  });
}

std::size_t lose_window(const Injection& injection) {
  if (injection.model().sliding_window == 0) return 0;
  return for_each_attention(injection, [](const RankPlan& /*rank*/, Launch& launch) {
    argument(launch, Argument::kWindow) = std::int32_t{0};
    return true;
  });
}

std::size_t use_local_window(const Injection& injection) {
  if (injection.model().sliding_window == 0) return 0;
  return replace_modules(injection, "attention_fma", "mutants/attention_fma_local_window") +
         replace_modules(injection, "attention_mma", "mutants/attention_mma_local_window");
}

}  // namespace cpverify::mutants
