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
    std::memcpy(warp.row<T>(insn->r[0]), data, kLanes * sizeof(T));
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
    std::memcpy(data, warp.row<const T>(insn->r[1]), kLanes * sizeof(T));
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
