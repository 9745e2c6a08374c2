#pragma once

#include <cstdint>

/// Generic addresses: shared and local memory and parameters appear in windows that global memory
/// never reaches (a window is 2^56 bytes). Source: PTX ISA, "Generic Addressing".
namespace cpverify::sim {

inline constexpr std::uint64_t kSharedWindow = 1ULL << 56;
inline constexpr std::uint64_t kLocalWindow = 2ULL << 56;
inline constexpr std::uint64_t kParameterWindow = 3ULL << 56;

}  // namespace cpverify::sim
