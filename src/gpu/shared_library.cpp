#include "gpu/shared_library.hpp"

#include <string>
#include <utility>

#include <dlfcn.h>
#include <fmt/format.h>

#include "cpverify/error.hpp"

namespace cpverify::gpu {

SharedLibrary::SharedLibrary(std::string name, std::string advice)
    : name_{std::move(name)},
      advice_{std::move(advice)},
      handle_{dlopen(name_.c_str(), RTLD_NOW | RTLD_LOCAL)} {
  if (handle_ != nullptr) return;
  const char* reason = dlerror();
  throw EnvironmentError{fmt::format("cannot open {} ({}); {}", name_,
                                     reason == nullptr ? "no reason given" : reason, advice_)};
}

SharedLibrary::~SharedLibrary() {
  dlclose(handle_);
}

void* SharedLibrary::find(const char* symbol) const noexcept {
  return dlsym(handle_, symbol);
}

void* SharedLibrary::address(const char* symbol) const {
  void* found = find(symbol);
  if (found == nullptr) {
    throw EnvironmentError{
        fmt::format("{} has no function {}, so it is too old; {}", name_, symbol, advice_)};
  }
  return found;
}

}  // namespace cpverify::gpu
