#include "sim/inspect/instruction_page.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cpverify/error.hpp"
#include "sim/isa/manual_section.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/syntax.hpp"
#include "sim/machine/handlers.hpp"

namespace cpverify::sim {
namespace {

constexpr std::string_view kManual = "https://docs.nvidia.com/cuda/parallel-thread-execution/#";

constexpr std::string_view kIntroduction = R"(# PTX that the simulated machine runs

Generated from `src/sim/isa/instructions.inc` by `cpverify kernel --instructions > docs/ptx.md`; a test compares the two.
[simulated_machine.md](simulated_machine.md) says what is decided where the manual leaves it open.

A form is written as in the PTX manual: `{.x}` may be left out, and a name of the table of suffixes stands for any of its
members. Operands: `d` is written, `a b c e` are read, `[a]` is an address, `l` a label, `p q` predicates that are written;
`*4` is a vector of four registers, `*v` one as long as `.v2` or `.v4` says, `?` may be left out, `:t` is the type when it
is not `.type`; of a `.m64nNk16` and its like, with N = 8, 16, ..., 256, `*n` is a vector of N / 2 registers and `*h` of N / 4;
`s` is the constant 1 or -1, `f` the constant 0 or 1, `r` a number of registers; `[s]` and `[g]` are addresses in shared and global memory, `[t]` is that of a
tensor map with coordinates. The decoder turns what is behind a slash into a form of its own. Any instruction may be guarded.

Outside of instructions: `.entry`, `.func` (calls are inlined: neither recursive nor indirect nor guarded), `.reg`, `.global`,
`.const`, `.shared`, `.local`, `.param`, `.maxntid`, `.reqntid`, `.reqnctapercluster`, `.explicitcluster`, `.maxclusterrank`, `.maxnreg`, `.loc`, `.file`, `.pragma` and debug sections (skipped).

)";

/// One class of suffixes, and the members that the manual allows.
struct SuffixClass {
  std::string_view name;
  std::string_view before;  ///< Of a form that takes any member.
  std::string_view after;   ///< The rest of it, or several to try.
  std::string_view words;
};

constexpr auto kSuffixes = std::to_array<SuffixClass>({
    {"space", "ld.", ".u32", "global shared shared::cta shared::cluster local const param"},
    {"vec", "ld.global.", ".u32", "v2 v4 v8"},
    {"sem", "ld.", ".gpu.global.u32", "weak volatile relaxed acquire release acq_rel sc mmio"},
    {"scope", "ld.relaxed.", ".global.u32", "cta cluster gpu sys"},
    {"cop", "ld.global.", ".u32", "ca cg cs lu cv wb wt"},
    {"hint", "ld.global.", ".u32", "L1::no_allocate L1::evict_last L2::128B L2::cache_hint"},
    {"level", "membar.", "", "cta gl sys"},
    {"cmp", "setp.", ".u32", "eq ne lt le gt ge lo ls hi hs"},
    {"fcmp", "setp.", ".f32", "eq ne lt le gt ge equ neu ltu leu gtu geu num nan"},
    {"bool", "setp.eq.", ".s32", "and or xor"},
    {"itype", "cvt.", ".u8", "u8 u16 u32 u64 s8 s16 s32 s64"},
    {"atype", "cvt.u8.", "", "u8 u16 u32 u64 s8 s16 s32 s64"},
    {"irnd", "cvt.", ".s32.f32", "rni rzi rmi rpi"},
    {"fdiv", "div.", ".f32", "rn rz rm rp full approx"},
    {"frcp", "rcp.", ".f32", "rn rz rm rp approx"},
    {"direction", "shf.", ".wrap.b32", "l r"},
    {"shift_mode", "shf.l.", ".b32", "wrap clamp"},
    {"shuffle", "shfl.sync.", ".b32", "up down bfly idx"},
    {"vote", "vote.sync.", ".pred", "all any uni"},
    {"aop", "atom.", ".u32 .b32", "add min max and or xor inc dec exch"},
    {"rop", "redux.sync.", ".u32 .b32", "add min max and or xor"},
    {"smem", "mbarrier.init.", ".b64", "shared shared::cta shared::cluster"},
    {"pspace", "fence.proxy.async.", "", "global shared::cta shared::cluster"},
    {"dim", "cp.async.bulk.tensor.", ".global.shared::cta.bulk_group", "1d 2d 3d 4d 5d"},
});

bool is_supported(const std::string& name) {
  try {
    return find_handler(match_syntax(name, {})) != nullptr;
  } catch (const InputError&) {
    return false;
  }
}

std::vector<std::string> split(std::string_view words) {
  std::vector<std::string> result;
  while (!words.empty()) {
    const std::size_t end = std::min(words.find(' '), words.size());
    result.emplace_back(words.substr(0, end));
    words.remove_prefix(std::min(end + 1, words.size()));
  }
  return result;
}

std::string link(std::string_view anchor) {
  std::string_view text = anchor;
  const std::size_t at = text.find("-instructions-");
  if (at != std::string_view::npos)
    text.remove_prefix(at + std::string_view{"-instructions-"}.size());
  return fmt::format("[{}]({}{})", text, kManual, anchor);
}

/// `integer-arithmetic-instructions-add` is in "Integer arithmetic".
std::string chapter(std::string_view anchor) {
  std::string text{anchor.substr(0, anchor.find("-instructions"))};
  std::replace(text.begin(), text.end(), '-', ' ');
  if (!text.empty() && text[0] >= 'a' && text[0] <= 'z') text[0] = static_cast<char>(text[0] - 32);
  return text;
}

/// A bar would end the cell of a table.
std::string cell(std::string_view text) {
  if (text.empty()) return "";
  std::string result = "`";
  for (const char c : text) {
    if (c == '|') result += '\\';
    result += c;
  }
  return result + "`";
}

void add_forms(std::string& page) {
  std::vector<std::string> chapters;
  for (const OpInfo& row : kOps) {
    const std::string name = chapter(row.anchor);
    if (std::find(chapters.begin(), chapters.end(), name) == chapters.end()) {
      chapters.push_back(name);
    }
  }
  for (const std::string& name : chapters) {
    page +=
        fmt::format("## {}\n\n| form | `.type` | operands | manual |\n|---|---|---|---|\n", name);
    for (const OpInfo& row : kOps) {
      // A syntax that begins with a slash is the decoder's own: it cannot be written.
      if (chapter(row.anchor) != name || row.syntax.starts_with('/')) continue;
      page += fmt::format("| {} | {} | {} | {} |\n", cell(row.syntax), row.types,
                          cell(row.operands), link(row.anchor));
    }
    page += '\n';
  }
}

bool has_member(const SuffixClass& suffix, const std::string& word) {
  const std::string name = std::string{suffix.before} + word;
  if (suffix.after.empty()) return is_supported(name);
  const std::vector<std::string> ends = split(suffix.after);
  return std::any_of(ends.begin(), ends.end(),
                     [&](const std::string& end) { return is_supported(name + end); });
}

void add_suffixes(std::string& page) {
  page += "## Suffixes\n\n| name | members | not supported |\n|---|---|---|\n";
  for (const SuffixClass& suffix : kSuffixes) {
    std::string members;
    std::string missing;
    for (const std::string& word : split(suffix.words)) {
      (has_member(suffix, word) ? members : missing) += fmt::format("`{}` ", word);
    }
    if (!members.empty()) members.pop_back();
    if (!missing.empty()) missing.pop_back();
    page += fmt::format("| `.{}` | {} | {} |\n", suffix.name, members, missing);
  }
  page += '\n';
}

void add_unsupported(std::string& page) {
  page +=
      "## Not supported\n\nOf each section of the manual, forms that are refused when a module is "
      "loaded, with their "
      "line.\nThe manual's other forms of these sections are refused too unless they are listed "
      "above.\n\n"
      "| chapter | forms |\n|---|---|\n";
  std::vector<std::pair<std::string, std::string>> chapters;
  for (const ManualForm& form : manual_forms()) {
    if (is_supported(std::string{form.form})) continue;
    const std::string name = chapter(form.anchor);
    const auto is_same = [&](const auto& known) { return known.first == name; };
    auto found = std::find_if(chapters.begin(), chapters.end(), is_same);
    if (found == chapters.end()) found = chapters.insert(found, {name, ""});
    found->second += fmt::format("{}[`{}`]({}{})", found->second.empty() ? "" : ", ", form.form,
                                 kManual, form.anchor);
  }
  for (const auto& [name, forms] : chapters) page += fmt::format("| {} | {} |\n", name, forms);
}

}  // namespace

std::string instruction_page() {
  std::string page{kIntroduction};
  add_forms(page);
  add_suffixes(page);
  add_unsupported(page);
  return page;
}

}  // namespace cpverify::sim
