#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace cpverify {

/// FNV-1a, 64 bit. Source: draft-eastlake-fnv-21. Hash fields, never structs: padding is not data.
class Fnv1a {
 public:
  void add_bytes(const void* data, std::size_t size_bytes) noexcept {
    const auto* bytes = static_cast<const unsigned char*>(data);
    for (std::size_t i = 0; i < size_bytes; ++i) state_ = (state_ ^ bytes[i]) * kPrime;
  }
  void add(std::uint64_t value) noexcept {
    for (int shift = 0; shift < 64; shift += 8)
      state_ = (state_ ^ ((value >> shift) & 0xff)) * kPrime;
  }
  /// The length goes in too, so that ("ab", "c") and ("a", "bc") differ.
  void add(std::string_view text) noexcept {
    add(static_cast<std::uint64_t>(text.size()));
    add_bytes(text.data(), text.size());
  }
  [[nodiscard]] std::uint64_t value() const noexcept { return state_; }

 private:
  static constexpr std::uint64_t kPrime = 0x00000100000001b3ULL;
  std::uint64_t state_ = 0xcbf29ce484222325ULL;
};

}  // namespace cpverify
