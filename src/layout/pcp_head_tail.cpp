#include "layout/pcp_head_tail.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

#include "cpverify/step.hpp"
#include "layout/pcp_batch.hpp"
#include "layout/topology.hpp"

namespace cpverify::layout {
namespace {

using Values = std::vector<std::int64_t>;

std::size_t to_size(std::int64_t value) {
  return static_cast<std::size_t>(value);
}

/// Appends first, first + 1, .. first + count - 1.
void append_run(Values& values, std::int64_t first, std::int64_t count) {
  for (std::int64_t i = 0; i < count; ++i) values.push_back(first + i);
}

/// Calls visit(rank, local row, token) for the rows of all ranks in the order of a gather.
template <class Visit>
void for_each_gathered(const HeadTailBatch& batch, const Visit& visit) {
  for (std::uint32_t rank = 0; rank < batch.pcp_size; ++rank) {
    std::int64_t row = 0;
    for (const PaddedToken& token : padded_tokens(batch, CpRank{rank})) visit(rank, row++, token);
  }
}

}  // namespace

std::int64_t HeadTailBatch::decode_rows() const {
  std::int64_t rows = 0;
  for (const std::size_t decode : decodes) rows += requests[decode].scheduled;
  return rows;
}

std::int64_t HeadTailBatch::half_rows() const {
  std::int64_t rows = 0;
  for (std::size_t prefill = 0; prefill < prefills.size(); ++prefill) rows += chunk(prefill);
  return rows;
}

HeadTailBatch make_head_tail_batch(const Step& step, std::uint32_t pcp_size) {
  HeadTailBatch batch;
  batch.requests = pcp_requests(step);
  batch.pcp_size = pcp_size;
  for (std::size_t request = 0; request < batch.requests.size(); ++request) {
    const bool is_decode = batch.requests[request].is_decode;
    (is_decode ? batch.decodes : batch.prefills).push_back(request);
  }
  return batch;
}

std::int64_t chunk_of(const HeadTailBatch& batch, CpRank rank, Half half) {
  const std::int64_t head = rank.value();
  return half == Half::head ? head : 2 * std::int64_t{batch.pcp_size} - 1 - head;
}

std::vector<PaddedToken> padded_tokens(const HeadTailBatch& batch, CpRank rank) {
  std::vector<PaddedToken> tokens;
  std::int64_t first_padded = 0;  // Of the request at hand.
  for (const std::size_t request : batch.decodes) {
    const std::int64_t count = batch.requests[request].scheduled;
    for (std::int64_t i = 0; i < count; ++i) {
      tokens.push_back({request, i, false, first_padded + rank.value() * count + i});
    }
    first_padded += batch.pcp_size * count;
  }
  for (std::size_t prefill = 0; prefill < batch.prefills.size(); ++prefill) {
    const std::size_t request = batch.prefills[prefill];
    const std::int64_t size = batch.chunk(prefill);
    for (const Half half : {Half::head, Half::tail}) {
      const std::int64_t first = chunk_of(batch, rank, half) * size;
      for (std::int64_t offset = first; offset < first + size; ++offset) {
        const bool is_pad = offset >= batch.requests[request].scheduled;
        tokens.push_back({request, offset, is_pad, first_padded + offset});
      }
    }
    first_padded += 2 * std::int64_t{batch.pcp_size} * size;
  }
  return tokens;
}

std::vector<std::int64_t> padded_local_tokens(const HeadTailBatch& batch, CpRank rank) {
  Values result;
  for (const PaddedToken& token : padded_tokens(batch, rank)) {
    result.push_back(token.is_pad ? -1 : batch.requests[token.request].first_token + token.offset);
  }
  return result;
}

std::vector<std::int64_t> restore_index(const HeadTailBatch& batch) {
  const std::int64_t local = batch.local_rows();
  Values index(to_size(batch.pcp_size * local), -1);
  for_each_gathered(batch, [&](std::uint32_t rank, std::int64_t row, const PaddedToken& token) {
    index.at(to_size(token.padded)) = rank * local + row;
  });
  return index;
}

std::vector<std::int64_t> prefill_restore_index(const HeadTailBatch& batch) {
  const std::int64_t decodes = batch.decode_rows();
  Values index(to_size(batch.padded_prefill_rows()), -1);
  for_each_gathered(batch, [&](std::uint32_t rank, std::int64_t row, const PaddedToken& token) {
    if (row < decodes) return;
    index.at(to_size(token.padded - batch.padded_decode_rows())) =
        2 * batch.half_rows() * rank + row - decodes;
  });
  return index;
}

std::vector<std::int64_t> unpad_mask(const HeadTailBatch& batch) {
  Values mask(to_size(batch.pcp_size * batch.local_rows()), 0);
  for (std::int64_t row = 0; row < batch.padded_decode_rows(); row += batch.pcp_size) {
    mask[to_size(row)] = 1;
  }
  for_each_gathered(batch, [&](std::uint32_t, std::int64_t, const PaddedToken& token) {
    if (token.padded >= batch.padded_decode_rows() && !token.is_pad) {
      mask.at(to_size(token.padded)) = 1;
    }
  });
  return mask;
}

std::vector<std::int64_t> unpad_index(const HeadTailBatch& batch) {
  std::int64_t num_tokens = 0;
  for (const PcpRequest& request : batch.requests) num_tokens += request.scheduled;
  Values index(to_size(num_tokens), -1);
  for_each_gathered(batch, [&](std::uint32_t rank, std::int64_t, const PaddedToken& token) {
    const PcpRequest& request = batch.requests[token.request];
    const bool is_other_replica = request.is_decode && rank > 0;
    if (token.is_pad || is_other_replica) return;
    index.at(to_size(request.first_token + token.offset)) = token.padded;
  });
  return index;
}

std::vector<std::int64_t> head_tail_index(const HeadTailBatch& batch) {
  Values index;
  append_run(index, 0, batch.decode_rows());
  for (const Half half : {Half::head, Half::tail}) {
    std::int64_t first = batch.decode_rows();
    for (std::size_t prefill = 0; prefill < batch.prefills.size(); ++prefill) {
      const std::int64_t size = batch.chunk(prefill);
      append_run(index, half == Half::head ? first : first + size, size);
      first += 2 * size;
    }
  }
  return index;
}

std::vector<std::int64_t> full_index(const HeadTailBatch& batch) {
  const Values order = head_tail_index(batch);
  Values index(order.size(), -1);
  for (std::size_t row = 0; row < order.size(); ++row) {
    index.at(to_size(order[row])) = static_cast<std::int64_t>(row);
  }
  return index;
}

}  // namespace cpverify::layout
