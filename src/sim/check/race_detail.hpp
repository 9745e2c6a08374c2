#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cpverify/observer.hpp"
#include "sim/isa/code.hpp"
#include "sim/isa/opcode.hpp"

/// What the checkers of races say about an access.
namespace cpverify::sim {

[[nodiscard]] bool is_strong(const AccessEvent& event);

[[nodiscard]] std::string_view verb(AccessKind kind);

/// Copies in bulk and wgmma: nobody's accesses but the asynchronous proxy's.
[[nodiscard]] bool is_bulk(Op op);

/// What an instruction does to memory, or the half of it that writes or reads.
[[nodiscard]] AccessKind kind_of(Op op, bool is_write);

/// Whether a lane of a store stores what is there already.
[[nodiscard]] bool is_same_value(const AccessEvent& event, std::uint32_t lane);

/// Whether two lanes of a store store the same.
[[nodiscard]] bool is_equal_store(const AccessEvent& event, std::uint32_t lane,
                                  std::uint32_t other);

[[nodiscard]] std::string thread_name(const ExecutionPoint& point, std::uint32_t warp,
                                      std::uint32_t lane);

/// " at a.cu:12, PTX line 40"; empty for an instruction that is not known.
[[nodiscard]] std::string source_of(const Code& code, std::uint32_t instruction);

/// The fault of some lanes of an access, without address and detail.
[[nodiscard]] ViolationEvent race_event(const AccessEvent& event, std::uint32_t lanes);

}  // namespace cpverify::sim
