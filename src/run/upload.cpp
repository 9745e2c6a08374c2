#include "run/upload.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "cpverify/data.hpp"
#include "cpverify/dtype.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/step.hpp"
#include "layout/kv_shard.hpp"
#include "support/check.hpp"
#include "support/rng.hpp"

namespace cpverify::run {
namespace {

const HostRows& tensor_rows(const RequestData& data, TensorKind tensor) {
  switch (tensor) {
    case TensorKind::q:
      return data.q;
    case TensorKind::k:
      return data.k;
    case TensorKind::v:
      return data.v;
    case TensorKind::sinks:
      break;
  }
  CPVERIFY_CHECK(false);
  return data.q;
}

/// Copies heads [first, first + count) of one token's row.
void copy_heads(std::byte* target, const HostRows& rows, std::int64_t position, HeadRange heads,
                std::size_t head_bytes) {
  const auto row = static_cast<std::size_t>(position);
  CPVERIFY_CHECK((row + 1) * rows.row_bytes <= rows.bytes.size());
  CPVERIFY_CHECK((heads.first + heads.count) * head_bytes <= rows.row_bytes);
  std::memcpy(target, rows.row(row) + heads.first * head_bytes, heads.count * head_bytes);
}

/// Positive finite numbers below 1 in every float type, different at every offset, so that a moved
/// or overwritten byte shows and arithmetic on one stays harmless.
std::vector<std::byte> canary_bytes(std::size_t size_bytes) {
  constexpr std::uint64_t kBelowOne = 0x3f3f3f3f3f3f3f3fULL;
  std::vector<std::byte> bytes(size_bytes);
  for (std::size_t offset = 0; offset < size_bytes; offset += sizeof(std::uint64_t)) {
    const std::uint64_t word = mix64(offset) & kBelowOne;
    std::memcpy(bytes.data() + offset, &word, std::min(sizeof word, size_bytes - offset));
  }
  return bytes;
}

}  // namespace

std::vector<std::byte> metadata_bytes(const Buffer& buffer) {
  CPVERIFY_CHECK(buffer.role == BufferRole::metadata);
  const std::size_t element = size_bytes(buffer.dtype);
  // A defective plan may name fewer elements than it lists, or more; the rest stays zero.
  std::vector<std::byte> bytes(static_cast<std::size_t>(buffer.size_elems()) * element);
  const std::size_t count = std::min(buffer.values.size(), bytes.size() / element);
  for (std::size_t i = 0; i < count; ++i) {
    std::memcpy(bytes.data() + i * element, &buffer.values[i], element);
  }
  return bytes;
}

std::vector<std::byte> input_bytes(const Buffer& buffer, const Step& step,
                                   const std::vector<RequestData>& data, std::byte pad) {
  CPVERIFY_CHECK(buffer.input.has_value());
  const InputSlice slice = *buffer.input;
  const auto rows = static_cast<std::size_t>(buffer.shape.at(0));
  const auto head_bytes = static_cast<std::size_t>(buffer.shape.at(2)) * size_bytes(buffer.dtype);
  const std::size_t row_bytes = slice.heads.count * head_bytes;
  std::vector<std::byte> bytes(rows * row_bytes, pad);
  std::size_t row = 0;
  for (const StepRow& entry : step.rows) {
    const HostRows& source = tensor_rows(data.at(entry.request.value()), slice.tensor);
    for (std::int64_t i = 0; i < entry.scheduled && row < rows; ++i, ++row) {
      copy_heads(bytes.data() + row * row_bytes, source, entry.computed + i, slice.heads,
                 head_bytes);
    }
  }
  return bytes;
}

std::vector<std::byte> sink_bytes(const Buffer& buffer, const std::vector<float>& logits) {
  CPVERIFY_CHECK(buffer.input && buffer.input->tensor == TensorKind::sinks);
  const HeadRange heads = buffer.input->heads;
  CPVERIFY_CHECK(std::size_t{heads.first} + heads.count <= logits.size());
  std::vector<std::byte> bytes(heads.count * sizeof(float));
  std::memcpy(bytes.data(), logits.data() + heads.first, bytes.size());
  return bytes;
}

std::vector<std::byte> initial_pool_bytes(const Buffer& buffer, const PoolContent& content,
                                          const Problem& problem,
                                          const std::vector<RequestData>& data) {
  const std::size_t element = size_bytes(buffer.dtype);
  const std::size_t total = static_cast<std::size_t>(buffer.size_elems()) * element;
  std::vector<std::byte> bytes = content.is_poisoned
                                     ? std::vector<std::byte>(total, std::byte{kNanByte})
                                     : canary_bytes(total);
  const auto head_bytes = static_cast<std::size_t>(buffer.shape.at(3)) * element;
  const std::size_t row_bytes = content.heads.count * head_bytes;
  for (const CachedToken& token : problem.cached) {
    const auto slot = layout::local_slot(content.shard, problem.block_tokens(), token.slot);
    if (!slot) continue;
    const std::size_t offset = static_cast<std::size_t>(*slot) * row_bytes;
    CPVERIFY_CHECK(offset + row_bytes <= total);
    copy_heads(bytes.data() + offset, tensor_rows(data.at(token.request.value()), content.tensor),
               token.position, content.heads, head_bytes);
  }
  return bytes;
}

}  // namespace cpverify::run
