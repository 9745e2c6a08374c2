#include "sim/check/race_map.hpp"

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "cpverify/observer.hpp"
#include "sim/check/race_line.hpp"
#include "sim/check/race_order.hpp"

namespace cpverify::sim {
namespace {

constexpr std::uint64_t kWordBytes = 64;
constexpr std::uint32_t kLanes = 32;

/// Where all 32 lanes are.
enum class Pattern : std::uint8_t { uniform, dense, other };

Pattern find_pattern(const RaceMap::Touch& touch) {
  std::uint64_t not_dense = 0;
  std::uint64_t not_uniform = 0;
  for (std::size_t lane = 0; lane < kLanes; ++lane) {
    not_dense |= touch.addresses[lane] ^ (touch.addresses[0] + lane * touch.size_bytes);
    not_uniform |= touch.addresses[lane] ^ touch.addresses[0];
  }
  if (not_uniform == 0) return Pattern::uniform;
  return not_dense == 0 ? Pattern::dense : Pattern::other;
}

/// Whether the touch of all lanes side by side is of whole lines.
bool is_of_lines(const RaceMap::Touch& touch, std::uint64_t offset) {
  return touch.size_bytes >= 4 && offset % RaceLine::kBytes == 0;
}

bool is_read(AccessKind kind) {
  return kind == AccessKind::read || kind == AccessKind::async_read;
}

std::uint64_t mask_of(std::uint64_t offset, std::uint32_t count) {
  const std::uint64_t ones = count == kWordBytes ? ~0ULL : (1ULL << count) - 1;
  return ones << (offset % kWordBytes);
}

}  // namespace

/// Of all lanes side by side.
template <class Visit>
void RaceMap::for_each_dense_run(std::uint64_t first, std::uint32_t size_bytes, Visit visit) {
  const std::uint64_t end = first + std::uint64_t{kLanes} * size_bytes;
  std::uint32_t lane = 0;
  for (std::uint64_t at = first; at < end;) {
    const std::uint64_t stop = std::min(end, at / kWordBytes * kWordBytes + kWordBytes);
    const auto bytes = static_cast<std::uint32_t>(stop - at);
    visit(Run{at, bytes, lane, bytes / size_bytes});
    lane += bytes / size_bytes;
    at = stop;
  }
}

template <class Visit>
void RaceMap::for_each_run(const Touch& touch, Visit visit) {
  if (touch.lanes == ~0U) {
    const Pattern pattern = find_pattern(touch);
    const std::uint64_t first = touch.addresses[0] - touch.base;
    if (pattern == Pattern::uniform) {
      visit(Run{first, touch.size_bytes, 0, 1});
      return;
    }
    if (pattern == Pattern::dense) {
      for_each_dense_run(first, touch.size_bytes, visit);
      return;
    }
  }
  Run run;
  for (std::uint32_t left = touch.lanes; left != 0; left &= left - 1) {
    const auto lane = static_cast<std::uint32_t>(std::countr_zero(left));
    const std::uint64_t offset = touch.addresses[lane] - touch.base;
    if (run.lane_count != 0) {
      const bool follows = offset == run.offset + run.size_bytes && offset % kWordBytes != 0 &&
                           lane == run.first_lane + run.lane_count;
      if (follows) {
        run.size_bytes += touch.size_bytes;
        ++run.lane_count;
        continue;
      }
      // All lanes at one place, as in a broadcast.
      if (offset == run.offset && run.lane_count == 1) continue;
      visit(run);
    }
    run = {offset, touch.size_bytes, lane, 1};
  }
  visit(run);
}

/// What maps have left. A launch has its own maps, and getting their pages from the kernel takes
/// longer than checking a kernel that touches each byte once.
struct RaceMap::Pool {
  std::vector<std::unique_ptr<Page>> pages;  ///< Without bits.
  std::vector<std::unique_ptr<Block>> blocks;
};

RaceMap::Pool& RaceMap::pool() {
  static thread_local Pool pool;
  return pool;
}

RaceMap::~RaceMap() {
  constexpr std::size_t kPooledPages = 2048;    // 45 MB.
  constexpr std::size_t kPooledBlocks = 32768;  // 34 MB, for 128 MB of memory.
  reset();
  for (auto& page : storage_) {
    if (pool().pages.size() < kPooledPages) pool().pages.push_back(std::move(page));
  }
  for (auto& block : block_storage_) {
    if (pool().blocks.size() < kPooledBlocks) pool().blocks.push_back(std::move(block));
  }
}

inline RaceMap::Block& RaceMap::block_at(std::uint64_t offset) {
  Block* const block = blocks_[offset / kPageBytes];
  return block != nullptr ? *block : new_block(offset / kPageBytes);
}

RaceMap::Block& RaceMap::new_block(std::uint64_t index) {
  auto& pooled = pool().blocks;
  if (pooled.empty()) {
    block_storage_.push_back(std::make_unique<Block>());
  } else {
    block_storage_.push_back(std::move(pooled.back()));
    pooled.pop_back();
    *block_storage_.back() = Block{};
  }
  blocks_[index] = block_storage_.back().get();
  return *blocks_[index];
}

/// The page of a block is to get bits.
void RaceMap::make_dirty(Block& block) {
  if (block.page == nullptr) {
    if (spare_.empty()) {
      auto& pooled = pool().pages;
      if (pooled.empty()) {
        storage_.push_back(std::make_unique_for_overwrite<Page>());
      } else {
        storage_.push_back(std::move(pooled.back()));
        pooled.pop_back();
      }
      spare_.push_back(storage_.back().get());
    }
    block.page = spare_.back();
    block.page->block = &block;
    spare_.pop_back();
  }
  block.page->is_dirty = true;
  dirty_.push_back(block.page);
}

/// The page for a touch of bytes of one line.
inline RaceMap::Page& RaceMap::detailed_page(std::uint64_t offset) {
  Block& block = block_at(offset);
  const std::size_t line = offset % kPageBytes / RaceLine::kBytes;
  if (block.page == nullptr || !block.page->is_dirty) make_dirty(block);
  if ((block.detailed >> line & 1U) == 0) add_detail(block, line);
  return *block.page;
}

/// From one label for a line to bits and labels. Bits of its last toucher are also old: where its
/// label is of another, they are, and where not, the label is before what runs now.
void RaceMap::add_detail(Block& block, std::size_t line) {
  block.detailed |= 1U << line;
  constexpr std::size_t kLineWords = RaceLine::kBytes / kWordBytes;
  constexpr std::size_t kLineLabels = RaceLine::kBytes / 4;
  const auto add = [&](const RaceLine::Use& use, Set& set) {
    if (!clock_.is_valid(use.stamp)) return;
    for (std::size_t i = line * kLineWords; i < (line + 1) * kLineWords; ++i) {
      set.own[i] = clock_.is_own(use.stamp) ? ~0ULL : 0;
      set.old[i] = ~0ULL;
    }
    for (std::uint32_t i = 0; i < kLineLabels; ++i) {
      set.labels[line * kLineLabels + i] = use.label_of(i);
    }
  };
  add(block.lines[line].reads, block.page->reads);
  add(block.lines[line].writes, block.page->writes);
  block.lines[line] = {};
}

inline void RaceMap::label_run(const Touch& touch, const Run& run, Set& set) {
  if (touch.size_bytes < 4) {
    label_parts(touch, run, set);
    return;
  }
  const std::uint32_t words = run.size_bytes / 4;
  const auto shift = static_cast<std::uint32_t>(std::countr_zero(touch.size_bytes / 4));
  const std::uint32_t time = touch.label.time;
  const std::uint32_t packed = touch.label.packed + run.first_lane;
  RaceLabel* const labels = set.labels.data() + run.offset % kPageBytes / 4;
  for (std::uint32_t i = 0; i < words; ++i) labels[i] = {time, packed + (i >> shift)};
}

/// Accesses of 1 or 2 bytes. A label cannot stand for two: it is nobody's where another touched the
/// rest of the 4 bytes.
void RaceMap::label_parts(const Touch& touch, const Run& run, Set& set) {
  const std::size_t first = run.offset % kPageBytes / 4;
  const std::size_t into_word = run.offset % 4;
  const std::size_t words = (into_word + run.size_bytes + 3) / 4;
  const std::size_t word = run.offset % kPageBytes / kWordBytes;
  const std::uint64_t rest = set.old[word] & ~mask_of(run.offset, run.size_bytes);
  for (std::size_t i = 0; i < words; ++i) {
    const std::size_t byte = i * 4 > into_word ? i * 4 - into_word : 0;
    const bool is_shared = (rest >> ((first + i) * 4 % kWordBytes) & 0xFU) != 0;
    const auto lane = static_cast<std::uint32_t>(run.first_lane + byte / touch.size_bytes);
    set.labels[first + i] = {is_shared ? RaceLabel::kNobody : touch.label.time,
                             touch.label.packed + lane};
  }
}

/// Whether a run meets old bits of `set`, by someone who is not before it.
bool RaceMap::find(const Touch& touch, const Run& run, const Set& set, Conflict& conflict) {
  const std::size_t word = run.offset % kPageBytes / kWordBytes;
  std::uint64_t hits = set.old[word] & mask_of(run.offset, run.size_bytes);
  const std::uint64_t word_offset = run.offset / kWordBytes * kWordBytes;
  const bool is_strong = touch.label.is_strong();
  bool is_found = false;
  while (hits != 0) {
    const auto bit = static_cast<std::uint64_t>(std::countr_zero(hits));
    const RaceLabel label = set.labels[(word_offset + bit) % kPageBytes / 4];
    // One label speaks for 4 bytes.
    hits &= ~(0xFULL << (bit / 4 * 4));
    if ((is_strong && label.is_strong()) || touch.order->is_before(label)) continue;
    const std::uint64_t offset = word_offset + bit;
    const std::uint64_t lane = run.first_lane + (offset - run.offset) / touch.size_bytes;
    conflict.lanes |= 1U << lane;
    if (is_found) continue;
    is_found = true;
    conflict.earlier = label;
    conflict.offset = offset;
  }
  return is_found;
}

void RaceMap::find_any(const Touch& touch, const Run& run, const Page& page,
                       std::vector<Conflict>& conflicts) {
  Conflict conflict;
  conflict.is_earlier_write = find(touch, run, page.writes, conflict);
  if (conflict.is_earlier_write ||
      (!is_read(touch.kind) && find(touch, run, page.reads, conflict))) {
    conflicts.push_back(conflict);
  }
}

void RaceMap::touch_run(const Touch& touch, const Run& run, std::vector<Conflict>& conflicts) {
  Page& page = detailed_page(run.offset);
  const std::size_t word = run.offset % kPageBytes / kWordBytes;
  const std::uint64_t mask = mask_of(run.offset, run.size_bytes);
  const bool reads = is_read(touch.kind);
  const std::uint64_t others = page.writes.old[word] | (reads ? 0 : page.reads.old[word]);
  if ((others & mask) != 0) [[unlikely]]
    find_any(touch, run, page, conflicts);
  Set& set = reads ? page.reads : page.writes;
  if (touch.is_pending) {
    set.pending[word] |= mask;
    set.old[word] |= mask;
    label_run(touch, run, set);
    return;
  }
  if ((mask & ~set.own[word]) == 0) return;
  set.own[word] |= mask;
  const std::uint64_t seen = reads ? set.old[word] & mask : 0;
  if (seen != 0 && seen != mask) [[unlikely]] {
    label_unread(touch, run, set);
    return;
  }
  // The first reader stays, unless it is before this one.
  const bool is_kept =
      seen != 0 && !(touch.order->is_partial() &&
                     touch.order->is_before(set.labels[run.offset % kPageBytes / 4]));
  if (!is_kept) label_run(touch, run, set);
}

/// Labels what others have not read before; the rest keeps its first reader.
void RaceMap::label_unread(const Touch& touch, const Run& run, Set& set) {
  if (touch.size_bytes < 4) {
    label_parts(touch, run, set);
    return;
  }
  const std::uint64_t old = set.old[run.offset % kPageBytes / kWordBytes];
  for (std::uint32_t lane = 0; lane < run.lane_count; ++lane) {
    for (std::uint32_t i = 0; i < touch.size_bytes; i += 4) {
      const std::uint64_t offset = run.offset + std::uint64_t{lane} * touch.size_bytes + i;
      if ((old >> (offset % kWordBytes) & 0xFU) != 0) continue;
      set.labels[offset % kPageBytes / 4] = {touch.label.time,
                                             touch.label.packed + run.first_lane + lane};
    }
  }
}

/// What touch_run() does, for reads of 16 bytes by each lane: the matrix loads that attention
/// kernels live from.
void RaceMap::read_blocks(const Touch& touch, std::vector<Conflict>& conflicts) {
  constexpr std::uint32_t kBlockBytes = 16;
  const bool is_partial = touch.order->is_partial();
  for (std::uint32_t lane = 0; lane < kLanes; ++lane) {
    const std::uint64_t offset = touch.addresses[lane] - touch.base;
    Page* const page = &detailed_page(offset);
    const std::size_t word = offset % kPageBytes / kWordBytes;
    const std::uint64_t mask = 0xFFFFULL << (offset % kWordBytes);
    Set& set = page->reads;
    if ((page->writes.old[word] & mask) != 0) [[unlikely]] {
      find_any(touch, {offset, kBlockBytes, lane, 1}, *page, conflicts);
    }
    const std::uint64_t own = set.own[word];
    set.own[word] = own | mask;
    const std::uint64_t seen = set.old[word] & mask;
    if ((mask & ~own) == 0 || (seen == mask && !is_partial)) continue;
    if (seen != 0 && seen != mask) [[unlikely]] {
      label_unread(touch, {offset, kBlockBytes, lane, 1}, set);
      continue;
    }
    RaceLabel* const labels = set.labels.data() + offset % kPageBytes / 4;
    if (seen != 0 && !touch.order->is_before(*labels)) continue;
    const RaceLabel label{touch.label.time, touch.label.packed + lane};
    for (std::size_t i = 0; i < kBlockBytes / 4; ++i) labels[i] = label;
  }
}

/// A touch of a whole line, whose first lane is `lane`.
inline bool RaceMap::touch_line(const Touch& touch, std::uint64_t offset, std::uint32_t lane) {
  Block& block = block_at(offset);
  const std::size_t line = offset % kPageBytes / RaceLine::kBytes;
  const bool is_write = !is_read(touch.kind);
  if ((block.detailed >> line & 1U) == 0) {
    const RaceLabel label{touch.label.time, touch.label.packed + lane};
    const auto shift = static_cast<std::uint32_t>(std::countr_zero(touch.size_bytes / 4));
    return block.lines[line].touch(clock_, is_write, label, shift, *touch.order);
  }
  bool is_quiet = true;
  for (std::uint64_t at = offset; at < offset + RaceLine::kBytes; at += kWordBytes) {
    const std::uint32_t lanes = static_cast<std::uint32_t>(kWordBytes) / touch.size_bytes;
    is_quiet = is_quiet && touch_quietly(touch, {at, kWordBytes, lane, lanes});
    lane += lanes;
  }
  return is_quiet;
}

/// touch_run() if that finds no conflict.
bool RaceMap::touch_quietly(const Touch& touch, const Run& run) {
  const Page& page = detailed_page(run.offset);
  const std::size_t word = run.offset % kPageBytes / kWordBytes;
  const std::uint64_t others =
      page.writes.old[word] | (is_read(touch.kind) ? 0 : page.reads.old[word]);
  if ((others & mask_of(run.offset, run.size_bytes)) != 0) {
    find_any(touch, run, page, maybe_);
    const bool is_found = !maybe_.empty();
    maybe_.clear();
    if (is_found) return false;
  }
  touch_run(touch, run, maybe_);
  return true;
}

bool RaceMap::touch_plain(const Touch& touch, bool is_uniform, std::uint64_t offset) {
  if (is_uniform) return touch_quietly(touch, {offset, touch.size_bytes, 0, 1});
  bool is_quiet = true;
  if (is_of_lines(touch, offset)) {
    const auto lanes = static_cast<std::uint32_t>(RaceLine::kBytes) / touch.size_bytes;
    for (std::uint32_t lane = 0; lane < kLanes && is_quiet; lane += lanes) {
      is_quiet = touch_line(touch, offset, lane);
      offset += RaceLine::kBytes;
    }
    return is_quiet;
  }
  for_each_dense_run(offset, touch.size_bytes,
                     [&](const Run& run) { is_quiet = is_quiet && touch_quietly(touch, run); });
  return is_quiet;
}

void RaceMap::touch(const Touch& touch, std::vector<Conflict>& conflicts) {
  const bool is_plain = touch.lanes == ~0U && !touch.is_pending && !touch.label.is_strong();
  if (is_plain && is_of_lines(touch, touch.addresses[0] - touch.base) &&
      find_pattern(touch) == Pattern::dense &&
      touch_plain(touch, false, touch.addresses[0] - touch.base)) {
    return;
  }
  if (touch.kind == AccessKind::read && touch.size_bytes == 16 && touch.lanes == ~0U) {
    read_blocks(touch, conflicts);
    return;
  }
  for_each_run(touch, [&](const Run& run) { touch_run(touch, run, conflicts); });
}

void RaceMap::complete(const Touch& touch) {
  for_each_run(touch, [&](const Run& run) {
    Page& page = detailed_page(run.offset);
    Set& set = is_read(touch.kind) ? page.reads : page.writes;
    const std::size_t word = run.offset % kPageBytes / kWordBytes;
    const std::uint64_t mask = mask_of(run.offset, run.size_bytes);
    set.pending[word] &= ~mask;
    set.old[word] &= ~mask;
    set.own[word] |= mask;
    // Keeps the instruction that issued it.
    const std::size_t first = run.offset % kPageBytes / 4;
    for (std::size_t i = first; i < first + std::max(run.size_bytes / 4, 1U); ++i) {
      if (set.labels[i].warp() != touch.label.warp()) continue;
      set.labels[i].time = touch.label.time;
      set.labels[i].packed &= ~(1U << 11);
    }
  });
}

void RaceMap::absorb() noexcept {
  clock_.advance();
  if (!dirty_.empty()) absorb_pages();
}

/// The words of bits of the lines that have some.
template <class Visit>
void RaceMap::for_each_word(const Page& page, Visit visit) {
  constexpr std::size_t kLineWords = RaceLine::kBytes / kWordBytes;
  for (std::uint32_t left = page.block->detailed; left != 0; left &= left - 1) {
    const auto line = static_cast<std::size_t>(std::countr_zero(left));
    for (std::size_t i = 0; i < kLineWords; ++i) visit(line * kLineWords + i);
  }
}

void RaceMap::absorb_pages() noexcept {
  for (Page* const page : dirty_) {
    for_each_word(*page, [page](std::size_t word) {
      for (Set* const set : {&page->reads, &page->writes}) {
        set->old[word] |= set->own[word];
        set->own[word] = 0;
      }
    });
    page->is_dirty = false;
    if (!page->is_old) old_.push_back(page);
    page->is_old = true;
  }
  dirty_.clear();
}

void RaceMap::forget() noexcept {
  absorb();
  clock_.forget();
  std::erase_if(old_, [this](Page* page) {
    std::uint64_t left = 0;
    for_each_word(*page, [page, &left](std::size_t word) {
      for (Set* const set : {&page->reads, &page->writes}) {
        set->old[word] = set->pending[word];
        left |= set->pending[word];
      }
    });
    if (left != 0) return false;
    release(*page);
    return true;
  });
}

void RaceMap::reset() noexcept {
  absorb();
  clock_.forget();
  for (Page* const page : old_) {
    for_each_word(*page, [page](std::size_t word) {
      for (Set* const set : {&page->reads, &page->writes}) {
        set->old[word] = 0;
        set->pending[word] = 0;
      }
    });
    release(*page);
  }
  old_.clear();
}

void RaceMap::release(Page& page) {
  page.is_old = false;
  page.block->detailed = 0;
  page.block->page = nullptr;
  spare_.push_back(&page);
}

}  // namespace cpverify::sim
