#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "cpverify/observer.hpp"
#include "sim/check/race_cell.hpp"
#include "sim/check/race_order.hpp"

namespace cpverify::sim {

/// Who has touched the bytes of one memory object. A cell stands for 128 bytes (16 of shared
/// memory), where parts of it are touched for 16, where parts of those are for 4, and so on for one
/// byte. It remembers every access that may still race with something that no other access of its
/// bytes races with, and that has not raced itself: the first race at a byte is always found.
class RaceMap {
 public:
  struct Touch {
    AccessKind kind = AccessKind::read;
    std::uint32_t lanes = 0;
    std::uint32_t size_bytes = 0;
    std::span<const std::uint64_t> addresses;  ///< [32]
    std::uint64_t base = 0;                    ///< Address of the object's first byte.
    /// Of lane 0. An asynchronous one has not ended until complete() says so.
    RaceLabel label{};
    const RaceOrder* order = nullptr;
    const RaceTimes* times = nullptr;  ///< Of the order.
  };
  struct Conflict {
    RaceLabel earlier{};
    bool is_earlier_write = false;
    std::uint32_t lanes = 0;   ///< Of the touch.
    std::uint64_t offset = 0;  ///< First byte of the lowest of the lanes that both touch.
  };

  RaceMap(MemorySpace space, std::uint64_t size_bytes);

  /// Adds an access, and to `conflicts` what it races with.
  void touch(const Touch& touch, std::vector<Conflict>& conflicts);
  /// The same for a touch by all lanes, neither strong nor asynchronous, of one place or of places
  /// side by side from `offset` on; its addresses are not looked at. False when it may race with
  /// something: it is to be added again by touch(), which does nothing twice.
  [[nodiscard]] bool touch_plain(const Touch& touch, bool is_uniform, std::uint64_t offset);
  /// The same for reads of 16 bytes, one for each lane, anywhere in shared memory; when false,
  /// nothing has happened.
  [[nodiscard]] bool touch_rows(const Touch& touch,
                                const std::array<std::uint32_t, 32>& offsets) noexcept;
  /// An asynchronous touch has ended: from here on it is an ordinary one of the runner.
  void complete(const Touch& touch);

 private:
  static constexpr std::uint32_t kLineBytes = 128;
  static constexpr std::uint32_t kRowBytes = 16;
  static constexpr std::uint64_t kBlockBytes = 4096;

  /// Lanes that follow each other without a gap.
  struct Run {
    std::uint64_t offset = 0;
    std::uint32_t size_bytes = 0;
    std::uint32_t first_lane = 0;
    std::uint32_t lane_count = 0;
  };
  /// What is done to the cells of a touch.
  struct Use;
  /// Labels of a cell with too many, in order of appearance.
  struct Crowd {
    std::vector<RaceLabel> writes;
    std::vector<RaceLabel> reads;
  };

  template <class Visit>
  static void for_each_run(const Touch& touch, Visit visit);
  [[nodiscard]] static bool is_settled(const Use& use, const RaceLabel& earlier) noexcept;
  [[nodiscard]] static bool is_repeated(const Use& use, const RaceCell& cell) noexcept;
  [[nodiscard]] static bool is_harmless(const Use& use, const RaceLabel& earlier) noexcept;
  [[nodiscard]] static bool is_before(const Use& use, const RaceLabel& earlier) noexcept;
  [[nodiscard]] static bool is_racing(const Use& use, const RaceLabel& earlier) noexcept;
  [[nodiscard]] static bool is_kept(const Use& use, const RaceLabel& label,
                                    const RaceLabel& earlier) noexcept;
  [[nodiscard]] static bool is_replaced(const Use& use, const RaceLabel& label,
                                        const RaceLabel& earlier) noexcept;
  [[nodiscard]] RaceCell& line_at(std::uint64_t offset);
  [[nodiscard]] RaceCell& row_at(std::uint64_t offset) noexcept {
    return rows_[offset / kRowBytes];
  }
  template <std::uint32_t cell_bytes>
  void split(RaceCell& cell);
  [[nodiscard]] bool use_run(Use& use, const Run& run);
  template <std::uint32_t cell_bytes>
  [[nodiscard]] bool use_part(const Use& use, RaceCell& cell, std::uint64_t offset,
                              std::uint32_t size_bytes);
  [[nodiscard]] bool use_cell(const Use& use, RaceCell& cell, std::uint64_t offset,
                              std::uint32_t size_bytes);
  [[nodiscard]] bool use_crowd(const Use& use, RaceCell& cell, std::uint64_t offset,
                               std::uint32_t size_bytes);
  [[nodiscard]] static bool check(const Use& use, std::span<const RaceLabel> writes,
                                  std::span<const RaceLabel> reads, std::uint64_t offset,
                                  std::uint32_t size_bytes);
  void add(const Use& use, RaceCell& cell, const RaceLabel& label);
  void add_read(const Use& use, RaceCell& cell, const RaceLabel& label);
  [[nodiscard]] static bool add_last_read(const Use& use, RaceCell& cell, const RaceLabel& label);
  void add_write(const Use& use, RaceCell& cell, const RaceLabel& label);
  [[nodiscard]] Crowd& make_crowd(RaceCell& cell);
  static void add_to_crowd(const Use& use, std::vector<RaceLabel>& labels, const RaceLabel& label);
  [[nodiscard]] bool add_rows(const Use& use,
                              const std::array<std::uint32_t, 32>& offsets) noexcept;
  [[nodiscard]] bool touch_lines(Use& use, const Run& run);
  [[nodiscard]] bool touch_words(Use& use, const Touch& touch);
  [[nodiscard]] bool is_of_rows(const Touch& touch) const noexcept;
  [[nodiscard]] bool begin_copies(const Touch& touch) noexcept;
  [[nodiscard]] bool end_copies(const Touch& touch) noexcept;
  void complete_cell(const Use& use, RaceCell& cell, std::uint32_t lane);

  std::vector<RaceCell*> blocks_;  ///< Of kBlockBytes; empty for shared memory.
  std::vector<RaceCell> rows_;     ///< Of shared memory.
  RaceCells cells_;
  std::vector<Crowd> crowds_;
};

}  // namespace cpverify::sim
