#pragma once

#include <array>
#include <cstddef>
#include <cstring>

#include "sim/isa/insn.hpp"
#include "sim/machine/checked_bytes.hpp"
#include "sim/machine/plain_access.hpp"
#include "sim/machine/warp.hpp"

/// What a plain load or store of `count` elements of type T per lane moves.
namespace cpverify::sim {

/// Copies a row of registers as vectors as wide as those that read it next: a call of memcpy takes
/// longer than what it does.
template <std::size_t size_bytes>
inline void copy_row(void* target, const void* source) {
  using Wide [[gnu::vector_size(64), gnu::aligned(1), gnu::may_alias]] = unsigned char;
  using Narrow [[gnu::vector_size(32), gnu::aligned(1), gnu::may_alias]] = unsigned char;
  static_assert(size_bytes == sizeof(Narrow) || size_bytes % sizeof(Wide) == 0);
  if constexpr (size_bytes == sizeof(Narrow)) {
    *static_cast<Narrow*>(target) = *static_cast<const Narrow*>(source);
  } else {
    Wide* const to = static_cast<Wide*>(target);
    const Wide* const from = static_cast<const Wide*>(source);
    for (std::size_t i = 0; i < size_bytes / sizeof(Wide); ++i) to[i] = from[i];
  }
}

/// Loads all lanes from one place or from places side by side.
template <class T, std::size_t count>
inline void load_plain(const Warp& warp, const Insn* insn, const PlainAccess& access) {
  const std::byte* const data = access.bytes->data() + access.offset;
  if (access.is_uniform) {
    std::array<T, count> element{};
    std::memcpy(element.data(), data, sizeof element);
    for (std::size_t i = 0; i < count; ++i) {
      T* const target = warp.row<T>(insn->r[i]);
      for (std::size_t lane = 0; lane < kLanes; ++lane) target[lane] = element[i];
    }
    return;
  }
  if constexpr (count == 1) {
    copy_row<kLanes * sizeof(T)>(warp.row<T>(insn->r[0]), data);
  } else {
    alignas(64) std::array<T, kLanes * count> records;
    std::memcpy(records.data(), data, sizeof records);
    for (std::size_t i = 0; i < count; ++i) {
      T* const __restrict target = warp.row<T>(insn->r[i]);
      for (std::size_t lane = 0; lane < kLanes; ++lane) target[lane] = records[lane * count + i];
    }
  }
}

/// Stores all lanes to one place, where the highest wins, or to places side by side.
template <class T, std::size_t count>
inline void store_plain(const Warp& warp, const Insn* insn, const PlainAccess& access) {
  std::byte* const data = access.bytes->data() + access.offset;
  if (access.is_uniform) {
    std::array<T, count> element{};
    for (std::size_t i = 0; i < count; ++i) {
      element[i] = warp.row<const T>(insn->r[1 + i])[kLanes - 1];
    }
    std::memcpy(data, element.data(), sizeof element);
    return;
  }
  if constexpr (count == 1) {
    copy_row<kLanes * sizeof(T)>(data, warp.row<const T>(insn->r[1]));
  } else {
    alignas(64) std::array<T, kLanes * count> records;
    for (std::size_t i = 0; i < count; ++i) {
      const T* const __restrict source = warp.row<const T>(insn->r[1 + i]);
      for (std::size_t lane = 0; lane < kLanes; ++lane) records[lane * count + i] = source[lane];
    }
    std::memcpy(data, records.data(), sizeof records);
  }
}

}  // namespace cpverify::sim
