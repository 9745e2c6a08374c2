#include "sim/isa/manual_section.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <string_view>

#include "sim/isa/opcode.hpp"

namespace cpverify::sim {
namespace {

constexpr auto kForms = std::to_array<ManualForm>({
#include "sim/isa/manual_forms.inc"
});

std::string_view first_word(std::string_view name) {
  return name.substr(0, name.find_first_of(".{/"));
}

/// How many characters two names share from the left, what the form may leave out left out; 0 when
/// they are different instructions.
std::size_t likeness(std::string_view name, std::string_view form) {
  if (first_word(name) != first_word(form)) return 0;
  std::size_t shared = 0;
  for (std::size_t at = 0; at < form.size() && shared < name.size(); ++at) {
    if (form[at] == '{') {
      at = std::min(form.find('}', at), form.size());
    } else if (form[at] == name[shared]) {
      ++shared;
    } else {
      break;
    }
  }
  return shared;
}

}  // namespace

std::span<const ManualForm> manual_forms() noexcept {
  return kForms;
}

std::string_view manual_section(std::string_view name) {
  std::size_t best = 0;
  std::string_view anchor;
  const auto consider = [&](std::string_view form, std::string_view its_anchor) {
    const std::size_t found = likeness(name, form);
    if (found <= best) return;
    best = found;
    anchor = its_anchor;
  };
  for (const OpInfo& row : kOps) consider(row.syntax, row.anchor);
  for (const ManualForm& form : manual_forms()) consider(form.form, form.anchor);
  return anchor;
}

}  // namespace cpverify::sim
