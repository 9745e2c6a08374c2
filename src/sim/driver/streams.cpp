#include "sim/driver/streams.hpp"

#include <cstddef>
#include <memory>
#include <utility>
#include <variant>

#include "gpu/driver_api.hpp"
#include "support/check.hpp"

namespace cpverify::sim {

void Streams::add_default(Context& context) {
  CPVERIFY_CHECK(static_cast<std::size_t>(context.device) == default_streams_.size());
  auto stream = std::make_unique<Stream>();
  stream->context = &context;
  stream->is_default = true;
  default_streams_.push_back(streams_.insert(std::move(stream)));
}

gpu::CuStream Streams::add(Context& context, bool is_blocking) {
  auto stream = std::make_unique<Stream>();
  stream->context = &context;
  stream->is_blocking = is_blocking;
  return streams_.insert(std::move(stream));
}

Stream* Streams::find(gpu::CuStream handle, const Context& context) const noexcept {
  const auto device = static_cast<std::size_t>(context.device);
  return streams_.find(handle == nullptr ? default_streams_[device] : handle);
}

// The default stream waits for all blocking streams of its context and they wait for it.
// Source: CUDA Driver API manual, "Stream synchronization behavior", legacy default stream.
void Streams::push(Stream& stream, Work work) {
  streams_.for_each([&stream](const Stream& other) {
    const bool is_ordered = other.context == stream.context && other.is_blocking &&
                            stream.is_blocking && other.is_default != stream.is_default;
    const Marker marker = other.marker();
    if (!is_ordered || marker.is_reached()) return;
    stream.queue.emplace_back(WaitWork{marker});
    ++stream.enqueued;
  });
  stream.queue.push_back(std::move(work));
  ++stream.enqueued;
}

bool Streams::step(Stream& stream) {
  if (stream.queue.empty()) return false;
  if (const auto* wait = std::get_if<WaitWork>(&stream.queue.front())) {
    if (!wait->marker.is_reached()) return false;
  } else {
    execute_(*stream.context, stream.queue.front());
  }
  stream.queue.pop_front();
  ++*stream.executed;
  return true;
}

template <class Predicate>
void Streams::run_until(Predicate is_done) {
  while (!is_done()) {
    bool has_progress = false;
    streams_.for_each([&](Stream& stream) { has_progress = step(stream) || has_progress; });
    // A wait refers to work that was enqueued before it, so some stream can always go on.
    CPVERIFY_CHECK(has_progress);
  }
}

void Streams::drain(const Stream& stream) {
  run_until([&stream] { return stream.queue.empty(); });
}

bool Streams::is_idle(const Context& context) const {
  bool is_idle = true;
  streams_.for_each([&](const Stream& stream) {
    if (stream.context == &context && !stream.queue.empty()) is_idle = false;
  });
  return is_idle;
}

void Streams::drain(const Context& context) {
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
  drain(*streams_.find(handle));
  streams_.erase(handle);
}

void Streams::remove_all(const Context& context) {
  drain(context);
  streams_.erase_if([&context](const Stream& stream) {
    return stream.context == &context && !stream.is_default;
  });
}

}  // namespace cpverify::sim
