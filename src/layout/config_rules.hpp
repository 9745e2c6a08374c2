#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "cpverify/system.hpp"
#include "cpverify/verdict.hpp"
#include "layout/configuration.hpp"

/// The conditions under which a system takes a configuration, as data. Sources: the start-up checks
/// of vLLM, vllm-ascend and SGLang as of August 2026, and the documentation of vllm-ascend.
namespace cpverify::layout {

enum class RuleEffect : std::uint8_t {
  refused,  ///< The system stops with an error.
  changed,  ///< The system goes on with another value than the user's.
  unsafe,   ///< No system checks it; what it computes is wrong, hangs or was never verified.
};

struct ConfigRule {
  std::string_view id;   ///< The system and the number of its rule, e.g. "vllm-5b".
  System origin;         ///< Who states it; cpverify for what nobody else does.
  std::uint8_t applies;  ///< Bit 1 << system for each whose configurations it is about.
  RuleEffect effect;
  std::string_view meaning;
  std::string_view instead;  ///< What the user can do.
  /// Says with the configuration's numbers how it is broken; empty when it is not.
  std::string (*violation)(const Configuration&);

  [[nodiscard]] bool applies_to(System system) const noexcept {
    return (applies >> static_cast<unsigned>(system) & 1U) != 0;
  }
};

/// A rule that a configuration cannot decide.
struct UndecidedRule {
  std::string_view id;
  System origin;
  std::string_view meaning;
  std::string_view reason;
};

struct BrokenRule {
  const ConfigRule* rule = nullptr;
  std::string violation;
};

/// Those of vLLM and vllm-ascend, of SGLang, and ours, each in the order of its numbers.
[[nodiscard]] std::span<const ConfigRule> vllm_rules() noexcept;
[[nodiscard]] std::span<const ConfigRule> sglang_rules() noexcept;
[[nodiscard]] std::span<const ConfigRule> own_rules() noexcept;
[[nodiscard]] std::span<const UndecidedRule> undecided_rules() noexcept;

/// All rules that the configuration breaks, in the order of the tables.
[[nodiscard]] std::vector<BrokenRule> broken_rules(const Configuration& configuration);

/// False when all of them are values that the system changes for the user.
[[nodiscard]] bool is_refused(const std::vector<BrokenRule>& broken) noexcept;

/// The same for a verdict, which outlives no table.
[[nodiscard]] cpverify::BrokenRule told(const BrokenRule& broken);

[[nodiscard]] std::string_view name(RuleEffect effect) noexcept;

/// docs/configuration_rules.md.
[[nodiscard]] std::string rules_page();

}  // namespace cpverify::layout
