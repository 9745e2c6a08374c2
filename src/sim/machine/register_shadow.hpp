#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cpverify::sim {

/// What a checker knows of the registers of a warp: for each part of a register (a byte, or the
/// whole) the lanes in which it is marked, and where each mark comes from. A part is named by the
/// register's slot (FlowOperand::slot) and its number.
class RegisterShadow {
 public:
  static constexpr std::uint32_t kLanes = 32;
  /// The origin of a mark that has none: this bit and the slot and part where it was made.
  static constexpr std::uint32_t kOwnOrigin = 1U << 31;

  /// Makes room, with nothing marked.
  void reset(std::uint32_t slots) {
    masks_.assign(slots, 0);
    is_watched_.assign(slots, 0);
    origins_.clear();
    live_ = 0;
    watched_live_ = 0;
  }
  /// Marks of this part are counted apart: whoever touches the register looks for them.
  void watch(std::uint32_t slot, std::uint32_t part) noexcept {
    set_mask(slot, part, 0);
    is_watched_[slot + part] = 1;
  }
  [[nodiscard]] bool has_room() const noexcept { return !masks_.empty(); }
  /// Whether anything is marked that is not watched; and whether anything watched is.
  [[nodiscard]] bool is_live() const noexcept { return live_ > 0; }
  [[nodiscard]] bool is_watched_live() const noexcept { return watched_live_ > 0; }
  [[nodiscard]] std::uint32_t mask(std::uint32_t slot, std::uint32_t part) const noexcept {
    return masks_[slot + part];
  }
  [[nodiscard]] std::uint32_t origin(std::uint32_t slot, std::uint32_t part,
                                     std::size_t lane) const noexcept {
    const std::uint32_t known =
        origins_.empty() ? 0 : origins_[std::size_t{slot + part} * kLanes + lane];
    return known != 0 ? known : kOwnOrigin | (slot + part);
  }
  void set_mask(std::uint32_t slot, std::uint32_t part, std::uint32_t lanes) noexcept {
    store(slot + part, lanes);
  }
  /// 0 for none.
  void set_origin(std::uint32_t slot, std::uint32_t part, std::size_t lane, std::uint32_t origin) {
    if (origins_.empty()) {
      if (origin == 0) return;
      origins_.resize(masks_.size() * kLanes);
    }
    origins_[std::size_t{slot + part} * kLanes + lane] = origin;
  }
  /// Nothing of these lanes is marked any more.
  void forget_lanes(std::uint32_t lanes) noexcept {
    for (std::size_t i = 0; i < masks_.size(); ++i) store(i, masks_[i] & ~lanes);
  }

 private:
  void store(std::size_t place, std::uint32_t lanes) noexcept {
    std::uint32_t& live = is_watched_[place] != 0 ? watched_live_ : live_;
    live += static_cast<std::uint32_t>(lanes != 0);
    live -= static_cast<std::uint32_t>(masks_[place] != 0);
    masks_[place] = lanes;
  }

  std::vector<std::uint32_t> masks_;
  std::vector<std::uint8_t> is_watched_;  ///< One per mask.
  std::vector<std::uint32_t> origins_;    ///< [part][lane]; empty until the first is set.
  std::uint32_t live_ = 0;                ///< Masks that are not 0.
  std::uint32_t watched_live_ = 0;
};

}  // namespace cpverify::sim
