#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "cpverify/schedule.hpp"
#include "gpu/driver_types.hpp"
#include "gpu/handle_table.hpp"
#include "sim/driver/capture.hpp"
#include "sim/driver/stream_order.hpp"
#include "sim/driver/vector_clock.hpp"
#include "sim/driver/work.hpp"

namespace cpverify::sim {

/// The primary context of a device.
struct Context {
  gpu::CuDevice device = 0;
  int references = 0;
  /// A fault of a kernel: from then on every call in the context returns it.
  gpu::CuResult sticky = gpu::CuResult::success;
  std::uint32_t streams_made = 0;
  /// What streams that are gone have done: all of them, and those that were blocking.
  VectorClock retired;
  VectorClock retired_blocking;
};

/// A queue of work of one context.
struct Stream {
  Context* context = nullptr;
  bool is_default = false;
  bool is_blocking = true;   ///< Synchronises with the default stream of its context.
  bool is_internal = false;  ///< Of a graph: no handle leads to it.
  bool is_destroyed = false;
  int priority = 0;
  std::string name;  ///< "stream 2 of device 0".
  std::uint32_t timeline = 0;
  VectorClock clock;  ///< What is before the next piece of work.
  std::deque<WorkItem> queue;
  std::uint64_t enqueued = 0;
  std::shared_ptr<std::uint64_t> executed = std::make_shared<std::uint64_t>(0);
  std::shared_ptr<Capture> capture;        ///< Null unless it is being captured.
  std::vector<gpu::CuGraphNode> frontier;  ///< Captured: what the next node comes after.

  [[nodiscard]] Marker marker() const { return {executed, enqueued, clock}; }
};

/// All streams of all devices. Work is run only when something waits for it, one piece at a time;
/// of the streams that can go on, the schedule picks the next. A stream whose next wait is not
/// reached cannot.
class Streams {
 public:
  using Execute = std::function<void(Context&, WorkItem&)>;

  Streams(Execute execute, const ScheduleSpec& schedule)
      : execute_{std::move(execute)}, order_{schedule} {}

  /// Every context gets its default and its per-thread stream before any other stream is made.
  void add_default(Context& context);
  [[nodiscard]] gpu::CuStream add(Context& context, bool is_blocking, int priority);
  /// A stream of a graph; `name` is how reports call it.
  [[nodiscard]] Stream& add_internal(Context& context, std::string name);
  /// The default stream of `context` for a null handle; null for a stale one.
  [[nodiscard]] Stream* find(gpu::CuStream handle, const Context& context) const noexcept;

  /// Enqueues work and decides what it is ordered after. Returns how it is known; null for waits.
  OperationRef push(Stream& stream, Work work, const WorkName& name);
  void wait(Stream& stream, const Marker& marker);
  /// The point that an event recorded now, or a synchronisation, stands for.
  [[nodiscard]] Marker mark(Stream& stream);

  /// Runs work until everything before the marker, or of the context, has run. The host knows then.
  void synchronise(const Marker& marker);
  void synchronise(const Context& context);
  /// The host has learnt that the marker is reached.
  void learn(const Marker& marker) { host_.join(marker.before); }
  /// One piece of work, if there is any: a host that polls does not wait for ever.
  void step();
  /// Runs everything without telling the host.
  void drain_all();

  /// Forgets the handle; what is left of the stream runs as before.
  void remove(gpu::CuStream handle);
  void remove(Stream& stream) { stream.is_destroyed = true; }
  /// Runs what is left, ends captures, and forgets every stream of the context but the default
  /// ones.
  void remove_all(const Context& context);

  template <class Visit>
  void for_each(Visit visit) const {
    streams_.for_each(visit);
  }

 private:
  template <class Predicate>
  void run_until(Predicate is_done);
  /// False: nothing can go on.
  bool run_one();
  void forget_destroyed();
  [[nodiscard]] gpu::CuStream add_stream(std::unique_ptr<Stream> stream);
  /// Legacy default streams wait for the blocking streams of their context, and those for them.
  void order_with_default(Stream& stream);
  [[nodiscard]] bool is_idle(const Context& context) const;

  Execute execute_;
  StreamOrder order_;
  /// Numbers below are the handles of the public API for the default streams.
  gpu::HandleTable<gpu::CuStream, Stream> streams_{gpu::kStreamPerThread + 1};
  std::vector<gpu::CuStream> default_streams_;     ///< By device.
  std::vector<gpu::CuStream> per_thread_streams_;  ///< By device.
  std::uint32_t timelines_ = 0;
  VectorClock host_;  ///< What the host has waited for.
};

}  // namespace cpverify::sim
