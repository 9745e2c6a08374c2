#include "tidy/rules.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <iterator>
#include <regex>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tidy/bans.hpp"
#include "tidy/layers.hpp"
#include "tidy/source_tree.hpp"

// Every rule is shown text that breaks it and text that nearly does.
namespace cpverify::tidy {
namespace {

using Check = std::vector<Violation> (*)(const std::vector<SourceFile>&);

/// The lines of the one file that the rule complains about.
std::vector<std::size_t> lines(Check check, std::string path, std::string text) {
  std::vector<std::size_t> found;
  for (const Violation& violation : check({{std::move(path), std::move(text)}})) {
    found.push_back(violation.line);
  }
  return found;
}

using Lines = std::vector<std::size_t>;
const Lines kNone{};
const Lines kFirst{1};

TEST(Includes, PointDown) {
  EXPECT_EQ(lines(check_includes, "src/plan/a.cpp", "\n#include \"run/b.hpp\"\n"), Lines{2});
  EXPECT_EQ(lines(check_includes, "src/run/a.cpp", "#include \"plan/b.hpp\"\n"), kNone);
  EXPECT_EQ(lines(check_includes, "src/plan/a.cpp", "#include \"plan/b.hpp\"\n"), kNone);
  EXPECT_EQ(lines(check_includes, "src/run/a.cpp", "#include \"sim/machine/b.hpp\"\n"), kFirst);
  EXPECT_EQ(lines(check_includes, "src/sim/driver/a.cpp", "#include \"sim/isa/b.hpp\"\n"), kNone);
}

TEST(Includes, KeepTheReferenceApart) {
  EXPECT_EQ(lines(check_includes, "reference/a.cpp", "#include \"support/check.hpp\"\n"), kFirst);
  EXPECT_EQ(lines(check_includes, "reference/a.cpp", "#include <fmt/format.h>\n"), kFirst);
  EXPECT_EQ(lines(check_includes, "reference/a.cpp",
                  "#include <Eigen/Dense>\n#include <vector>\n#include \"cpverify/ids.hpp\"\n"
                  "#include \"reference/b.hpp\"\n"),
            kNone);
  EXPECT_EQ(lines(check_includes, "src/plan/a.cpp", "#include \"reference/a.hpp\"\n"), kFirst);
  EXPECT_EQ(lines(check_includes, "src/judge/a.cpp", "#include \"reference/a.hpp\"\n"), kNone);
}

TEST(Includes, KeepPublicHeadersSmall) {
  const std::string path = "include/cpverify/a.hpp";
  EXPECT_EQ(lines(check_includes, path, "#include <fmt/core.h>\n"), kFirst);
  EXPECT_EQ(lines(check_includes, path, "#include \"plan/a.hpp\"\n"), kFirst);
  EXPECT_EQ(lines(check_includes, path, "#include <map>\n#include \"cpverify/b.hpp\"\n"), kNone);
}

TEST(Includes, NameTheFolderInQuotes) {
  EXPECT_EQ(lines(check_includes, "src/plan/a.cpp", "#include \"a.hpp\"\n"), kFirst);
  EXPECT_EQ(lines(check_includes, "src/plan/a.cpp", "#include <plan/a.hpp>\n"), kFirst);
  EXPECT_EQ(lines(check_includes, "src/plan/a.cpp", "#include <cpverify/a.hpp>\n"), kFirst);
}

TEST(Includes, InCommentsDoNotCount) {
  EXPECT_EQ(lines(check_includes, "src/plan/a.cpp", "// #include \"run/b.hpp\"\n"), kNone);
}

struct BannedCall {
  std::string_view path;
  std::string_view text;
};

constexpr std::array kBannedCalls{
    BannedCall{"src/sim/a.cpp", "x = std::exp(y);"},
    BannedCall{"src/plan/a.cpp", "x = std::log2(y);"},
    BannedCall{"src/run/a.cpp", "x = std::powf (y, 2);"},
    BannedCall{"src/run/a.cpp", "x = rand();"},
    BannedCall{"src/run/a.cpp", "std::mt19937_64 g;"},
    BannedCall{"reference/a.cpp", "std::random_device d;"},
    BannedCall{"src/run/a.cpp", "std::uniform_int_distribution<int> d;"},
    BannedCall{"src/run/a.cpp", "std::shuffle(a, b, g);"},
    BannedCall{"src/run/a.cpp", "std::chrono::steady_clock::now();"},
    BannedCall{"src/run/a.cpp", "std::time(nullptr);"},
    BannedCall{"src/gpu/a.cpp", "std::getenv(\"X\");"},
    BannedCall{"src/run/a.cpp", "std::unordered_map<int, int> m;"},
    BannedCall{"src/run/a.cpp", "#include <iostream>"},
    BannedCall{"src/run/a.cpp", "std::cerr << 1;"},
    BannedCall{"src/tool/show.cpp", "std::printf(\"x\");"},
    BannedCall{"src/run/a.cpp", "} catch (...) {"},
    BannedCall{"src/run/a.cpp", "using namespace std;"},
    BannedCall{"src/run/a.cpp", "auto w = std::source_location::current();"},
    BannedCall{"src/run/a.cpp", "std::exit(1);"},
    BannedCall{"src/run/a.cpp", "std::this_thread::get_id();"},
    BannedCall{"kernels/rows.cu", "assert(x > 0);"}};

class BannedCalls : public testing::TestWithParam<BannedCall> {};

TEST_P(BannedCalls, AreFound) {
  EXPECT_EQ(lines(check_banned_calls, std::string{GetParam().path}, std::string{GetParam().text}),
            kFirst)
      << GetParam().text;
}

INSTANTIATE_TEST_SUITE_P(All, BannedCalls, testing::ValuesIn(kBannedCalls));

// A ban that no snippet above breaks may be a pattern that matches nothing.
TEST(BannedCallsTable, HasASnippetForEachRow) {
  for (const Ban& ban : kBans) {
    const std::regex pattern{std::string{ban.pattern}};
    EXPECT_TRUE(std::any_of(std::begin(kBannedCalls), std::end(kBannedCalls),
                            [&](const BannedCall& call) {
                              return std::regex_search(call.text.begin(), call.text.end(), pattern);
                            }))
        << ban.pattern;
  }
}

TEST(BannedCallsExceptions, AreAllowed) {
  EXPECT_EQ(lines(check_banned_calls, "src/judge/a.cpp", "x = std::exp(y);"), kNone);
  EXPECT_EQ(lines(check_banned_calls, "reference/a.cpp", "x = std::exp(y);"), kNone);
  EXPECT_EQ(lines(check_banned_calls, "src/tool/main.cpp", "} catch (...) {"), kNone);
  EXPECT_EQ(lines(check_banned_calls, "src/run/a.cpp", "app.exit(error);"), kNone);
  EXPECT_EQ(lines(check_banned_calls, "src/tool/main.cpp", "steady_clock::now();"), kNone);
  EXPECT_EQ(lines(check_banned_calls, "tests/unit/a.cpp", "std::random_device d;"), kNone);
}

TEST(BannedCallsExceptions, NamesThatOnlyLookAlike) {
  const std::string text =
      "// std::exp(y)\nf(\"rand()\");\noperand();\nmake_time(x);\nexp2_approx(x);\nfmt::print(x);\n"
      "run_time(x);\nlines_printed(x);\n";
  EXPECT_EQ(lines(check_banned_calls, "src/run/a.cpp", text), kNone);
}

std::string repeat(std::string_view line, std::size_t count) {
  std::string text;
  for (std::size_t i = 0; i < count; ++i) text += line;
  return text;
}

TEST(FileLength, IsAtMost500) {
  EXPECT_EQ(lines(check_file_length, "src/run/a.cpp", repeat("x\n", 500)), kNone);
  EXPECT_EQ(lines(check_file_length, "src/run/a.cpp", repeat("x\n", 501)), Lines{501});
  EXPECT_EQ(lines(check_file_length, "src/sim/isa/a.inc", repeat("x\n", 501)), kNone);
}

TEST(FunctionLength, IsAtMost70) {
  // The line of the brace, the lines inside and the closing line.
  EXPECT_EQ(lines(check_function_length, "a.cpp", "void f() {\n" + repeat("g();\n", 68) + "}\n"),
            kNone);
  EXPECT_EQ(lines(check_function_length, "a.cpp", "\nvoid f() {\n" + repeat("g();\n", 69) + "}\n"),
            Lines{2});
}

TEST(Leftovers, AreFoundInCommentsToo) {
  EXPECT_EQ(lines(check_leftovers, "docs/a.md",
                  "a\n<!-- TO"
                  "DO: b -->\n"),
            Lines{2});
  EXPECT_EQ(lines(check_leftovers, "src/run/a.cpp",
                  "// FIX"
                  "ME\n"),
            kFirst);
  EXPECT_EQ(lines(check_leftovers, "src/run/a.cpp",
                  "MASTO"
                  "DONT\n"),
            kNone);
}

TEST(AbsolutePaths, AreFound) {
  EXPECT_EQ(lines(check_absolute_paths, "docs/a.md",
                  "see /ho"
                  "me/me/x\n"),
            kFirst);
  EXPECT_EQ(lines(check_absolute_paths, "src/run/a.cpp",
                  "open(\"/wo"
                  "rk/x\");\n"),
            kFirst);
  EXPECT_EQ(lines(check_absolute_paths, "docs/a.md", "see tests/work/x and ${root}/tmp/x\n"),
            kNone);
}

TEST(ListedSources, MissingOnesAreFound) {
  const std::vector<SourceFile> tree{
      {"src/run/CMakeLists.txt", "cpverify_layer(run\n  SOURCES a.cpp)"},
      {"src/run/a.cpp", ""},
      {"src/run/ba.cpp", ""}};
  const std::vector<Violation> violations = check_listed_sources(tree);
  ASSERT_EQ(violations.size(), 1U);
  EXPECT_EQ(violations[0].path, "src/run/ba.cpp");
}

TEST(ListedSources, MayBeListedFromAFolderAbove) {
  const std::string list = "add(sim isa/a.cpp)";
  EXPECT_TRUE(
      check_listed_sources({{"src/sim/CMakeLists.txt", list}, {"src/sim/isa/a.cpp", ""}}).empty());
  EXPECT_FALSE(
      check_listed_sources({{"src/sim/CMakeLists.txt", list}, {"src/sim/run/a.cpp", ""}}).empty());
  EXPECT_FALSE(check_listed_sources({{"a.cpp", ""}}).empty());
}

TEST(ListedSources, KernelsGoByTheNameOfTheirModule) {
  const SourceFile list{"kernels/CMakeLists.txt", "set(modules a)"};
  EXPECT_TRUE(check_listed_sources({list, {"kernels/mutants/a.cu", ""}}).empty());
  EXPECT_FALSE(check_listed_sources({list, {"kernels/mutants/a.cpp", ""}}).empty());
  EXPECT_FALSE(check_listed_sources({list, {"kernels/b.cu", ""}}).empty());
}

TEST(InstalledHeaders, MissingOnesAreFound) {
  const SourceFile list{"cmake/cpverify_install.cmake", "FILES\n  include/cpverify/a.hpp)"};
  EXPECT_TRUE(check_installed_headers({list, {"include/cpverify/a.hpp", ""}}).empty());
  EXPECT_FALSE(check_installed_headers({list, {"include/cpverify/b.hpp", ""}}).empty());
  EXPECT_FALSE(check_installed_headers({{"include/cpverify/a.hpp", ""}}).empty());
}

TEST(LayerFolders, NewOnesNeedAnEntry) {
  EXPECT_EQ(lines(check_layer_folders, "src/helpers/a.cpp", ""), kFirst);
  EXPECT_EQ(lines(check_layer_folders, "src/a.cpp", ""), kFirst);
  EXPECT_EQ(lines(check_layer_folders, "src/judge/a.cpp", ""), kNone);
}

TEST(Layers, ListLayersBelowOnly) {
  std::string below = " reference ";
  for (const Layer& layer : kLayers) {
    std::istringstream words{std::string{layer.may_include}};
    for (std::string word; words >> word;) {
      EXPECT_NE(below.find(" " + word + " "), std::string::npos) << layer.folder << ": " << word;
    }
    below += std::string{layer.folder} + " ";
  }
}

TEST(PragmaOnce, IsTheFirstLine) {
  EXPECT_EQ(lines(check_pragma_once, "src/run/a.hpp", "#include <map>\n"), kFirst);
  EXPECT_EQ(lines(check_pragma_once, "src/run/a.hpp", ""), kFirst);
  EXPECT_EQ(lines(check_pragma_once, "src/run/a.hpp", "// Why.\n#pragma once\n"), kNone);
}

TEST(Macros, AreTwo) {
  EXPECT_EQ(lines(check_macros, "src/run/a.hpp", "#define MAX(a, b) a\n"), kFirst);
  EXPECT_EQ(lines(check_macros, "src/run/a.hpp", "#define INSNX\n"), kFirst);
  EXPECT_EQ(lines(check_macros, "src/run/a.hpp", "#define INSN(a) a\n#undef INSN\n"), kNone);
}

TEST(UnusedHeaders, AreFound) {
  EXPECT_EQ(check_unused_headers({{"src/run/a.hpp", ""}}).size(), 1U);
  EXPECT_TRUE(
      check_unused_headers({{"src/run/a.hpp", ""}, {"src/run/a.cpp", "#include \"run/a.hpp\"\n"}})
          .empty());
}

TEST(DocumentedPaths, MustExist) {
  const SourceFile source{"src/run/runner.cpp", ""};
  const auto count = [&](std::string text) {
    return check_documented_paths({source, {"docs/a.md", std::move(text)}}).size();
  };
  EXPECT_EQ(count("`src/run/runner.cpp` in `src/run/`, `src/run` and `src/<layer>/x.cpp`"), 0U);
  EXPECT_EQ(count("`src/run/walker.cpp` and `src/ru`"), 2U);
}

TEST(AllRules, HaveDifferentNames) {
  std::vector<std::string_view> names;
  for (const Rule& rule : all_rules()) names.push_back(rule.name);
  EXPECT_EQ(names.size(), 13U);
  for (std::size_t i = 0; i < names.size(); ++i) {
    for (std::size_t j = i + 1; j < names.size(); ++j) EXPECT_NE(names[i], names[j]);
  }
}

}  // namespace
}  // namespace cpverify::tidy
