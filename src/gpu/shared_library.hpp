#pragma once

#include <string>

namespace cpverify::gpu {

/// A library opened at run time.
class SharedLibrary {
 public:
  /// `advice` ends the message of the EnvironmentError thrown when the library cannot be opened, or
  /// when it lacks a function: what to install or which option to use instead.
  SharedLibrary(std::string name, std::string advice);
  ~SharedLibrary();
  SharedLibrary(const SharedLibrary&) = delete;
  SharedLibrary& operator=(const SharedLibrary&) = delete;
  SharedLibrary(SharedLibrary&&) = delete;
  SharedLibrary& operator=(SharedLibrary&&) = delete;

  /// Sets a function pointer to the library's function of that name.
  template <class Function>
  void resolve(Function*& target, const char* symbol) const {
    target = reinterpret_cast<Function*>(address(symbol));
  }
  /// The same for a function that older libraries lack: null there.
  template <class Function>
  void resolve_if_present(Function*& target, const char* symbol) const noexcept {
    target = reinterpret_cast<Function*>(find(symbol));
  }

 private:
  [[nodiscard]] void* address(const char* symbol) const;
  [[nodiscard]] void* find(const char* symbol) const noexcept;

  std::string name_;
  std::string advice_;
  void* handle_ = nullptr;
};

}  // namespace cpverify::gpu
