#include "layout/configuration.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

namespace cpverify::layout {
namespace {

// In the order of the enumerators.
constexpr std::array<std::string_view, 5> kCombineNames{"automatic", "ag_rs", "a2a", "fi_a2a",
                                                        "direct"};
}  // namespace

std::int64_t Configuration::attention_tp() const noexcept {
  if (system != System::sglang) return tp;
  return tp % (dp * cp) == 0 ? tp / (dp * cp) : 0;
}

std::int64_t Configuration::world_size() const noexcept {
  return system == System::sglang ? pp * tp : pp * dp * cp * tp;
}

std::string_view name(Combine combine) noexcept {
  return kCombineNames[static_cast<std::size_t>(combine)];
}

const std::vector<Combine>& all_combines() {
  static const std::vector<Combine> all{Combine::automatic, Combine::ag_rs, Combine::a2a,
                                        Combine::fi_a2a, Combine::direct};
  return all;
}

}  // namespace cpverify::layout
