#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <utility>

namespace cpverify::gpu {

/// Owns the objects behind opaque handles. Handles are numbers in order of creation, never
/// addresses and never reused, so that a stale one is recognised and every order is reproducible.
template <class Handle, class Object>
class HandleTable {
 public:
  /// The first handle is `first_id`; smaller numbers may have a meaning of their own.
  explicit HandleTable(std::uintptr_t first_id = 1) : next_id_{first_id} {}

  Handle insert(std::unique_ptr<Object> object) {
    const std::uintptr_t id = next_id_++;
    objects_.emplace(id, std::move(object));
    return reinterpret_cast<Handle>(id);
  }

  /// Null when the handle is null, stale or was never given out.
  [[nodiscard]] Object* find(Handle handle) const noexcept {
    const auto found = objects_.find(reinterpret_cast<std::uintptr_t>(handle));
    return found == objects_.end() ? nullptr : found->second.get();
  }

  bool erase(Handle handle) { return objects_.erase(reinterpret_cast<std::uintptr_t>(handle)) > 0; }

  /// Erases every object for which the predicate holds.
  template <class Predicate>
  void erase_if(Predicate predicate) {
    std::erase_if(objects_, [&](const auto& entry) { return predicate(*entry.second); });
  }

  /// Visits the objects in order of creation.
  template <class Visit>
  void for_each(Visit visit) const {
    for (const auto& entry : objects_) visit(*entry.second);
  }

 private:
  std::map<std::uintptr_t, std::unique_ptr<Object>> objects_;
  std::uintptr_t next_id_;
};

}  // namespace cpverify::gpu
