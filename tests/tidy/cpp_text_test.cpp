#include "tidy/cpp_text.hpp"

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include <gtest/gtest.h>

namespace cpverify::tidy {
namespace {

std::vector<std::size_t> span_lines(std::string_view text) {
  std::vector<std::size_t> lines;
  for (const FunctionSpan& span : function_spans(text)) lines.push_back(span.lines);
  return lines;
}

using Lines = std::vector<std::size_t>;

TEST(CodeOnly, BlanksCommentsAndKeepsLines) {
  EXPECT_EQ(code_only("a // b\nc /* d\ne */ f"), "a     \nc     \n     f");
}

TEST(CodeOnly, BlanksLiterals) {
  EXPECT_EQ(code_only("f(\"a // \\\" b\", 'c');"), "f(           ,    );");
  EXPECT_EQ(code_only("R\"(a \" b)\" c"), std::string(10, ' ') + " c");
  EXPECT_EQ(code_only("R\"x(a )\" b)x\" c"), std::string(13, ' ') + " c");
}

TEST(CodeOnly, KeepsDigitSeparatorsAndIncludes) {
  EXPECT_EQ(code_only("1'000'000;"), "1'000'000;");
  EXPECT_EQ(code_only("#include \"a/b.hpp\"\n"), "#include \"a/b.hpp\"\n");
}

TEST(CodeOnly, SurvivesUnfinishedText) {
  EXPECT_EQ(code_only("\"abc"), "    ");
  EXPECT_EQ(code_only("/* abc"), "      ");
  EXPECT_EQ(code_only("R\"(abc"), "      ");
  EXPECT_EQ(code_only(""), "");
}

TEST(FunctionSpans, CountsTheBodyFromBraceToBrace) {
  EXPECT_EQ(span_lines("int f() {\n  return 1;\n}\n"), Lines{3});
  EXPECT_EQ(span_lines("int f() { return 1; }"), Lines{1});
}

TEST(FunctionSpans, LooksIntoNamespacesAndClasses) {
  EXPECT_EQ(span_lines("namespace a {\nnamespace {\nstruct S : public T {\n  void f() const "
                       "override {\n  }\n  int x{3};\n};\n}\n}\n"),
            Lines{2});
}

TEST(FunctionSpans, CountsAConstructorWithMemberInitialisersOnce) {
  EXPECT_EQ(span_lines("S::S(int a) : a_{a}, b_{1} {\n  f();\n}\n"), Lines{3});
  EXPECT_EQ(span_lines("S::S(int a) : a_(a) {\n}\n"), Lines{2});
}

TEST(FunctionSpans, LeavesOutTables) {
  EXPECT_EQ(span_lines("constexpr auto k = std::to_array<int>({\n1,\n2,\n});\n"), Lines{});
  EXPECT_EQ(span_lines("const std::vector<int> k{\n1,\n2,\n};\n"), Lines{});
  EXPECT_EQ(span_lines("const int k[] = {\n1,\n2,\n};\n"), Lines{});
  EXPECT_EQ(span_lines("enum class E : std::uint8_t {\n a,\n b,\n};\n"), Lines{});
}

TEST(FunctionSpans, CountsKernelsTestsAndTemplates) {
  EXPECT_EQ(span_lines("extern \"C\" __global__ void k(int a) {\n}\n"), Lines{2});
  EXPECT_EQ(span_lines("__global__ __launch_bounds__(128) void k(int a) {\n}\n"), Lines{2});
  EXPECT_EQ(span_lines("TEST(A, B) {\n\n}\n"), Lines{3});
  EXPECT_EQ(span_lines("template <class T>\nauto f(T t) -> int {\n  if (t) {\n  }\n}\n"), Lines{4});
}

TEST(FunctionSpans, IgnoresPreprocessorLines) {
  EXPECT_EQ(span_lines("#define X(a) { \\\n  {\nint f() {\n}\n"), Lines{2});
}

TEST(FunctionSpans, IgnoresBracesInStrings) {
  EXPECT_EQ(span_lines("void f() {\n  g(\"{{{\");\n}\nvoid h() {}\n"), (Lines{3, 1}));
}

}  // namespace
}  // namespace cpverify::tidy
