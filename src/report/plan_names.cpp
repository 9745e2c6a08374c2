#include "report/plan_names.hpp"

#include <string>
#include <string_view>

#include <fmt/format.h>

#include "cpverify/plan.hpp"
#include "cpverify/step.hpp"

namespace cpverify::report {

std::string_view name(BufferRole role) noexcept {
  switch (role) {
    case BufferRole::input:
      return "input";
    case BufferRole::metadata:
      return "metadata";
    case BufferRole::workspace:
      return "workspace";
    case BufferRole::output:
      return "output";
    case BufferRole::kv_pool:
      return "kv_pool";
  }
  return "?";
}

std::string_view name(TensorKind tensor) noexcept {
  switch (tensor) {
    case TensorKind::q:
      return "q";
    case TensorKind::k:
      return "k";
    case TensorKind::v:
      return "v";
    case TensorKind::sinks:
      return "sinks";
  }
  return "?";
}

std::string_view name(OutputKind kind) noexcept {
  switch (kind) {
    case OutputKind::attention:
      return "attention";
    case OutputKind::lse:
      return "lse";
  }
  return "?";
}

std::string_view name(RowState state) noexcept {
  switch (state) {
    case RowState::prefill:
      return "prefill";
    case RowState::decode:
      return "decode";
  }
  return "?";
}

std::string reference_text(const RankPlan& rank, const BufferRef& reference) {
  if (reference.buffer.value() >= rank.buffers.size()) return "?";
  const std::string& buffer = rank.buffers[reference.buffer.value()].name;
  return reference.offset_elems == 0 ? buffer
                                     : fmt::format("{} + {}", buffer, reference.offset_elems);
}

}  // namespace cpverify::report
