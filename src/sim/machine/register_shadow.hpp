#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace cpverify::sim {

/// What a checker knows of the registers of a warp: for each part of a register (a byte, or a word)
/// the lanes in which it is marked, and where each mark comes from. A part is named by the
/// register's byte offset and its number; a row has room for 16 parts or more.
class RegisterShadow {
 public:
  static constexpr std::uint32_t kLanes = 32;

  /// Makes room, with nothing marked.
  void reset(std::uint32_t register_bytes) {
    masks_.assign(register_bytes / 4, 0);
    is_watched_.assign(masks_.size(), 0);
    origins_.resize(masks_.size() * kLanes);
    live_ = 0;
    watched_live_ = 0;
  }
  /// Marks of this part are counted apart: whoever touches the register looks for them.
  void watch(std::uint32_t row, std::uint32_t part) noexcept {
    set_mask(row, part, 0);
    is_watched_[row / 4 + part] = 1;
  }
  [[nodiscard]] bool has_room() const noexcept { return !masks_.empty(); }
  /// Whether anything is marked that is not watched; and whether anything watched is.
  [[nodiscard]] bool is_live() const noexcept { return live_ > 0; }
  [[nodiscard]] bool is_watched_live() const noexcept { return watched_live_ > 0; }
  [[nodiscard]] std::uint32_t mask(std::uint32_t row, std::uint32_t part) const noexcept {
    return masks_[row / 4 + part];
  }
  [[nodiscard]] std::uint32_t origin(std::uint32_t row, std::uint32_t part,
                                     std::size_t lane) const noexcept {
    return origins_[(std::size_t{row} / 4 + part) * kLanes + lane];
  }
  void set_mask(std::uint32_t row, std::uint32_t part, std::uint32_t lanes) noexcept {
    store(row / 4 + part, lanes);
  }
  void set_origin(std::uint32_t row, std::uint32_t part, std::size_t lane,
                  std::uint32_t origin) noexcept {
    origins_[(std::size_t{row} / 4 + part) * kLanes + lane] = origin;
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
  std::vector<std::uint32_t> origins_;
  std::uint32_t live_ = 0;  ///< Masks that are not 0.
  std::uint32_t watched_live_ = 0;
};

}  // namespace cpverify::sim
