#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "sim/machine/checked_bytes.hpp"

namespace cpverify::sim {

/// cp.async of one warp: copies that have been issued and are not yet visible to the lanes that
/// issued them. The bytes move at the last legal moment, the wait; from issue to wait the target
/// counts as unwritten, so that a read without wait or barrier is an uninitialised read.
class AsyncCopies {
 public:
  struct Copy {
    std::uint32_t lanes = 0;
    std::uint32_t size_bytes = 0;             ///< Written by each lane: 4, 8 or 16.
    std::array<std::uint32_t, 32> target{};   ///< Offsets in shared memory.
    const CheckedBytes* source = nullptr;     ///< Null: all lanes write zeros.
    std::uint64_t source_base = 0;            ///< Address of source.
    std::array<std::uint64_t, 32> offsets{};  ///< In source.
    /// Bytes that are copied, the rest is zeros.
    std::array<std::uint32_t, 32> copied_bytes{};
    std::array<std::uint32_t, 32> group{};  ///< Set by issue(): each lane's commit group.
    std::uint64_t sequence = 0;             ///< Set by issue().
  };

  void reset() noexcept;
  /// Makes the targets unwritten.
  void issue(const Copy& copy, CheckedBytes& shared);
  /// cp.async.commit_group of some lanes.
  void commit(std::uint32_t lanes) noexcept;
  /// cp.async.wait_group: all but the newest `pending` groups of these lanes become visible, and
  /// are added to `done` unless that is null.
  void wait(std::uint32_t lanes, std::uint32_t pending, CheckedBytes& shared,
            std::vector<Copy>* done);
  /// cp.async.wait_all: commits and waits for everything.
  void wait_all(std::uint32_t lanes, CheckedBytes& shared, std::vector<Copy>* done);
  /// How many copies were issued so far.
  [[nodiscard]] std::uint64_t issued() const noexcept { return issued_; }
  /// Those of the first `issued` copies that are of these lanes become visible.
  void wait_for_first(std::uint64_t issued, std::uint32_t lanes, CheckedBytes& shared,
                      std::vector<Copy>* done);

 private:
  template <class IsDue>
  void complete_due(std::uint32_t lanes, CheckedBytes& shared, std::vector<Copy>* done,
                    IsDue is_due);

  std::uint64_t issued_ = 0;
  std::vector<Copy> copies_;  ///< In order of issue.
  std::array<std::uint32_t, 32> committed_{};
  bool is_used_ = false;  ///< Since reset(), which every warp of every CTA begins with.
};

}  // namespace cpverify::sim
