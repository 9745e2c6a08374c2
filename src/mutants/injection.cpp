#include "mutants/injection.hpp"

#include <algorithm>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cpverify/plan.hpp"
#include "cpverify/step.hpp"
#include "support/check.hpp"

namespace cpverify::mutants {

Injection::Injection(const Problem& problem, std::vector<Plan>& plans,
                     std::map<std::string, std::int64_t> values)
    : problem_{problem}, plans_{plans}, values_{std::move(values)} {}

std::int64_t Injection::value(std::string_view parameter) const {
  const auto found = values_.find(std::string{parameter});
  CPVERIFY_CHECK(found != values_.end());
  return found->second;
}

const Step& Injection::step_of(const Plan& plan) const {
  return problem_.steps.at(plan.step);
}

bool Injection::is_selected(const std::string& parameter, std::uint32_t index) const {
  const auto found = values_.find(parameter);
  return found == values_.end() || found->second == kEvery || found->second == index;
}

const Buffer* find_buffer(const RankPlan& rank, std::string_view name) noexcept {
  const auto found = std::find_if(rank.buffers.begin(), rank.buffers.end(),
                                  [name](const Buffer& buffer) { return buffer.name == name; });
  return found == rank.buffers.end() ? nullptr : &*found;
}

Buffer* find_buffer(RankPlan& rank, std::string_view name) noexcept {
  const auto found = std::find_if(rank.buffers.begin(), rank.buffers.end(),
                                  [name](const Buffer& buffer) { return buffer.name == name; });
  return found == rank.buffers.end() ? nullptr : &*found;
}

Buffer& buffer_of(RankPlan& rank, std::string_view name) {
  Buffer* buffer = find_buffer(rank, name);
  CPVERIFY_CHECK(buffer != nullptr);
  return *buffer;
}

std::int64_t scalar_of(RankPlan& rank, std::string_view name) {
  const Buffer& buffer = buffer_of(rank, name);
  CPVERIFY_CHECK(buffer.values.size() == 1);
  return buffer.values.front();
}

}  // namespace cpverify::mutants
