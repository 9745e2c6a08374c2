#pragma once

#include <compare>
#include <cstdint>

namespace cpverify {

/// An index that cannot be mistaken for another kind of index.
template <class Tag>
class Id {
 public:
  constexpr Id() noexcept = default;
  constexpr explicit Id(std::uint32_t value) noexcept : value_{value} {}
  [[nodiscard]] constexpr std::uint32_t value() const noexcept { return value_; }
  friend constexpr auto operator<=>(const Id&, const Id&) noexcept = default;

 private:
  std::uint32_t value_ = 0;
};

using RankId = Id<struct RankTag>;        ///< One GPU of a run: world rank, 0 .. cp*tp-1.
using RequestId = Id<struct RequestTag>;  ///< Index into Scenario::requests.
using BufferId = Id<struct BufferTag>;    ///< Index into RankPlan::buffers of one rank.

}  // namespace cpverify
