#include "tool/scenario_files.hpp"

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>
#include <unistd.h>

#include "cpverify/error.hpp"

namespace cpverify::tool {
namespace {

class ScenarioFiles : public testing::Test {
 protected:
  ScenarioFiles() {
    folder_ =
        std::filesystem::temp_directory_path() / ("cpverify_files_" + std::to_string(::getpid()));
    std::filesystem::create_directories(folder_ / "b");
  }
  ~ScenarioFiles() override { std::filesystem::remove_all(folder_); }
  void touch(const std::string& name, const std::string& text = "") const {
    std::ofstream{folder_ / name} << text;
  }

  std::filesystem::path folder_;
};

TEST_F(ScenarioFiles, SearchesFoldersInPathOrder) {
  touch("b/z.yaml");
  touch("c.yml");
  touch("a.yaml");
  touch("notes.md");
  const std::vector<std::filesystem::path> wanted{folder_ / "a.yaml", folder_ / "b/z.yaml",
                                                  folder_ / "c.yml"};
  EXPECT_EQ(find_scenarios({folder_.string()}), wanted);
}

TEST_F(ScenarioFiles, AFolderWithoutScenariosIsAnInputError) {
  EXPECT_THROW(static_cast<void>(find_scenarios({(folder_ / "b").string()})), InputError);
}

TEST_F(ScenarioFiles, ReportsEveryWrongFileAtOnce) {
  touch("a.yaml", "modell: {}\n");
  touch("b.yaml", "topologie: {}\n");
  try {
    static_cast<void>(load_scenarios(find_scenarios({folder_.string()})));
    FAIL() << "expected InputError";
  } catch (const InputError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("a.yaml:1:1"), std::string::npos) << message;
    EXPECT_NE(message.find("b.yaml:1:1"), std::string::npos) << message;
  }
}

}  // namespace
}  // namespace cpverify::tool
