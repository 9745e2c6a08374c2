#include "tool/output_file.hpp"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include <gtest/gtest.h>
#include <unistd.h>

#include "cpverify/error.hpp"

namespace cpverify::tool {
namespace {

class OutputFile : public testing::Test {
 protected:
  OutputFile() {
    folder_ =
        std::filesystem::temp_directory_path() / ("cpverify_output_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_);
  }
  ~OutputFile() override { std::filesystem::remove_all(folder_); }
  [[nodiscard]] std::string path(const std::string& name) const {
    return (folder_ / name).string();
  }
  [[nodiscard]] static std::string read(const std::string& path) {
    std::ifstream file{path, std::ios::binary};
    return {std::istreambuf_iterator<char>{file}, std::istreambuf_iterator<char>{}};
  }
  [[nodiscard]] std::size_t file_count() const {
    std::size_t count = 0;
    for (const auto& entry : std::filesystem::directory_iterator{folder_}) {
      static_cast<void>(entry);
      ++count;
    }
    return count;
  }

 private:
  std::filesystem::path folder_;
};

TEST_F(OutputFile, ReplacesTheWholeFileAndLeavesNothingBeside) {
  write_output(path("a.json"), "a long first text");
  write_output(path("a.json"), "short");
  EXPECT_EQ(read(path("a.json")), "short");
  EXPECT_EQ(file_count(), 1U);
}

TEST_F(OutputFile, RefusesAFolderThatDoesNotExist) {
  EXPECT_THROW(check_writable(path("no/such/a.json")), EnvironmentError);
  EXPECT_THROW(write_output(path("no/such/a.json"), "x"), EnvironmentError);
}

TEST_F(OutputFile, RefusesAFolderAsFile) {
  EXPECT_THROW(check_writable(path("")), EnvironmentError);
  EXPECT_THROW(write_output(path(""), "x"), EnvironmentError);
}

TEST_F(OutputFile, CheckLeavesNothingBehind) {
  check_writable(path("a.json"));
  EXPECT_EQ(file_count(), 0U);
}

// /dev/full accepts opening and refuses every byte: a full disk without filling one.
TEST_F(OutputFile, AFullDiskLeavesTheOldFileAndNoHalfOne) {
  std::filesystem::create_symlink("/dev/full",
                                  path("a.json." + std::to_string(::getpid()) + ".part"));
  std::ofstream{path("a.json")} << "old";
  EXPECT_THROW(write_output(path("a.json"), "new"), EnvironmentError);
  EXPECT_EQ(read(path("a.json")), "old");
  EXPECT_EQ(file_count(), 1U);
}

// A link to a device stands for the device itself, which a test must not put at risk.
TEST_F(OutputFile, WritesToADeviceInsteadOfReplacingIt) {
  std::filesystem::create_symlink("/dev/null", path("device"));
  check_writable(path("device"));
  write_output(path("device"), "text");
  EXPECT_TRUE(std::filesystem::is_symlink(path("device")));
  EXPECT_EQ(file_count(), 1U);
  std::filesystem::create_symlink("/dev/full", path("full"));
  EXPECT_THROW(write_output(path("full"), "text"), EnvironmentError);
  EXPECT_TRUE(std::filesystem::is_symlink(path("full")));
}

}  // namespace
}  // namespace cpverify::tool
