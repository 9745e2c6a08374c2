#include "sim/check/race_detail.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "cpverify/fault.hpp"
#include "cpverify/observer.hpp"
#include "sim/isa/code.hpp"
#include "sim/isa/opcode.hpp"

namespace cpverify::sim {
namespace {

constexpr std::uint32_t kWarpLanes = 32;
constexpr std::size_t kAccessBytesMax = 16;

using Value = std::array<std::byte, kAccessBytesMax>;

/// What a lane stores.
Value stored_value(const AccessEvent& event, std::size_t lane) {
  Value value{};
  const std::size_t element = event.size_bytes / event.stored.size();
  for (std::size_t i = 0; i < event.stored.size(); ++i) {
    std::memcpy(value.data() + i * element, event.stored[i] + lane * element, element);
  }
  return value;
}

}  // namespace

bool is_strong(const AccessEvent& event) {
  return event.kind == AccessKind::atomic || event.order != MemoryOrder::weak;
}

std::string_view verb(AccessKind kind) {
  switch (kind) {
    case AccessKind::read:
      return "read";
    case AccessKind::write:
      return "write";
    case AccessKind::atomic:
      return "atomic";
    case AccessKind::async_read:
      return "asynchronous read";
    case AccessKind::async_write:
      return "asynchronous write";
  }
  return "access";
}

bool is_bulk(Op op) {
  return info(op).name.starts_with("bulk_") || info(op).name.starts_with("wgmma_");
}

AccessKind kind_of(Op op, bool is_write) {
  if (op == Op::cp_async || is_bulk(op))
    return is_write ? AccessKind::async_write : AccessKind::async_read;
  if (op == Op::atom || op == Op::atom_cas || op == Op::red) return AccessKind::atomic;
  return is_write ? AccessKind::write : AccessKind::read;
}

bool is_same_value(const AccessEvent& event, std::uint32_t lane) {
  const Value value = stored_value(event, lane);
  const std::byte* const place = event.memory + (event.addresses[lane] - event.base);
  return std::memcmp(value.data(), place, event.size_bytes) == 0;
}

bool is_equal_store(const AccessEvent& event, std::uint32_t lane, std::uint32_t other) {
  return stored_value(event, lane) == stored_value(event, other);
}

std::string thread_name(const ExecutionPoint& point, std::uint32_t warp, std::uint32_t lane) {
  const std::uint32_t thread = warp * kWarpLanes + lane;
  return fmt::format("thread ({},{},{})", thread % point.block[0],
                     thread / point.block[0] % point.block[1],
                     thread / point.block[0] / point.block[1]);
}

std::string source_of(const Code& code, std::uint32_t instruction) {
  if (instruction >= code.lines.size()) return {};
  const SourceLine& line = code.lines[instruction];
  const std::string& file = code.files[line.file];
  return file.empty() ? fmt::format(", PTX line {}", line.ptx_line)
                      : fmt::format(" at {}:{}, PTX line {}", file, line.line, line.ptx_line);
}

ViolationEvent race_event(const AccessEvent& event, std::uint32_t lanes) {
  ViolationEvent violation;
  violation.kind = FaultKind::race;
  violation.space = event.space;
  violation.lanes = lanes;
  violation.size_bytes = event.size_bytes;
  if (event.space == MemorySpace::global) {
    violation.allocation = event.base;
    violation.allocation_bytes = event.object_bytes;
  }
  return violation;
}

}  // namespace cpverify::sim
