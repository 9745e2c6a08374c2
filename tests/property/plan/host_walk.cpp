#include "property/plan/host_walk.hpp"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "cpverify/dtype.hpp"
#include "cpverify/ids.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/step.hpp"
#include "property/plan/key_partials.hpp"

namespace cpverify::test {
namespace {

constexpr std::int64_t kUnwritten = -1;
/// The fill of LSEs: -inf.
constexpr std::int64_t kEmptyLse = 0xff800000;
constexpr std::size_t kMaxComplaints = 10;

/// Origin of element `element` of a token's row: unique over everything in a problem.
std::int64_t origin(TensorKind tensor, const TokenOrigin& token, std::int64_t element) {
  return ((static_cast<std::int64_t>(tensor) + 1) << 56) + (token.request << 40) +
         (token.position << 16) + element;
}

/// The token of such a cell, or nothing when it is another kind of cell.
std::optional<TokenOrigin> token_of(TensorKind tensor, std::int64_t cell) {
  if (cell >> 56 != static_cast<std::int64_t>(tensor) + 1) return std::nullopt;
  return TokenOrigin{(cell >> 40) & 0xffff, (cell >> 16) & 0xffffff};
}

std::vector<TokenOrigin> flattened(const Step& step) {
  std::vector<TokenOrigin> tokens;
  for (const StepRow& row : step.rows) {
    for (std::int64_t i = 0; i < row.scheduled; ++i) {
      tokens.push_back({row.request.value(), row.computed + i});
    }
  }
  return tokens;
}

template <class T>
T argument(const Launch& launch, std::size_t index) {
  return std::get<T>(launch.arguments.at(index));
}

}  // namespace

HostWalk::HostWalk(const Problem& problem) : problem_{problem} {}

void HostWalk::complain(std::string text) {
  if (complaints_.size() < kMaxComplaints) {
    complaints_.push_back(std::move(text));
  }
}

HostWalk::Cell HostWalk::load(const RankPlan& plan, const Rank& rank, BufferRef ref,
                              std::int64_t offset) {
  const Cells& cells = rank.at(ref.buffer.value());
  const std::int64_t place = ref.offset_elems + offset;
  const std::string& name = plan.buffers.at(ref.buffer.value()).name;
  if (place < 0 || place >= static_cast<std::int64_t>(cells.size())) {
    complain(fmt::format("rank {} reads {}[{}]", plan.rank.value(), name, place));
    return 0;
  }
  const Cell value = cells[static_cast<std::size_t>(place)];
  if (value == kUnwritten && plan.buffers[ref.buffer.value()].role != BufferRole::metadata) {
    complain(fmt::format("rank {} reads unwritten {}[{}]", plan.rank.value(), name, place));
  }
  return value;
}

void HostWalk::store(const RankPlan& plan, Rank& rank, BufferRef ref, std::int64_t offset,
                     Cell value) {
  Cells& cells = rank.at(ref.buffer.value());
  const std::int64_t place = ref.offset_elems + offset;
  if (place < 0 || place >= static_cast<std::int64_t>(cells.size())) {
    complain(fmt::format("rank {} writes {}[{}]", plan.rank.value(),
                         plan.buffers.at(ref.buffer.value()).name, place));
    return;
  }
  cells[static_cast<std::size_t>(place)] = value;
}

void HostWalk::prepare(const RankPlan& plan, const Step& step, Rank& rank) {
  const std::vector<TokenOrigin> tokens = flattened(step);
  std::size_t pool = 0;
  for (const Buffer& buffer : plan.buffers) {
    const auto size = static_cast<std::size_t>(buffer.size_elems());
    Cells cells(size, kUnwritten);
    if (buffer.role == BufferRole::metadata) {
      cells = buffer.values;
    } else if (buffer.role == BufferRole::kv_pool) {
      cells = pools_.at(plan.rank.value()).at(pool++);
    } else if (buffer.role == BufferRole::input) {
      const std::int64_t dim = buffer.shape.back();
      const std::int64_t row_elems = buffer.input->heads.count * dim;
      std::fill(cells.begin(), cells.end(), 0);
      for (std::size_t i = 0; i < tokens.size() * static_cast<std::size_t>(row_elems); ++i) {
        const auto elem = static_cast<std::int64_t>(i);
        cells.at(i) =
            origin(buffer.input->tensor, tokens[static_cast<std::size_t>(elem / row_elems)],
                   buffer.input->heads.first * dim + elem % row_elems);
      }
    }
    rank.push_back(std::move(cells));
  }
}

void HostWalk::gather_rows(const RankPlan& plan, const Launch& launch, Rank& rank) {
  const auto source = argument<BufferRef>(launch, 0);
  const auto index = argument<BufferRef>(launch, 1);
  const auto target = argument<BufferRef>(launch, 2);
  const auto elem = static_cast<std::int64_t>(size_bytes(problem_.scenario.model.dtype));
  const std::int64_t row_elems = argument<std::int32_t>(launch, 4) / elem;
  for (std::int64_t i = 0; i < argument<std::int32_t>(launch, 3); ++i) {
    const std::int64_t row = load(plan, rank, index, i);
    for (std::int64_t j = 0; j < row_elems; ++j) {
      const std::int64_t from = row * (argument<std::int64_t>(launch, 5) / elem) + j;
      const std::int64_t to = i * (argument<std::int64_t>(launch, 6) / elem) + j;
      store(plan, rank, target, to, row < 0 ? 0 : load(plan, rank, source, from));
    }
  }
}

void HostWalk::kv_write(const RankPlan& plan, const Launch& launch, Rank& rank) {
  const auto elem = static_cast<std::int64_t>(size_bytes(problem_.scenario.model.dtype));
  const std::int64_t row_elems = argument<std::int32_t>(launch, 6) / elem;
  const std::int64_t stride = argument<std::int64_t>(launch, 7) / elem;
  for (std::int64_t i = 0; i < argument<std::int32_t>(launch, 5); ++i) {
    const std::int64_t slot = load(plan, rank, argument<BufferRef>(launch, 2), i);
    for (std::int64_t j = 0; slot >= 0 && j < row_elems; ++j) {
      store(plan, rank, argument<BufferRef>(launch, 3), slot * row_elems + j,
            load(plan, rank, argument<BufferRef>(launch, 0), i * stride + j));
      store(plan, rank, argument<BufferRef>(launch, 4), slot * row_elems + j,
            load(plan, rank, argument<BufferRef>(launch, 1), i * stride + j));
    }
  }
}

std::optional<TokenOrigin> HostWalk::query_of(const RankPlan& plan, const Launch& launch,
                                              const Rank& rank, std::int64_t row) {
  const std::int64_t dim = problem_.scenario.model.head_dim;
  const std::int64_t elems = argument<std::int32_t>(launch, 11) * dim;
  const auto q = argument<BufferRef>(launch, 0);
  const Cell first = load(plan, rank, q, row * elems);
  const std::optional<TokenOrigin> token = token_of(TensorKind::q, first);
  for (std::int64_t j = 0; j < elems; ++j) {
    const Cell expected = token ? origin(TensorKind::q, *token, plan.heads_q.first * dim + j) : 0;
    if (load(plan, rank, q, row * elems + j) != expected) {
      complain(fmt::format("rank {} query row {} is none of its heads", plan.rank.value(), row));
      break;
    }
  }
  return token;
}

std::optional<TokenOrigin> HostWalk::key_of(const RankPlan& plan, const Launch& launch,
                                            const Rank& rank, std::int64_t place) {
  const std::int64_t first_elem =
      std::int64_t{plan.heads_kv.first} * problem_.scenario.model.head_dim;
  const Cell k = load(plan, rank, argument<BufferRef>(launch, 1), place);
  const Cell v = load(plan, rank, argument<BufferRef>(launch, 2), place);
  const std::optional<TokenOrigin> token = token_of(TensorKind::k, k);
  const bool is_key = token && k == origin(TensorKind::k, *token, first_elem) &&
                      v == origin(TensorKind::v, *token, first_elem);
  const bool is_pad = k == 0 && v == 0;
  if (!is_key && !is_pad) {
    complain(fmt::format("rank {} key at {} is none of its heads", plan.rank.value(), place));
  }
  return is_key ? token : std::nullopt;
}

void HostWalk::attend_row(const RankPlan& plan, const Launch& launch, Rank& rank, std::int64_t seq,
                          std::int64_t query) {
  const std::int64_t dim = problem_.scenario.model.head_dim;
  const std::int64_t heads = argument<std::int32_t>(launch, 11);
  const std::int64_t kv_elems = argument<std::int32_t>(launch, 12) * dim;
  const std::int64_t block_size = argument<std::int32_t>(launch, 10);
  const auto cu_seqlens_q = argument<BufferRef>(launch, 3);
  const std::int64_t first = load(plan, rank, cu_seqlens_q, seq);
  const std::int64_t seqlen_q = load(plan, rank, cu_seqlens_q, seq + 1) - first;
  const std::int64_t kv_len = load(plan, rank, argument<BufferRef>(launch, 4), seq);
  const bool is_causal = argument<std::int32_t>(launch, 14) != 0;
  const std::int64_t visible = is_causal ? kv_len - seqlen_q + query + 1 : kv_len;

  KeyPartial partial;
  partial.query = query_of(plan, launch, rank, first + query);
  for (std::int64_t key = 0; key < visible; ++key) {
    const std::int64_t page = load(plan, rank, argument<BufferRef>(launch, 5),
                                   seq * argument<std::int32_t>(launch, 9) + key / block_size);
    ++partial.keys[key_of(plan, launch, rank, (page * block_size + key % block_size) * kv_elems)];
  }
  const bool is_empty = partial.keys.empty();
  const std::int64_t number = partials_.add(std::move(partial));
  for (std::int64_t j = 0; j < heads * dim; ++j) {
    store(plan, rank, argument<BufferRef>(launch, 6), (first + query) * heads * dim + j,
          is_empty ? 0 : KeyPartials::cell(number, j));
  }
  for (std::int64_t head = 0; head < heads; ++head) {
    store(plan, rank, argument<BufferRef>(launch, 7), (first + query) * heads + head,
          is_empty ? kEmptyLse : KeyPartials::cell(number, head));
  }
}

void HostWalk::check_head_groups(const RankPlan& plan, std::int64_t heads_per_kv_head) {
  const ModelSpec& model = problem_.scenario.model;
  for (std::uint32_t head = 0; head < plan.heads_q.count; ++head) {
    const std::int64_t read = plan.heads_kv.first + head / heads_per_kv_head;
    const std::int64_t wanted =
        (plan.heads_q.first + head) / (model.num_heads_q / model.num_heads_kv);
    if (read != wanted) {
      complain(fmt::format("rank {} reads KV head {} for query head {}", plan.rank.value(), read,
                           plan.heads_q.first + head));
    }
  }
}

void HostWalk::attention(const RankPlan& plan, const Launch& launch, Rank& rank) {
  const std::int64_t queries_per_cta = launch.module == "attention_mma" ? 64 : 4;
  const std::int64_t num_seqs = argument<std::int32_t>(launch, 8);
  if (launch.grid[1] != static_cast<std::uint32_t>(argument<std::int32_t>(launch, 11)) ||
      launch.grid[2] != static_cast<std::uint32_t>(num_seqs)) {
    complain(fmt::format("rank {} has a grid that is not heads by rows", plan.rank.value()));
  }
  check_head_groups(plan, argument<std::int32_t>(launch, 11) / argument<std::int32_t>(launch, 12));
  for (std::int64_t seq = 0; seq < num_seqs; ++seq) {
    const auto cu_seqlens_q = argument<BufferRef>(launch, 3);
    const std::int64_t seqlen_q =
        load(plan, rank, cu_seqlens_q, seq + 1) - load(plan, rank, cu_seqlens_q, seq);
    if (seqlen_q > queries_per_cta * launch.grid[0]) {
      complain(
          fmt::format("rank {} row {} has queries without a thread block", plan.rank.value(), seq));
    }
    for (std::int64_t query = 0; query < seqlen_q; ++query) {
      attend_row(plan, launch, rank, seq, query);
    }
  }
}

void HostWalk::execute(const RankPlan& plan, const Launch& launch, Rank& rank) {
  if (launch.entry == "gather_rows") {
    gather_rows(plan, launch, rank);
  } else if (launch.entry == "kv_write") {
    kv_write(plan, launch, rank);
  } else if (launch.entry.starts_with("merge_states_")) {
    merge_states(plan, launch, rank);
  } else if (launch.entry.starts_with("pack_partial_")) {
    pack_partial(plan, launch, rank);
  } else if (launch.entry.starts_with("merge_packed_")) {
    merge_packed(plan, launch, rank);
  } else {
    attention(plan, launch, rank);
  }
}

void HostWalk::all_gather(const Plan& plan, std::vector<Rank>& ranks) {
  const auto waits_for = [&](std::size_t rank) -> const Collective& {
    return std::get<Collective>(plan.ranks.at(rank).operations.at(next_.at(rank)).body);
  };
  for (const RankPlan& target : plan.ranks) {
    const Collective& received = waits_for(target.rank.value());
    std::int64_t place = 0;
    for (const RankId member : plan.groups.at(received.group).members) {
      const RankPlan& source = plan.ranks.at(member.value());
      const Collective& sent = waits_for(member.value());
      if (sent.count != received.count || sent.meaning != received.meaning ||
          sent.group != received.group) {
        complain(fmt::format("ranks {} and {} disagree on '{}'", target.rank.value(),
                             member.value(), received.meaning));
      }
      for (std::int64_t i = 0; i < sent.count; ++i) {
        store(target, ranks.at(target.rank.value()), received.recv, place++,
              load(source, ranks.at(member.value()), sent.send, i));
      }
    }
  }
}

bool HostWalk::is_result(Cell cell, const TokenOrigin& token, std::int64_t element) const {
  if (!KeyPartials::is_partial(cell) || KeyPartials::element_of(cell) != element) return false;
  const KeyPartial& partial = partials_.of(KeyPartials::partial_of(cell));
  if (partial.query != token) return false;
  for (std::int64_t position = 0; position <= token.position; ++position) {
    const auto found = partial.keys.find(TokenOrigin{token.request, position});
    if (found == partial.keys.end() || found->second != 1) return false;
  }
  return static_cast<std::int64_t>(partial.keys.size()) == token.position + 1;
}

void HostWalk::check_outputs(const Plan& plan, const RankPlan& rank_plan, const Rank& rank) {
  const std::vector<TokenOrigin> tokens = flattened(*step_);
  for (std::size_t id = 0; id < rank_plan.buffers.size(); ++id) {
    const Buffer& buffer = rank_plan.buffers[id];
    if (!buffer.output || buffer.size_elems() == 0) {
      continue;
    }
    const OutputClaim& claim = *buffer.output;
    const bool is_lse = claim.kind == OutputKind::lse;
    const std::int64_t row_elems = buffer.size_elems() / buffer.shape.front();
    const std::int64_t first_elem =
        (claim.heads.first - rank_plan.heads_q.first) * (is_lse ? 1 : buffer.shape.back());
    for (std::int64_t i = 0; i < buffer.size_elems(); ++i) {
      const std::int64_t token = claim.row_tokens.at(static_cast<std::size_t>(i / row_elems));
      const Cell found = rank.at(id).at(static_cast<std::size_t>(i));
      const bool is_right = token < 0 ? found == (is_lse ? kEmptyLse : 0)
                                      : is_result(found, tokens.at(static_cast<std::size_t>(token)),
                                                  first_elem + i % row_elems);
      if (!is_right) {
        complain(fmt::format("step {} rank {}: {}[{}] is not what its row claims", plan.step,
                             rank_plan.rank.value(), buffer.name, i));
      }
    }
  }
}

namespace {

/// Slot in a shard's own pool, by dealing the tokens of the slot's block one by one; or nothing
/// when it is dealt to another shard.
std::optional<std::int64_t> shard_slot(const KvShard& shard, std::int64_t block_tokens,
                                       std::int64_t slot) {
  std::int64_t held = 0;
  for (std::int64_t token = 0; token <= slot % block_tokens; ++token) {
    const bool is_own = token / shard.interleave % shard.count == shard.index;
    if (token == slot % block_tokens && !is_own) return std::nullopt;
    held += is_own ? 1 : 0;
  }
  return slot / block_tokens * (block_tokens / shard.count) + held - 1;
}

}  // namespace

void HostWalk::make_pools(const RankPlan& rank) {
  const std::size_t dim = problem_.scenario.model.head_dim;
  const std::size_t row_elems = rank.heads_kv.count * dim;
  const std::int64_t block_tokens = problem_.block_tokens();
  const auto slots =
      static_cast<std::size_t>(problem_.num_blocks * block_tokens / rank.kv_shard.count);
  std::vector<Cells> pools(2, Cells(slots * row_elems, kUnwritten));
  for (const CachedToken& token : problem_.cached) {
    const std::optional<std::int64_t> slot = shard_slot(rank.kv_shard, block_tokens, token.slot);
    const TokenOrigin from{token.request.value(), token.position};
    for (std::size_t j = 0; slot && j < row_elems; ++j) {
      const std::size_t place = static_cast<std::size_t>(*slot) * row_elems + j;
      const auto elem = static_cast<std::int64_t>(rank.heads_kv.first * dim + j);
      pools[0].at(place) = origin(TensorKind::k, from, elem);
      pools[1].at(place) = origin(TensorKind::v, from, elem);
    }
  }
  pools_.push_back(std::move(pools));
}

void HostWalk::keep_pools(const RankPlan& plan, const Rank& rank) {
  std::size_t pool = 0;
  for (std::size_t id = 0; id < plan.buffers.size(); ++id) {
    if (plan.buffers[id].role == BufferRole::kv_pool) {
      pools_.at(plan.rank.value()).at(pool++) = rank[id];
    }
  }
}

void HostWalk::fill(const RankPlan& plan, const Fill& fill, Rank& rank) {
  const Buffer& buffer = plan.buffers.at(fill.target.buffer.value());
  const std::int64_t elems = fill.count * 4 / static_cast<std::int64_t>(size_bytes(buffer.dtype));
  for (std::int64_t i = 0; i < elems; ++i) {
    store(plan, rank, fill.target, i, fill.pattern);
  }
}

void HostWalk::walk_until_collective(const RankPlan& plan, Rank& rank) {
  std::size_t& next = next_.at(plan.rank.value());
  for (; next < plan.operations.size(); ++next) {
    const Operation& operation = plan.operations[next];
    if (std::holds_alternative<Collective>(operation.body)) return;
    if (const auto* body = std::get_if<Fill>(&operation.body)) {
      fill(plan, *body, rank);
    } else if (const auto* copied = std::get_if<Copy>(&operation.body)) {
      copy(plan, *copied, rank);
    } else {
      execute(plan, std::get<Launch>(operation.body), rank);
    }
  }
}

void HostWalk::run(const Plan& plan) {
  step_ = &problem_.steps.at(plan.step);
  std::vector<Rank> ranks(plan.ranks.size());
  for (std::size_t r = 0; r < plan.ranks.size(); ++r) {
    if (pools_.size() <= r) {
      make_pools(plan.ranks[r]);
    }
    prepare(plan.ranks[r], *step_, ranks[r]);
  }
  next_.assign(ranks.size(), 0);
  while (next_.front() < plan.ranks.front().operations.size()) {
    for (std::size_t r = 0; r < ranks.size(); ++r) walk_until_collective(plan.ranks[r], ranks[r]);
    if (next_.front() == plan.ranks.front().operations.size()) break;
    all_gather(plan, ranks);
    for (std::size_t& next : next_) ++next;
  }
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    check_outputs(plan, plan.ranks[r], ranks[r]);
    keep_pools(plan.ranks[r], ranks[r]);
  }
}

}  // namespace cpverify::test
