#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "cpverify/error.hpp"
#include "cpverify/ids.hpp"
#include "cpverify/scenario.hpp"
#include "scenario/schema.hpp"
#include "scenario/sections.hpp"
#include "scenario/trace.hpp"
#include "scenario/yaml_value.hpp"
#include "support/nearest.hpp"

namespace cpverify::scenario {
namespace {

constexpr std::string_view kWhyTokens =
    " tokens: every one is simulated and checked, so a scenario has at most 2^20 in all";

std::int64_t tokens_or_zero(const Map& map, std::string_view key) {
  const std::optional<Value> value = map.find(key);
  return value ? value->whole_number({0, kMaxTokens, kWhyTokens}) : 0;
}

std::vector<std::string> ids_of(const std::vector<RequestSpec>& requests) {
  std::vector<std::string> ids;
  ids.reserve(requests.size());
  for (const RequestSpec& request : requests) ids.push_back(request.id);
  return ids;
}

/// The request of that id among those listed before; the only ones that may share a prefix, which
/// keeps sharing free of cycles.
RequestId earlier_request(const Value& value, const std::string& own_id,
                          const std::vector<RequestSpec>& earlier) {
  const std::string id = value.identifier();
  for (std::size_t i = 0; i < earlier.size(); ++i) {
    if (earlier[i].id == id) return RequestId{static_cast<std::uint32_t>(i)};
  }
  if (id == own_id) value.fail(fmt::format("request '{}' shares a prefix with itself", id));
  value.fail(fmt::format("shared_prefix names '{}', which is not a request listed before '{}'{}",
                         id, own_id, did_you_mean(id, ids_of(earlier))));
}

SharedPrefix read_shared_prefix(const Value& value, const RequestSpec& request,
                                const std::vector<RequestSpec>& earlier) {
  const Map map{value, Section::shared_prefix};
  SharedPrefix shared;
  shared.request = earlier_request(map.require("request"), request.id, earlier);
  const Value tokens = map.require("tokens");
  shared.tokens = tokens.whole_number({1, kMaxTokens, kWhyTokens});
  if (request.cached_prefix > 0) {
    value.fail(
        "a request has either cached_prefix or shared_prefix: cached tokens sit in blocks of its "
        "own");
  }
  if (shared.tokens > request.prompt) {
    tokens.fail(fmt::format("'tokens' is {}, more than the prompt of '{}', {}", shared.tokens,
                            request.id, request.prompt));
  }
  const RequestSpec& other = earlier[shared.request.value()];
  if (shared.tokens > other.total_tokens()) {
    tokens.fail(fmt::format("'tokens' is {}, more than all tokens of '{}', {}", shared.tokens,
                            other.id, other.total_tokens()));
  }
  return shared;
}

std::string new_id(const Value& value, const std::vector<RequestSpec>& earlier) {
  std::string id = value.identifier();
  for (const RequestSpec& other : earlier) {
    if (other.id == id) value.fail(fmt::format("request id '{}' is used twice", id));
  }
  return id;
}

RequestSpec read_request(const Value& value, const std::vector<RequestSpec>& earlier) {
  const Map map{value, Section::request};
  RequestSpec request;
  request.where = map.where();
  request.id = new_id(map.require("id"), earlier);
  request.cached_prefix = tokens_or_zero(map, "cached_prefix");
  const Value prompt = map.require("prompt");
  request.prompt = prompt.whole_number({0, kMaxTokens, kWhyTokens});
  request.decode = tokens_or_zero(map, "decode");
  const std::optional<Value> arrival_step = map.find("arrival_step");
  if (arrival_step) request.arrival_step = arrival_step->whole_number({0, kMaxArrivalStep});
  if (request.cached_prefix + request.prompt == 0) {
    prompt.fail("'prompt' is 0; expected at least 1 token, or a cached_prefix to decode from");
  }
  if (request.prompt + request.decode == 0) {
    prompt.fail("'prompt' and 'decode' are 0; expected at least 1 token to compute");
  }
  const std::optional<Value> shared_prefix = map.find("shared_prefix");
  if (shared_prefix) request.shared_prefix = read_shared_prefix(*shared_prefix, request, earlier);
  return request;
}

std::vector<RequestSpec> read_request_list(const Value& value) {
  const std::vector<Value> entries = value.list();
  if (entries.size() > static_cast<std::size_t>(kMaxRequests)) {
    value.fail(fmt::format("'requests' has {} entries; expected at most {}", entries.size(),
                           kMaxRequests));
  }
  std::vector<RequestSpec> requests;
  for (const Value& entry : entries) {
    RequestSpec request = read_request(entry, requests);
    requests.push_back(std::move(request));
  }
  return requests;
}

TraceSpec read_trace_spec(const Value& value, const std::filesystem::path& scenario_path) {
  const Map map{value, Section::trace};
  TraceSpec trace;
  const Value file = map.require("file");
  trace.where = file.where();
  trace.path = scenario_path.parent_path() / file.text();
  const std::optional<Value> first = map.find("first");
  if (first) trace.first = first->whole_number({0, kMaxTraceLines});
  const std::optional<Value> requests = map.find("requests");
  trace.requests = requests ? requests->whole_number({1, kMaxRequests}) : kMaxRequests;
  const Value scale = map.require("scale");
  const std::optional<Fraction> fraction = parse_fraction(scale.text());
  if (!fraction) {
    scale.fail(
        fmt::format("'scale' is {}; expected a fraction like 1/256, of whole numbers from 1 "
                    "to {}",
                    in_quotes(scale.text()), kMaxFractionTerm));
  }
  trace.scale = *fraction;
  const std::optional<Value> step = map.find("milliseconds_per_step");
  if (step) trace.milliseconds_per_step = step->whole_number({1, 1'000'000'000});
  const std::optional<Value> block = map.find("hash_block_tokens");
  if (block) trace.hash_block_tokens = block->whole_number({1, kMaxTokens});
  return trace;
}

}  // namespace

void read_requests(const Map& file, Scenario& scenario) {
  const std::optional<Value> requests = file.find("requests");
  const std::optional<Value> trace = file.find("trace");
  if (requests && trace) {
    trace->fail("a scenario has either 'requests' or 'trace'; the other was given before");
  }
  if (trace) {
    scenario.requests = import_trace(read_trace_spec(*trace, scenario.path));
  } else if (requests) {
    scenario.requests = read_request_list(*requests);
  } else {
    throw InputError{file.where(), "missing key 'requests' (or 'trace') in 'scenario'"};
  }
  check_total_size(scenario);
}

void check_total_size(const Scenario& scenario) {
  const std::int64_t values_per_token =
      (std::int64_t{scenario.model.num_heads_q} + 2 * std::int64_t{scenario.model.num_heads_kv}) *
      std::int64_t{scenario.model.head_dim};
  std::int64_t tokens = 0;
  for (const RequestSpec& request : scenario.requests) {
    tokens += request.total_tokens();
    if (tokens > kMaxTokens) {
      throw InputError{request.where,
                       fmt::format("the requests up to '{}' have {} tokens; expected at most {}{}",
                                   request.id, tokens, kMaxTokens, kWhyTokens)};
    }
    if (tokens * values_per_token > kMaxDataValues) {
      throw InputError{request.where,
                       fmt::format("the requests up to '{}' have {} values of q, k and v; expected "
                                   "at most {}, which fit into memory",
                                   request.id, tokens * values_per_token, kMaxDataValues)};
    }
  }
}

void read_scheduler(const Map& file, Scenario& scenario) {
  const std::optional<Value> value = file.find("scheduler");
  if (!value) return;
  const Map map{*value, Section::scheduler};
  scenario.scheduler.max_batched_tokens =
      map.require("max_batched_tokens")
          .whole_number({1, kMaxTokens, " tokens; leave the key out for no limit"});
}

}  // namespace cpverify::scenario
