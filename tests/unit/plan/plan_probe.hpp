#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "cpverify/plan.hpp"

/// Looks into plans for tests; a thing that is not there ends the test by std::out_of_range.
namespace cpverify::test {

inline const Buffer& buffer_named(const RankPlan& rank, std::string_view name) {
  for (const Buffer& buffer : rank.buffers) {
    if (buffer.name == name) {
      return buffer;
    }
  }
  throw std::out_of_range{std::string{name}};
}

inline const Operation& operation_labelled(const RankPlan& rank, std::string_view label) {
  for (const Operation& operation : rank.operations) {
    if (operation.label == label) {
      return operation;
    }
  }
  throw std::out_of_range{std::string{label}};
}

inline const Launch& launch_labelled(const RankPlan& rank, std::string_view label) {
  return std::get<Launch>(operation_labelled(rank, label).body);
}

/// "buffer" or "buffer+offset" of a pointer argument.
inline std::string pointer(const RankPlan& rank, const BufferRef& ref) {
  const std::string& name = rank.buffers.at(ref.buffer.value()).name;
  return ref.offset_elems == 0 ? name : name + "+" + std::to_string(ref.offset_elems);
}

/// Every argument of a launch as text, in order.
inline std::vector<std::string> argument_texts(const RankPlan& rank, const Launch& launch) {
  std::vector<std::string> texts;
  texts.reserve(rank.operations.size());
  for (const KernelArgument& argument : launch.arguments) {
    if (const auto* ref = std::get_if<BufferRef>(&argument)) {
      texts.push_back(pointer(rank, *ref));
    } else if (const auto* narrow = std::get_if<std::int32_t>(&argument)) {
      texts.push_back("s32 " + std::to_string(*narrow));
    } else if (const auto* wide = std::get_if<std::int64_t>(&argument)) {
      texts.push_back("s64 " + std::to_string(*wide));
    } else {
      texts.emplace_back("f32");
    }
  }
  return texts;
}

inline std::vector<std::string> labels(const RankPlan& rank) {
  std::vector<std::string> texts;
  texts.reserve(rank.operations.size());
  for (const Operation& operation : rank.operations) {
    texts.push_back(operation.label);
  }
  return texts;
}

}  // namespace cpverify::test
