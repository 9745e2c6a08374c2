#include "sim/isa/syntax.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "cpverify/error.hpp"
#include "cpverify/observer.hpp"
#include "sim/isa/manual_section.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/isa/type.hpp"
#include "support/nearest.hpp"

namespace cpverify::sim {
namespace {

/// One member of a class of suffixes, and what it sets.
template <class Value>
struct Member {
  std::string_view word;
  Value value;
};

constexpr auto kSpaces = std::to_array<Member<Space>>({
    {"global", Space::global},
    {"shared", Space::shared},
    {"shared::cta", Space::shared},
    {"shared::cluster", Space::shared},
    {"local", Space::local},
    {"const", Space::constant},
    {"param", Space::param},
});
/// Shared memory where the manual spells out whose: a CTA that is its own cluster has one.
constexpr auto kSharedSpaces = std::to_array<Member<Space>>({
    {"shared", Space::shared},
    {"shared::cta", Space::shared},
    {"shared::cluster", Space::shared},
});
constexpr auto kDimensions =
    std::to_array<Member<std::uint8_t>>({{"1d", 1}, {"2d", 2}, {"3d", 3}, {"4d", 4}, {"5d", 5}});
constexpr auto kCompares = std::to_array<Member<Compare>>({
    {"eq", Compare::eq},
    {"ne", Compare::ne},
    {"lt", Compare::lt},
    {"le", Compare::le},
    {"gt", Compare::gt},
    {"ge", Compare::ge},
    {"lo", Compare::lo},
    {"ls", Compare::ls},
    {"hi", Compare::hi},
    {"hs", Compare::hs},
});
constexpr auto kFloatCompares = std::to_array<Member<Compare>>({
    {"eq", Compare::eq},
    {"ne", Compare::ne},
    {"lt", Compare::lt},
    {"le", Compare::le},
    {"gt", Compare::gt},
    {"ge", Compare::ge},
    {"equ", Compare::equ},
    {"neu", Compare::neu},
    {"ltu", Compare::ltu},
    {"leu", Compare::leu},
    {"gtu", Compare::gtu},
    {"geu", Compare::geu},
    {"num", Compare::num},
    {"nan", Compare::nan},
});
constexpr auto kBoolOps = std::to_array<Member<BoolOp>>(
    {{"and", BoolOp::and_op}, {"or", BoolOp::or_op}, {"xor", BoolOp::xor_op}});
constexpr auto kIntegerRoundings = std::to_array<Member<Rounding>>({{"rni", Rounding::to_nearest},
                                                                    {"rzi", Rounding::to_zero},
                                                                    {"rmi", Rounding::down},
                                                                    {"rpi", Rounding::up}});
constexpr auto kRoundings = std::to_array<Member<Rounding>>({{"rn", Rounding::to_nearest},
                                                             {"rz", Rounding::to_zero},
                                                             {"rm", Rounding::down},
                                                             {"rp", Rounding::up},
                                                             {"rna", Rounding::to_nearest_away}});
constexpr auto kTests = std::to_array<Member<Test>>({{"finite", Test::finite},
                                                     {"infinite", Test::infinite},
                                                     {"number", Test::number},
                                                     {"notanumber", Test::not_a_number},
                                                     {"normal", Test::normal},
                                                     {"subnormal", Test::subnormal}});
constexpr auto kShuffles = std::to_array<Member<Shuffle>>(
    {{"up", Shuffle::up}, {"down", Shuffle::down}, {"bfly", Shuffle::bfly}, {"idx", Shuffle::idx}});
constexpr auto kVotes =
    std::to_array<Member<Vote>>({{"all", Vote::all}, {"any", Vote::any}, {"uni", Vote::uni}});
constexpr auto kAtomicOps = std::to_array<Member<Reduce>>({
    {"add", Reduce::add},
    {"min", Reduce::min},
    {"max", Reduce::max},
    {"and", Reduce::and_op},
    {"or", Reduce::or_op},
    {"xor", Reduce::xor_op},
    {"inc", Reduce::inc},
    {"dec", Reduce::dec},
    {"exch", Reduce::exch},
});
constexpr auto kCacheOps = std::to_array<Member<CacheOp>>({
    {"ca", CacheOp::ca},
    {"cg", CacheOp::cg},
    {"cs", CacheOp::other},
    {"lu", CacheOp::other},
    {"cv", CacheOp::other},
    {"wb", CacheOp::other},
    {"wt", CacheOp::other},
});
constexpr auto kVectors = std::to_array<Member<std::uint8_t>>({{"v2", 2}, {"v4", 4}, {"v8", 8}});
constexpr auto kDirections = std::to_array<Member<bool>>({{"l", true}, {"r", false}});
constexpr auto kShiftModes = std::to_array<Member<bool>>({{"wrap", true}, {"clamp", false}});
/// Orders and scopes are for racecheck: the machine executes one access after the other.
constexpr auto kSemantics = std::to_array<Member<MemoryOrder>>({
    {"weak", MemoryOrder::weak},
    {"volatile", MemoryOrder::relaxed},
    {"relaxed", MemoryOrder::relaxed},
    {"acquire", MemoryOrder::acquire},
    {"release", MemoryOrder::release},
    {"acq_rel", MemoryOrder::acquire_release},
    {"sc", MemoryOrder::acquire_release},
});
constexpr auto kScopes = std::to_array<Member<bool>>(
    {{"cta", true}, {"cluster", false}, {"gpu", false}, {"sys", false}});
constexpr auto kLevels = std::to_array<Member<bool>>(
    {{"cta", true}, {"gl", false}, {"sys", false}, {"L1", false}, {"L2", false}});
/// Suffixes that change nothing in a machine that does not round.
constexpr auto kDivisions = std::to_array<std::string_view>({"rn", "full", "approx"});
constexpr auto kReciprocals = std::to_array<std::string_view>({"rn", "approx"});
constexpr auto kProxySpaces =
    std::to_array<std::string_view>({"global", "shared::cta", "shared::cluster"});

template <class Members, class Value>
bool set_from(const Members& members, std::string_view word, Value& target) {
  for (const auto& member : members) {
    if (member.word != word) continue;
    target = member.value;
    return true;
  }
  return false;
}

bool is_one_of(std::span<const std::string_view> words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

bool is_listed(std::string_view types, std::string_view word) {
  while (!types.empty()) {
    const std::size_t end = std::min(types.find(' '), types.size());
    if (types.substr(0, end) == word) return true;
    types.remove_prefix(std::min(end + 1, types.size()));
  }
  return false;
}

bool is_integer(Type type) {
  return type >= Type::u8 && type <= Type::s64;
}

/// Classes of types that may stand first or second.
constexpr std::string_view listed_types(std::string_view name) {
  if (name == "half") return "f16 bf16";
  if (name == "half2") return "f16x2 bf16x2";
  if (name == "f8x2") return "e4m3x2 e5m2x2";
  return "";
}

/// Types of the elements of A and B.
bool match_element_class(std::string_view name, std::string_view word, Modifiers& modifiers) {
  const bool is_a = name == "abyte" || name == "afp8" || name == "ahalf";
  if (!is_a && name != "bbyte" && name != "bfp8" && name != "bhalf") return false;
  (is_a ? modifiers.a_element : modifiers.b_element) = find_type(word);
  if (name.ends_with("half")) return is_listed("f16 bf16", word);
  return is_listed(name.ends_with("byte") ? "u8 s8" : "e4m3 e5m2", word);
}

/// Matches `word` with the class `name`; false when it is not a member, or `name` no class.
bool match_type_class(std::string_view name, std::string_view word, const OpInfo& row,
                      Modifiers& modifiers) {
  if (name == "type") {
    modifiers.type = find_type(word);
    return is_listed(row.types, word);
  }
  if (name == "itype") {
    modifiers.type = find_type(word);
    return is_integer(modifiers.type);
  }
  if (name == "atype") {
    modifiers.atype = find_type(word);
    return is_integer(modifiers.atype);
  }
  if (is_listed(listed_types(name), word)) {
    (modifiers.type == Type::none ? modifiers.type : modifiers.atype) = find_type(word);
    return true;
  }
  return match_element_class(name, word, modifiers);
}

bool match_value_class(std::string_view name, std::string_view word, Modifiers& modifiers) {
  const auto set = [&](const auto& members, auto& target) {
    return set_from(members, word, target);
  };
  if (name == "space") {
    modifiers.is_cluster_space = word == "shared::cluster";
    return set(kSpaces, modifiers.space);
  }
  if (name == "smem") return set(kSharedSpaces, modifiers.space);
  if (name == "dim") return set(kDimensions, modifiers.dimensions);
  if (name == "cmp") return set(kCompares, modifiers.compare);
  if (name == "fcmp") return set(kFloatCompares, modifiers.compare);
  if (name == "bool") return set(kBoolOps, modifiers.bool_op);
  if (name == "irnd") return set(kIntegerRoundings, modifiers.rounding);
  if (name == "frnd") return set(std::span{kRoundings}.first<4>(), modifiers.rounding);
  if (name == "drnd") return set(std::span{kRoundings}.subspan<1, 3>(), modifiers.rounding);
  if (name == "hrnd") return set(std::span{kRoundings}.first<2>(), modifiers.rounding);
  if (name == "tfrnd") return set(kRoundings, modifiers.rounding);
  if (name == "test") return set(kTests, modifiers.test);
  if (name == "shuffle") return set(kShuffles, modifiers.shuffle);
  if (name == "vote") return set(kVotes, modifiers.vote);
  if (name == "aop") return set(kAtomicOps, modifiers.reduce);
  if (name == "rop") return set(std::span{kAtomicOps}.first<6>(), modifiers.reduce);
  if (name == "cop") return set(kCacheOps, modifiers.cache);
  if (name == "vec") return set(std::span{kVectors}.first<2>(), modifiers.vector);
  if (name == "hvec") return set(kVectors, modifiers.vector);
  if (name == "mop") return set(std::span{kAtomicOps}.first<3>(), modifiers.reduce);
  if (name == "sem") return set(kSemantics, modifiers.order);
  if (name == "scope") return set(kScopes, modifiers.is_cta_scope);
  if (name == "level") return set(kLevels, modifiers.is_cta_scope);
  if (name == "direction") return set(kDirections, modifiers.is_left);
  if (name == "shift_mode") return set(kShiftModes, modifiers.is_wrapped);
  return false;
}

/// m64nNk16 stands for all N = 8, 16, ..., 256. Source: PTX ISA, "wgmma.mma_async".
bool match_shape_class(std::string_view name, std::string_view word, Modifiers& modifiers) {
  constexpr std::string_view kRows = "m64n";
  constexpr std::uint32_t kColumnsMax = 256;
  if (!name.starts_with("m64nN") || !word.starts_with(kRows)) return false;
  std::uint32_t columns = 0;
  std::size_t at = kRows.size();
  for (; at < word.size() && word[at] >= '0' && word[at] <= '9' && columns <= kColumnsMax; ++at) {
    columns = 10 * columns + static_cast<std::uint32_t>(word[at] - '0');
  }
  if (word[kRows.size()] == '0' || columns == 0 || columns % 8 != 0 || columns > kColumnsMax) {
    return false;
  }
  modifiers.columns = static_cast<std::uint16_t>(columns);
  return word.substr(at) == name.substr(kRows.size() + 1);
}

bool match_inert_class(std::string_view name, std::string_view word) {
  if (name == "fdiv") return is_one_of(kDivisions, word);
  if (name == "frcp") return is_one_of(kReciprocals, word);
  if (name == "pspace") return is_one_of(kProxySpaces, word);
  if (name == "hint") return word.starts_with("L1::") || word.starts_with("L2::");
  return false;
}

/// Matches `word` with itself, and notes what it means.
bool match_literal(std::string_view name, std::string_view word, Modifiers& modifiers) {
  if (word != name && !(name == "shared" && word == "shared::cta")) return false;
  const Type type = find_type(word);
  if (type != Type::none) {
    (modifiers.type == Type::none ? modifiers.type : modifiers.atype) = type;
  }
  if (word == "ftz") modifiers.is_ftz = true;
  if (word == "sat") modifiers.is_sat = true;
  if (word == "NaN") modifiers.is_nan = true;
  if (word == "trans") modifiers.is_trans = true;
  if (word == "relu") modifiers.is_relu = true;
  if (word == "satfinite") modifiers.is_satfinite = true;
  if (word == "shiftamt") modifiers.is_shift_amount = true;
  if (name == "shared") modifiers.space = Space::shared;
  return true;
}

struct Element {
  std::string_view name;
  bool is_optional = false;
};

/// `ld{.space}{.vec}.type` as its elements.
std::vector<Element> parse_elements(std::string_view syntax) {
  std::vector<Element> elements;
  std::size_t at = 0;
  while (at < syntax.size()) {
    const bool is_optional = syntax[at] == '{';
    if (is_optional || syntax[at] == '}') ++at;
    if (at < syntax.size() && syntax[at] == '.') ++at;
    const std::size_t end = std::min(syntax.find_first_of(".{}", at), syntax.size());
    if (end > at) elements.push_back({syntax.substr(at, end - at), is_optional});
    at = end + (end < syntax.size() && syntax[end] == '}' ? 1 : 0);
  }
  return elements;
}

const std::vector<std::vector<Element>>& row_elements() {
  static const std::vector<std::vector<Element>> rows = [] {
    std::vector<std::vector<Element>> result;
    result.reserve(kOps.size());
    for (const OpInfo& row : kOps) result.push_back(parse_elements(row.syntax));
    return result;
  }();
  return rows;
}

bool match(std::span<const Element> elements, std::span<const std::string_view> words,
           const OpInfo& row, Modifiers& modifiers) {
  if (elements.empty()) return words.empty();
  const Element& element = elements.front();
  if (!words.empty()) {
    const std::string_view word = words.front();
    Modifiers with = modifiers;
    if ((match_type_class(element.name, word, row, with) ||
         match_value_class(element.name, word, with) ||
         match_shape_class(element.name, word, with) || match_inert_class(element.name, word) ||
         match_literal(element.name, word, with)) &&
        match(elements.subspan(1), words.subspan(1), row, with)) {
      modifiers = with;
      return true;
    }
  }
  return element.is_optional && match(elements.subspan(1), words, row, modifiers);
}

std::vector<std::string_view> split(std::string_view name) {
  std::vector<std::string_view> words;
  for (std::size_t begin = 0; begin <= name.size();) {
    const std::size_t end = std::min(name.find('.', begin), name.size());
    words.push_back(name.substr(begin, end - begin));
    begin = end + 1;
  }
  return words;
}

[[noreturn]] void refuse(std::string_view name, std::string_view first,
                         const SourceLocation& where) {
  std::string known;
  std::vector<std::string> mnemonics;
  for (std::size_t i = 0; i < kOps.size(); ++i) {
    const std::string_view mnemonic = row_elements()[i].empty() ? "" : row_elements()[i][0].name;
    mnemonics.emplace_back(mnemonic);
    if (mnemonic != first || kOps[i].syntax.find('/') != std::string_view::npos) continue;
    known += fmt::format("{}'{}'", known.empty() ? "" : ", ", kOps[i].syntax);
    if (known.size() > 300) break;
  }
  const std::string_view section = manual_section(name);
  const std::string source = section.empty() ? "" : fmt::format(" (PTX ISA, section {})", section);
  if (known.empty()) {
    // A word that the manual has is not misspelt.
    throw InputError{where, fmt::format("instruction '{}' is not supported{}", name,
                                        section.empty() ? did_you_mean(first, mnemonics) : source)};
  }
  throw InputError{where, fmt::format("instruction form '{}' is not supported; known are {}{}",
                                      name, known, source)};
}

}  // namespace

Form match_syntax(std::string_view name, const SourceLocation& where) {
  const std::vector<std::string_view> words = split(name);
  for (std::size_t i = 0; i < kOps.size(); ++i) {
    const std::vector<Element>& elements = row_elements()[i];
    if (elements.empty() || elements[0].name != words[0]) continue;
    if (kOps[i].syntax.find('/') != std::string_view::npos) continue;
    Form form{static_cast<Op>(i), {}};
    if (match(elements, words, kOps[i], form.modifiers)) return form;
  }
  refuse(name, words[0], where);
}

}  // namespace cpverify::sim
