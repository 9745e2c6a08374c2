#include "sim/isa/special_register.hpp"

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>

namespace cpverify::sim {
namespace {

constexpr std::array<std::string_view, 36> kNames{"%tid.x",
                                                  "%tid.y",
                                                  "%tid.z",
                                                  "%ntid.x",
                                                  "%ntid.y",
                                                  "%ntid.z",
                                                  "%ctaid.x",
                                                  "%ctaid.y",
                                                  "%ctaid.z",
                                                  "%nctaid.x",
                                                  "%nctaid.y",
                                                  "%nctaid.z",
                                                  "%laneid",
                                                  "%warpid",
                                                  "%nwarpid",
                                                  "%lanemask_eq",
                                                  "%lanemask_le",
                                                  "%lanemask_lt",
                                                  "%lanemask_ge",
                                                  "%lanemask_gt",
                                                  "%dynamic_smem_size",
                                                  "%cluster_ctaid.x",
                                                  "%cluster_ctaid.y",
                                                  "%cluster_ctaid.z",
                                                  "%cluster_nctaid.x",
                                                  "%cluster_nctaid.y",
                                                  "%cluster_nctaid.z",
                                                  "%cluster_ctarank",
                                                  "%cluster_nctarank",
                                                  "%clusterid.x",
                                                  "%clusterid.y",
                                                  "%clusterid.z",
                                                  "%nclusterid.x",
                                                  "%nclusterid.y",
                                                  "%nclusterid.z",
                                                  "%is_explicit_cluster"};
static_assert(kNames.size() == static_cast<std::size_t>(SpecialRegister::is_explicit_cluster) + 1);

}  // namespace

std::optional<ClockRegister> find_clock(std::string_view name) noexcept {
  if (name == "%clock" || name == "%globaltimer_lo") return ClockRegister{4, false};
  if (name == "%clock_hi" || name == "%globaltimer_hi") return ClockRegister{4, true};
  if (name == "%clock64" || name == "%globaltimer") return ClockRegister{8, false};
  return std::nullopt;
}

std::optional<SpecialRegister> find_special_register(std::string_view name) noexcept {
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    if (kNames[i] == name) return static_cast<SpecialRegister>(i);
  }
  return std::nullopt;
}

}  // namespace cpverify::sim
