#include "scenario/file_text.hpp"

#include <filesystem>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cpverify/error.hpp"
#include "cpverify/scenario.hpp"
#include "unit/scenario/scenario_text.hpp"

namespace cpverify {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

class FileText : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path{testing::TempDir()} /
              testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(folder_);
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::filesystem::path write(const std::string& name,
                                            const std::string& text) const {
    std::ofstream{folder_ / name, std::ios::binary} << text;
    return folder_ / name;
  }
  [[nodiscard]] static std::string error_of(const std::filesystem::path& path) {
    try {
      static_cast<void>(load_scenario(path));
    } catch (const InputError& error) {
      return error.what();
    }
    return "no error";
  }

  std::filesystem::path folder_;
};

TEST_F(FileText, LoadsAScenarioFromDisk) {
  const Scenario scenario = load_scenario(write("good.yaml", test::ScenarioText{}.text()));
  EXPECT_EQ(scenario.name, "good");
  EXPECT_EQ(scenario.requests[0].where.file, (folder_ / "good.yaml").string());
}

TEST_F(FileText, SuggestsTheNearestFileOfTheFolder) {
  static_cast<void>(write("chunked_prefix.yaml", ""));
  const std::filesystem::path missing = folder_ / "chunked_prefx.yaml";
  EXPECT_EQ(error_of(missing),
            "no such file: '" + missing.string() + "'; did you mean 'chunked_prefix.yaml'?");
}

TEST_F(FileText, SaysThatAFileOrItsFolderIsMissing) {
  EXPECT_EQ(error_of(folder_ / "none" / "x.yaml"),
            "no such file: '" + (folder_ / "none" / "x.yaml").string() + "'");
}

TEST_F(FileText, RefusesAFolder) {
  EXPECT_EQ(error_of(folder_), "'" + folder_.string() + "' is a folder; expected a file");
}

TEST_F(FileText, RefusesBinaryAndEndlessFiles) {
  EXPECT_THAT(error_of(write("x.yaml",
                             "\x7f"
                             "ELF")),
              HasSubstr("x.yaml:1:1: byte 0x7f is not"));
  EXPECT_THAT(error_of("/dev/zero"), StartsWith("'/dev/zero' is larger than 1048576 bytes"));
  EXPECT_THAT(error_of("/dev/null"), HasSubstr("the file is empty"));
}

TEST_F(FileText, ReadsUpToTheLimitAndNoFurther) {
  const std::filesystem::path path = write("x.txt", std::string(100, 'x'));
  EXPECT_EQ(scenario::read_file(path, {}, 100).size(), 100U);
  EXPECT_THROW(static_cast<void>(scenario::read_file(path, {}, 99)), InputError);
}

/// RFC 3629's boundaries: the first and last of each length are text, their neighbours are not.
TEST(Utf8, KnowsTheEdgesOfTheEncoding) {
  const auto is_text = [](const std::string& text) {
    try {
      scenario::check_is_text(text, "x");
    } catch (const InputError&) {
      return false;
    }
    return true;
  };
  for (const std::string good :
       {"", "a\tb\r\n", "\xc2\x80", "\xdf\xbf", "\xe0\xa0\x80", "\xed\x9f\xbf", "\xee\x80\x80",
        "\xef\xbf\xbf", "\xf0\x90\x80\x80", "\xf4\x8f\xbf\xbf"}) {
    EXPECT_TRUE(is_text(good)) << testing::PrintToString(good);
  }
  for (const std::string bad :
       {"\x80", "\xc1\xbf", "\xc2",
        "\xc2"
        "a",
        "\xe0\x9f\xbf", "\xe0\xa0", "\xed\xa0\x80", "\xf0\x8f\xbf\xbf", "\xf0\x90\x80",
        "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\x1b[0m"}) {
    EXPECT_FALSE(is_text(bad)) << testing::PrintToString(bad);
  }
}

TEST(Utf8, CountsColumnsInCharacters) {
  try {
    scenario::check_is_text("ok\n\xc3\xa4\xc3\xb6\xff", "x");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), StartsWith("x:2:3: "));
  }
}

}  // namespace
}  // namespace cpverify
