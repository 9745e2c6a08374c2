#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "cpverify/observer.hpp"
#include "sim/check/race_line.hpp"
#include "sim/check/race_order.hpp"

namespace cpverify::sim {

/// Who has touched the bytes of one memory object. One runner (warp or CTA) acts at a time; what
/// the others did before it, and not before a point that orders everything, is old. Bits say which
/// bytes, exactly; labels say who, one per 4 bytes: the last writer and the first reader. Lines
/// that are touched as a whole only have one label for all their bytes, and no bits.
class RaceMap {
 public:
  struct Touch {
    AccessKind kind = AccessKind::read;
    std::uint32_t lanes = 0;
    std::uint32_t size_bytes = 0;
    std::span<const std::uint64_t> addresses;  ///< [32]
    std::uint64_t base = 0;                    ///< Address of the object's first byte.
    RaceLabel label{};                         ///< Of lane 0.
    const RaceOrder* order = nullptr;
    /// Remember that it has not ended: only complete() does that.
    bool is_pending = false;
  };
  struct Conflict {
    RaceLabel earlier{};
    bool is_earlier_write = false;
    std::uint32_t lanes = 0;   ///< Of the touch.
    std::uint64_t offset = 0;  ///< First byte of the lowest of the lanes that both touch.
  };

  explicit RaceMap(std::uint64_t size_bytes)
      : blocks_((size_bytes + kPageBytes - 1) / kPageBytes) {}
  ~RaceMap();  ///< Keeps pages for the next maps of this thread.
  RaceMap(const RaceMap&) = delete;
  RaceMap& operator=(const RaceMap&) = delete;
  RaceMap(RaceMap&&) = delete;
  RaceMap& operator=(RaceMap&&) = delete;

  /// Adds an access, and to `conflicts` what it races with.
  void touch(const Touch& touch, std::vector<Conflict>& conflicts);
  /// The same for a touch by all lanes, neither strong nor pending, of one place or of places side
  /// by side from `offset` on; its addresses are not looked at. False when it may race with
  /// something: it is to be added again by touch(), which does nothing twice.
  [[nodiscard]] bool touch_plain(const Touch& touch, bool is_uniform, std::uint64_t offset);
  /// A pending touch has ended: from here on it is an ordinary one of the runner.
  void complete(const Touch& touch);
  /// Another runner begins.
  void absorb() noexcept;
  /// Everything so far is before everything to come, but for pending touches.
  void forget() noexcept;
  /// Everything, pending touches too.
  void reset() noexcept;

 private:
  static constexpr std::uint64_t kPageBytes = 4096;
  static constexpr std::size_t kWords = kPageBytes / 64;
  using Bits = std::array<std::uint64_t, kWords>;  ///< One per byte.

  // NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): a label is read where it has bits only.
  struct Set {
    Bits own{};
    Bits old{};
    Bits pending{};
    std::array<RaceLabel, kPageBytes / 4> labels;  ///< Only where there are bits.
  };
  struct Block;
  /// Bits and labels of a block.
  struct Page {
    Set reads;
    Set writes;
    bool is_dirty = false;  ///< Has bits in own.
    bool is_old = false;    ///< May have bits in old.
    Block* block = nullptr;
  };
  /// What is known of kPageBytes bytes.
  struct Block {
    std::array<RaceLine, kPageBytes / RaceLine::kBytes> lines;
    std::uint32_t detailed = 0;  ///< Bit i: line i is in the page, and not in `lines`.
    Page* page = nullptr;        ///< May be null while no line is.
  };
  /// Lanes that follow each other without a gap, within one word of bits.
  struct Run {
    std::uint64_t offset = 0;
    std::uint32_t size_bytes = 0;
    std::uint32_t first_lane = 0;
    std::uint32_t lane_count = 0;
  };

  struct Pool;

  template <class Visit>
  static void for_each_run(const Touch& touch, Visit visit);
  template <class Visit>
  static void for_each_dense_run(std::uint64_t first, std::uint32_t size_bytes, Visit visit);
  [[nodiscard]] Block& block_at(std::uint64_t offset);
  [[nodiscard]] Block& new_block(std::uint64_t index);
  [[nodiscard]] Page& detailed_page(std::uint64_t offset);
  void add_detail(Block& block, std::size_t line);
  void make_dirty(Block& block);
  template <class Visit>
  static void for_each_word(const Page& page, Visit visit);
  void release(Page& page);
  static Pool& pool();
  void absorb_pages() noexcept;
  [[nodiscard]] bool touch_line(const Touch& touch, std::uint64_t offset, std::uint32_t lane);
  [[nodiscard]] bool touch_quietly(const Touch& touch, const Run& run);
  void read_blocks(const Touch& touch, std::vector<Conflict>& conflicts);
  static void find_any(const Touch& touch, const Run& run, const Page& page,
                       std::vector<Conflict>& conflicts);
  void touch_run(const Touch& touch, const Run& run, std::vector<Conflict>& conflicts);
  static void label_run(const Touch& touch, const Run& run, Set& set);
  static void label_unread(const Touch& touch, const Run& run, Set& set);
  static void label_parts(const Touch& touch, const Run& run, Set& set);
  static bool find(const Touch& touch, const Run& run, const Set& set, Conflict& conflict);

  RaceClock clock_;
  std::vector<Block*> blocks_;
  std::vector<std::unique_ptr<Block>> block_storage_;
  std::vector<std::unique_ptr<Page>> storage_;
  std::vector<Page*> spare_;  ///< Without bits.
  std::vector<Page*> dirty_;
  std::vector<Page*> old_;
  std::vector<Conflict> maybe_;  ///< Of a plain touch.
};

}  // namespace cpverify::sim
