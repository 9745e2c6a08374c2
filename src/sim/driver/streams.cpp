#include "sim/driver/streams.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "gpu/driver_types.hpp"
#include "sim/driver/operation.hpp"
#include "sim/driver/work.hpp"
#include "support/check.hpp"

namespace cpverify::sim {
namespace {

bool is_blocked(const Stream& stream) {
  const auto* wait = std::get_if<WaitWork>(&stream.queue.front().body);
  return wait != nullptr && !wait->marker.is_reached();
}

/// Waits and records touch no memory.
bool is_operation(const Work& work) {
  return !std::holds_alternative<WaitWork>(work) && !std::holds_alternative<RecordWork>(work);
}

}  // namespace

gpu::CuStream Streams::add_stream(std::unique_ptr<Stream> stream) {
  stream->timeline = timelines_++;
  return streams_.insert(std::move(stream));
}

void Streams::add_default(Context& context) {
  CPVERIFY_CHECK(static_cast<std::size_t>(context.device) == default_streams_.size());
  auto stream = std::make_unique<Stream>();
  stream->context = &context;
  stream->is_default = true;
  stream->name = fmt::format("the default stream of device {}", context.device);
  default_streams_.push_back(add_stream(std::move(stream)));
  stream = std::make_unique<Stream>();
  stream->context = &context;
  stream->name = fmt::format("the per-thread default stream of device {}", context.device);
  per_thread_streams_.push_back(add_stream(std::move(stream)));
}

gpu::CuStream Streams::add(Context& context, bool is_blocking, int priority) {
  auto stream = std::make_unique<Stream>();
  stream->context = &context;
  stream->is_blocking = is_blocking;
  stream->priority = priority;
  stream->name = fmt::format("stream {} of device {}", ++context.streams_made, context.device);
  return add_stream(std::move(stream));
}

Stream& Streams::add_internal(Context& context, std::string name) {
  auto stream = std::make_unique<Stream>();
  stream->context = &context;
  stream->is_blocking = false;
  stream->is_internal = true;
  stream->name = std::move(name);
  return *streams_.find(add_stream(std::move(stream)));
}

Stream* Streams::find(gpu::CuStream handle, const Context& context) const noexcept {
  const auto device = static_cast<std::size_t>(context.device);
  const auto number = reinterpret_cast<std::uintptr_t>(handle);
  if (handle == nullptr || number == gpu::kStreamLegacy) handle = default_streams_[device];
  if (number == gpu::kStreamPerThread) handle = per_thread_streams_[device];
  Stream* const stream = streams_.find(handle);
  return stream == nullptr || stream->is_internal || stream->is_destroyed ? nullptr : stream;
}

// Source: CUDA Driver API manual, "Stream synchronization behavior", legacy default stream.
void Streams::order_with_default(Stream& stream) {
  if (stream.is_default) stream.clock.join(stream.context->retired_blocking);
  streams_.for_each([this, &stream](const Stream& other) {
    const bool is_ordered = other.context == stream.context && other.is_blocking &&
                            stream.is_blocking && other.is_default != stream.is_default;
    if (is_ordered) wait(stream, other.marker());
  });
}

void Streams::wait(Stream& stream, const Marker& marker) {
  stream.clock.join(marker.before);
  if (marker.is_reached()) return;
  stream.queue.push_back({WaitWork{marker}, nullptr});
  ++stream.enqueued;
}

OperationRef Streams::push(Stream& stream, Work work, const WorkName& name) {
  order_with_default(stream);
  stream.clock.join(host_);
  OperationRef operation;
  if (is_operation(work)) {
    auto made = std::make_shared<Operation>();
    made->call = name.call;
    made->description = fmt::format("{} on {}", name.description, stream.name);
    made->device = static_cast<std::uint32_t>(stream.context->device);
    made->timeline = stream.timeline;
    made->time = stream.clock.at(stream.timeline) + 1;
    stream.clock.set(stream.timeline, made->time);
    made->before = stream.clock;
    operation = std::move(made);
  }
  stream.queue.push_back({std::move(work), operation});
  ++stream.enqueued;
  return operation;
}

// The default stream waits for the blocking streams even when it has no work of its own.
Marker Streams::mark(Stream& stream) {
  if (stream.is_default) order_with_default(stream);
  return stream.marker();
}

bool Streams::run_one() {
  std::vector<std::uint64_t> ready;
  std::vector<Stream*> streams;
  streams_.for_each([&](Stream& stream) {
    if (stream.queue.empty() || is_blocked(stream)) return;
    ready.push_back(stream.timeline);
    streams.push_back(&stream);
  });
  if (ready.empty()) return false;
  const std::uint64_t picked = order_.pick(ready);
  std::size_t place = 0;
  while (ready[place] != picked) ++place;
  Stream& stream = *streams[place];
  execute_(*stream.context, stream.queue.front());
  stream.queue.pop_front();
  ++*stream.executed;
  return true;
}

void Streams::step() {
  static_cast<void>(run_one());
}

template <class Predicate>
void Streams::run_until(Predicate is_done) {
  while (!is_done()) {
    // A wait refers to work that was enqueued before it, so some stream can always go on.
    CPVERIFY_CHECK(run_one());
  }
  forget_destroyed();
}

void Streams::forget_destroyed() {
  streams_.erase_if([](const Stream& stream) {
    if (!stream.is_destroyed || !stream.queue.empty()) return false;
    stream.context->retired.join(stream.clock);
    if (stream.is_blocking) stream.context->retired_blocking.join(stream.clock);
    return true;
  });
}

void Streams::synchronise(const Marker& marker) {
  run_until([&marker] { return marker.is_reached(); });
  learn(marker);
}

bool Streams::is_idle(const Context& context) const {
  bool is_idle = true;
  streams_.for_each([&](const Stream& stream) {
    if (stream.context == &context && !stream.queue.empty()) is_idle = false;
  });
  return is_idle;
}

void Streams::synchronise(const Context& context) {
  host_.join(context.retired);
  streams_.for_each([&](const Stream& stream) {
    if (stream.context == &context) host_.join(stream.clock);
  });
  run_until([&] { return is_idle(context); });
}

void Streams::drain_all() {
  run_until([this] {
    bool is_idle = true;
    streams_.for_each([&is_idle](const Stream& stream) {
      if (!stream.queue.empty()) is_idle = false;
    });
    return is_idle;
  });
}

void Streams::remove(gpu::CuStream handle) {
  streams_.find(handle)->is_destroyed = true;
}

void Streams::remove_all(const Context& context) {
  synchronise(context);
  const auto device = static_cast<std::size_t>(context.device);
  streams_.for_each([&context](Stream& stream) {
    if (stream.context == &context) stream.capture.reset();
  });
  const Stream* const kept = streams_.find(default_streams_[device]);
  const Stream* const kept_too = streams_.find(per_thread_streams_[device]);
  streams_.erase_if([&](const Stream& stream) {
    return stream.context == &context && &stream != kept && &stream != kept_too;
  });
}

}  // namespace cpverify::sim
