#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <variant>
#include <vector>

#include "gpu/driver_api.hpp"
#include "gpu/handle_table.hpp"
#include "sim/machine/launch.hpp"
#include "sim/machine/program.hpp"

namespace cpverify::sim {

/// The primary context of a device.
struct Context {
  gpu::CuDevice device = 0;
  int references = 0;
  /// A fault of a kernel: from then on every call in the context returns it.
  gpu::CuResult sticky = gpu::CuResult::success;
};

/// A point in the work of a stream: reached when everything enqueued before it has run. Outlives
/// the stream, whose destruction runs what is left.
class Marker {
 public:
  Marker() = default;
  Marker(std::shared_ptr<const std::uint64_t> executed, std::uint64_t position)
      : executed_{std::move(executed)}, position_{position} {}
  /// A marker that was never set counts as reached, as an event that was never recorded.
  [[nodiscard]] bool is_reached() const noexcept {
    return executed_ == nullptr || *executed_ >= position_;
  }

 private:
  std::shared_ptr<const std::uint64_t> executed_;
  std::uint64_t position_ = 0;
};

struct UploadWork {
  std::uint64_t target = 0;
  std::vector<std::byte> bytes;  ///< Captured by the call, as the driver does with pageable memory.
};
struct DownloadWork {
  void* target = nullptr;
  std::uint64_t source = 0;
  std::size_t size_bytes = 0;
};
struct CopyWork {
  std::uint64_t target = 0;
  std::uint64_t source = 0;
  std::size_t size_bytes = 0;
};
struct FillWork {
  std::uint64_t target = 0;
  std::vector<std::byte> pattern;
  std::size_t size_bytes = 0;
};
struct LaunchWork {
  const Kernel* kernel = nullptr;
  LaunchRequest request;              ///< Its parameters are set to the bytes below when it runs.
  std::vector<std::byte> parameters;  ///< As the entry lays them out.
};
struct WaitWork {
  Marker marker;
};
using Work = std::variant<UploadWork, DownloadWork, CopyWork, FillWork, LaunchWork, WaitWork>;

/// A queue of work of one context.
struct Stream {
  Context* context = nullptr;
  bool is_default = false;
  bool is_blocking = true;  ///< Synchronises with the default stream of its context.
  std::deque<Work> queue;
  std::uint64_t enqueued = 0;
  std::shared_ptr<std::uint64_t> executed = std::make_shared<std::uint64_t>(0);

  [[nodiscard]] Marker marker() const { return {executed, enqueued}; }
};

/// All streams of all devices. Work is run only when something waits for it: round-robin over the
/// streams in order of creation, one piece of work at a time, a stream whose next wait is not
/// reached is passed over.
class Streams {
 public:
  using Execute = std::function<void(Context&, Work&)>;

  explicit Streams(Execute execute) : execute_{std::move(execute)} {}

  /// Every context gets its default stream before any other stream is made.
  void add_default(Context& context);
  [[nodiscard]] gpu::CuStream add(Context& context, bool is_blocking);
  /// The default stream of `context` for a null handle; null for a stale one.
  [[nodiscard]] Stream* find(gpu::CuStream handle, const Context& context) const noexcept;

  void push(Stream& stream, Work work);
  void drain(const Stream& stream);
  void drain(const Context& context);
  void drain_all();
  /// Runs what is left of the stream and forgets it.
  void remove(gpu::CuStream handle);
  /// Runs what is left and forgets every stream of the context but the default one.
  void remove_all(const Context& context);

 private:
  template <class Predicate>
  void run_until(Predicate is_done);
  bool step(Stream& stream);
  [[nodiscard]] bool is_idle(const Context& context) const;

  Execute execute_;
  gpu::HandleTable<gpu::CuStream, Stream> streams_;
  std::vector<gpu::CuStream> default_streams_;  ///< By device.
};

}  // namespace cpverify::sim
