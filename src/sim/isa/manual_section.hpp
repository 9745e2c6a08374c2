#pragma once

#include <span>
#include <string_view>

namespace cpverify::sim {

/// A form of the PTX manual, and the anchor of its section.
struct ManualForm {
  std::string_view form;  ///< As it is written, such as `bar.arrive`.
  std::string_view anchor;
};

/// Forms of the manual's sections, one or two of each: what an unsupported instruction is compared
/// with. A form that instructions.inc has learned may stay.
[[nodiscard]] std::span<const ManualForm> manual_forms() noexcept;

/// The anchor of the section that describes a dotted name; empty when no section begins like it.
[[nodiscard]] std::string_view manual_section(std::string_view name);

}  // namespace cpverify::sim
