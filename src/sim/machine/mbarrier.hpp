#pragma once

#include <cstdint>
#include <string>

namespace cpverify::sim {

/// An mbarrier object: counts arrivals and bytes of asynchronous copies, phase by phase. Source:
/// PTX ISA, "mbarrier", "Phase of the mbarrier object", "Tracking asynchronous operations".
class Mbarrier {
 public:
  /// Of arrivals, and of bytes in either direction.
  static constexpr std::uint32_t kCountMax = (1U << 20) - 1;

  Mbarrier() = default;
  /// `expected` is from 1 to kCountMax.
  explicit Mbarrier(std::uint32_t expected) : expected_{expected}, pending_{expected} {}

  [[nodiscard]] std::uint32_t expected() const noexcept { return expected_; }
  [[nodiscard]] std::uint32_t pending() const noexcept { return pending_; }
  [[nodiscard]] std::int64_t tx_count() const noexcept { return tx_count_; }
  /// Phases that are complete.
  [[nodiscard]] std::uint64_t phase() const noexcept { return phase_; }

  enum class Arrival : std::uint8_t { whole, no_complete, drop, drop_no_complete };
  /// `count` arrivals; those that drop are not expected in later phases either. Each of the three
  /// returns what is wrong, and changes nothing then; empty when all is well.
  [[nodiscard]] std::string arrive(std::uint32_t count, Arrival arrival);
  /// More bytes to come, or fewer: the bytes of copies that have completed are negative.
  [[nodiscard]] std::string add_bytes(std::int64_t bytes);
  /// An arrival more that this phase waits for.
  [[nodiscard]] std::string expect_one_more();

  /// The object as it lies in memory, which is also the token of an arrival.
  [[nodiscard]] std::uint64_t bits() const noexcept;
  /// False for a token that is of neither this phase nor the one before: nothing can be said of it.
  [[nodiscard]] bool is_recent(std::uint64_t token) const noexcept;
  /// True when the phase of a token, or that of a parity, is over.
  [[nodiscard]] bool is_over(std::uint64_t token) const noexcept;
  [[nodiscard]] bool is_parity_over(std::uint32_t parity) const noexcept;
  /// Arrivals that were pending when the token was made.
  [[nodiscard]] static std::uint32_t pending_of(std::uint64_t token) noexcept;

 private:
  void complete_if_due() noexcept;

  std::uint32_t expected_ = 0;
  std::uint32_t pending_ = 0;
  std::int64_t tx_count_ = 0;
  std::uint64_t phase_ = 0;
};

}  // namespace cpverify::sim
