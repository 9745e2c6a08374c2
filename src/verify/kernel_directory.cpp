#include "verify/kernel_directory.hpp"

#include <filesystem>
#include <string>
#include <system_error>

namespace cpverify::verify_detail {

std::string default_kernel_directory() {
  std::error_code failed;
  const std::filesystem::path program = std::filesystem::read_symlink("/proc/self/exe", failed);
  if (!failed) {
    const std::filesystem::path installed =
        program.parent_path().parent_path() / "share" / "cpverify" / "kernels";
    if (std::filesystem::is_directory(installed, failed)) return installed.string();
  }
  // A program that links the library may live elsewhere; the install prefix is the next best guess.
  if (std::filesystem::is_directory(CPVERIFY_INSTALLED_KERNEL_DIR, failed) &&
      !std::filesystem::is_directory(CPVERIFY_BUILT_KERNEL_DIR, failed)) {
    return CPVERIFY_INSTALLED_KERNEL_DIR;
  }
  return CPVERIFY_BUILT_KERNEL_DIR;
}

}  // namespace cpverify::verify_detail
