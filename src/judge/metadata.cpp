#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cpverify/finding.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "judge/checks.hpp"
#include "judge/finding_log.hpp"
#include "judge/judge.hpp"
#include "reference/integer_oracle.hpp"

namespace cpverify::judge {
namespace {

using reference::RankIntegers;

std::string shape_text(const std::vector<std::int64_t>& shape) {
  return fmt::format("[{}]", fmt::join(shape, ", "));
}

/// Number of row `index` of the step when an array is laid out by request, by its name.
std::optional<std::size_t> request_row(std::string_view buffer, std::size_t index, std::size_t size,
                                       std::size_t num_rows) {
  if (num_rows == 0) return std::nullopt;
  // A rank's pieces are those of all rows, once or twice.
  if (buffer.starts_with("kv_lens")) return index % num_rows;
  // Element b + 1 of a prefix sum is the first to contain row b.
  if (buffer.starts_with("cu_seqlens")) return index == 0 ? 0 : (index - 1) % num_rows;
  if (buffer == "block_table" || buffer == "piece_order") {
    const std::size_t per_row = size / num_rows;
    return per_row == 0 ? std::nullopt : std::optional{index / per_row};
  }
  return std::nullopt;
}

class MetadataComparison {
 public:
  MetadataComparison(const Problem& problem, const Plan& plan, DataMode mode)
      : problem_{problem}, plan_{plan}, log_{Check::metadata, plan.strategy, mode} {}

  void compare() {
    const std::vector<RankIntegers> expected =
        reference::expected_integers(problem_, plan_.step, plan_.strategy);
    if (!compare_ranks(expected)) return;
    for (std::size_t r = 0; r < plan_.ranks.size(); ++r) compare_rank(plan_.ranks[r], expected[r]);
  }

  [[nodiscard]] const FindingLog& log() const noexcept { return log_; }
  [[nodiscard]] std::uint64_t compared() const noexcept { return compared_; }

 private:
  /// False when nothing else of the step can be compared.
  bool compare_ranks(const std::vector<RankIntegers>& expected) {
    ++compared_;
    if (expected.size() != plan_.ranks.size()) {
      note("rank_count_mismatch", nullptr, {},
           fmt::format("found {} ranks, expected {}", plan_.ranks.size(), expected.size()));
      return false;
    }
    if (expected.empty() || expected.front().is_cp_on == plan_.is_cp_on) return true;
    note("cp_on_mismatch", nullptr, {},
         fmt::format("CP: found {}, expected {}", plan_.is_cp_on ? "on" : "off",
                     plan_.is_cp_on ? "off" : "on"));
    return false;
  }

  void compare_rank(const RankPlan& rank, const RankIntegers& expected) {
    std::map<std::string, const Buffer*> buffers;
    for (const Buffer& buffer : rank.buffers) {
      if (!buffers.emplace(buffer.name, &buffer).second)
        note("metadata_extra", &rank, buffer.name, "second buffer of this name");
    }
    compare_heads(rank);
    if (problem_.scenario.model.has_sinks) static_cast<void>(find(rank, buffers, "sinks"));
    for (const auto& [name, shape] : expected.shapes) {
      if (const Buffer* buffer = find(rank, buffers, name)) compare_shape(rank, *buffer, shape);
    }
    for (const auto& [name, values] : expected.arrays) {
      const Buffer* buffer = find(rank, buffers, name);
      if (buffer == nullptr) continue;
      const auto rows = expected.value_rows.find(name);
      value_rows_ = rows == expected.value_rows.end() ? nullptr : &rows->second;
      compare_values(rank, *buffer, values);
    }
    for (const Buffer& buffer : rank.buffers) compare_by_role(rank, buffer, expected);
  }

  const Buffer* find(const RankPlan& rank, const std::map<std::string, const Buffer*>& buffers,
                     const std::string& name) {
    const auto found = buffers.find(name);
    if (found != buffers.end()) return found->second;
    note("metadata_missing", &rank, name, "the plan has no buffer of this name");
    return nullptr;
  }

  void compare_heads(const RankPlan& rank) {
    compare_head_range(rank, {}, rank.heads_q, query_heads(problem_.scenario, rank.rank));
    compare_head_range(rank, {}, rank.heads_kv, kv_heads(problem_.scenario, rank.rank));
    // Pools that have the rank's heads are wrong where those are.
    const HeadRange pool = pool_heads(problem_.scenario, plan_.strategy, rank.rank);
    const bool has_other = pool.count != kv_heads(problem_.scenario, rank.rank).count;
    if (!has_other && !rank.pool_heads) return;
    compare_head_range(rank, "k_pool", rank.pool_heads.value_or(rank.heads_kv), pool);
  }

  void compare_head_range(const RankPlan& rank, const std::string& buffer, HeadRange found,
                          HeadRange expected) {
    ++compared_;
    if (found.first == expected.first && found.count == expected.count) return;
    note("head_range_mismatch", &rank, buffer,
         fmt::format("found heads [{}, +{}), expected [{}, +{})", found.first, found.count,
                     expected.first, expected.count));
  }

  void compare_shape(const RankPlan& rank, const Buffer& buffer,
                     const std::vector<std::int64_t>& expected) {
    compared_ += expected.size();
    if (buffer.shape == expected) return;
    note(
        "metadata_shape_mismatch", &rank, buffer.name,
        fmt::format("found shape {}, expected {}", shape_text(buffer.shape), shape_text(expected)));
  }

  void compare_values(const RankPlan& rank, const Buffer& buffer,
                      const std::vector<std::int64_t>& expected) {
    if (buffer.values.size() != expected.size()) {
      note("metadata_shape_mismatch", &rank, buffer.name,
           fmt::format("found {} values, expected {}", buffer.values.size(), expected.size()));
      return;
    }
    compared_ += expected.size();
    for (std::size_t i = 0; i < expected.size(); ++i) {
      if (buffer.values[i] == expected[i]) continue;
      Finding* finding = log_.note({.kind = "metadata_mismatch",
                                    .step = plan_.step,
                                    .rank = rank.rank,
                                    .buffer = buffer.name,
                                    .request = std::string{}});
      if (finding == nullptr) continue;
      finding->element = static_cast<std::int64_t>(i);
      finding->detail = fmt::format("{}[{}]: found {}, expected {}", buffer.name, i,
                                    buffer.values[i], expected[i]);
      name_owner(*finding, buffer.name, i, expected.size());
    }
  }

  /// Adds the request, and for arrays by token the position, that element `index` is about. Not
  /// part of the group: one array is wrong once.
  void name_owner(Finding& finding, std::string_view buffer, std::size_t index,
                  std::size_t size) const {
    const std::vector<StepRow>& rows = problem_.steps[plan_.step].rows;
    const auto set_request = [&](std::size_t row) {
      if (row >= rows.size()) return;
      finding.request = problem_.scenario.requests[rows[row].request.value()].id;
    };
    if (value_rows_ != nullptr) {
      // Of a prefix sum, element i + 1 is the first to contain what value i is about.
      const std::size_t ahead = size - value_rows_->size();
      const std::size_t place = index < ahead ? 0 : index - ahead;
      if (place < value_rows_->size()) set_request((*value_rows_)[place]);
      return;
    }
    if (const auto row = request_row(buffer, index, size, rows.size())) set_request(*row);
    if (buffer != "slot_mapping" && buffer != "reorder_index") return;
    auto token = static_cast<std::int64_t>(index);
    for (std::size_t row = 0; row < rows.size(); ++row) {
      if (token < rows[row].scheduled) {
        set_request(row);
        finding.token = rows[row].computed + token;
        return;
      }
      token -= rows[row].scheduled;
    }
  }

  void compare_by_role(const RankPlan& rank, const Buffer& buffer, const RankIntegers& expected) {
    switch (buffer.role) {
      case BufferRole::metadata:
        if (expected.arrays.count(buffer.name) == 0)
          note("metadata_extra", &rank, buffer.name, "the strategy has no such array in this step");
        break;
      case BufferRole::input:
        compare_input(rank, buffer, expected);
        break;
      case BufferRole::kv_pool:
        if (expected.shapes.count(buffer.name) == 0)
          note("metadata_extra", &rank, buffer.name, "the strategy has no such pool");
        break;
      case BufferRole::output:
        if (buffer.output) compare_claim(rank, buffer, expected);
        break;
      case BufferRole::workspace:
        break;
    }
  }

  void compare_input(const RankPlan& rank, const Buffer& buffer, const RankIntegers& expected) {
    if (!buffer.input) return;
    if (buffer.input->tensor == TensorKind::sinks) {
      const HeadRange expected_heads = sink_heads(problem_.scenario, plan_.strategy, rank.rank);
      compare_head_range(rank, buffer.name, buffer.input->heads, expected_heads);
      compare_shape(rank, buffer, {static_cast<std::int64_t>(expected_heads.count)});
      return;
    }
    const HeadRange heads = buffer.input->tensor == TensorKind::q
                                ? query_heads(problem_.scenario, rank.rank)
                                : kv_heads(problem_.scenario, rank.rank);
    compare_head_range(rank, buffer.name, buffer.input->heads, heads);
    const auto slots = expected.arrays.find("slot_mapping");
    if (slots == expected.arrays.end()) return;
    compare_shape(rank, buffer,
                  {static_cast<std::int64_t>(slots->second.size()), heads.count,
                   problem_.scenario.model.head_dim});
  }

  /// `out` holds all tokens in flattened order; other outputs hold the rank's local rows.
  void compare_claim(const RankPlan& rank, const Buffer& buffer, const RankIntegers& expected) {
    const OutputClaim& claim = *buffer.output;
    if (const auto other = expected.claims.find(buffer.name); other != expected.claims.end()) {
      compare_head_range(rank, buffer.name, claim.heads,
                         {.first = static_cast<std::uint32_t>(other->second.first_head),
                          .count = static_cast<std::uint32_t>(other->second.num_heads)});
      compare_row_tokens(rank, buffer, other->second.row_tokens);
      return;
    }
    compare_head_range(rank, buffer.name, claim.heads, query_heads(problem_.scenario, rank.rank));
    std::vector<std::int64_t> rows = expected.row_tokens;
    if (buffer.name == "out") {
      const std::int64_t tokens = problem_.steps[plan_.step].num_tokens();
      const auto slots = expected.arrays.find("slot_mapping");
      rows.assign(
          slots == expected.arrays.end() ? static_cast<std::size_t>(tokens) : slots->second.size(),
          -1);
      for (std::size_t i = 0; i < rows.size(); ++i) {
        if (static_cast<std::int64_t>(i) < tokens) rows[i] = static_cast<std::int64_t>(i);
      }
    }
    compare_row_tokens(rank, buffer, rows);
  }

  void compare_row_tokens(const RankPlan& rank, const Buffer& buffer,
                          const std::vector<std::int64_t>& expected) {
    const std::vector<std::int64_t>& found = buffer.output->row_tokens;
    compared_ += expected.size();
    if (found.size() != expected.size()) {
      note("row_tokens_mismatch", &rank, buffer.name,
           fmt::format("found {} rows, expected {}", found.size(), expected.size()));
      return;
    }
    const auto [bad, want] = std::mismatch(found.begin(), found.end(), expected.begin());
    if (bad == found.end()) return;
    const auto row = bad - found.begin();
    Finding* finding = log_.note({.kind = "row_tokens_mismatch",
                                  .step = plan_.step,
                                  .rank = rank.rank,
                                  .buffer = buffer.name,
                                  .request = std::string{}});
    if (finding == nullptr) return;
    finding->element = row;
    finding->detail = fmt::format("row {}: found token {}, expected {}", row, *bad, *want);
  }

  void note(const std::string& kind, const RankPlan* rank, const std::string& buffer,
            const std::string& detail) {
    const std::optional<RankId> id = rank == nullptr ? std::nullopt : std::optional{rank->rank};
    Finding* finding = log_.note(
        {.kind = kind, .step = plan_.step, .rank = id, .buffer = buffer, .request = std::string{}});
    if (finding != nullptr) finding->detail = detail;
  }

  const Problem& problem_;
  const Plan& plan_;
  const std::vector<std::size_t>* value_rows_ = nullptr;  ///< Of the array that is compared.
  FindingLog log_;
  std::uint64_t compared_ = 0;
};

}  // namespace

HeadRange query_heads(const Scenario& scenario, RankId rank) noexcept {
  const std::uint32_t tp = std::max(scenario.topology.tp, 1U);
  const std::uint32_t count = scenario.model.num_heads_q / tp;
  return {.first = rank.value() % tp * count, .count = count};
}

HeadRange kv_heads(const Scenario& scenario, RankId rank) noexcept {
  const std::uint32_t tp = std::max(scenario.topology.tp, 1U);
  const std::uint32_t total = scenario.model.num_heads_kv;
  return {.first = rank.value() % tp * total / tp, .count = std::max(1U, total / tp)};
}

HeadRange pool_heads(const Scenario& scenario, StrategyKind strategy, RankId rank) noexcept {
  HeadRange heads = kv_heads(scenario, rank);
  if (strategy != StrategyKind::ulysses || heads.count == 0) return heads;
  // The CP group deals its heads out: several to a rank, or one to several ranks.
  const std::uint32_t cp = std::max(scenario.topology.cp, 1U);
  const std::uint32_t cp_rank = rank.value() / std::max(scenario.topology.tp, 1U);
  if (heads.count >= cp) {
    const std::uint32_t share = heads.count / cp;
    return {.first = heads.first + cp_rank * share, .count = share};
  }
  return {.first = heads.first + cp_rank / (cp / heads.count), .count = 1};
}

HeadRange sink_heads(const Scenario& scenario, StrategyKind strategy, RankId rank) noexcept {
  const HeadRange own = query_heads(scenario, rank);
  const std::uint32_t tp = std::max(scenario.topology.tp, 1U);
  const std::uint32_t cp = std::max(scenario.topology.cp, 1U);
  if (strategy == StrategyKind::ulysses) {
    // The CP group deals the heads of its TP rank out.
    return {.first = own.first + rank.value() / tp * (own.count / cp), .count = own.count / cp};
  }
  if (strategy == StrategyKind::dcp && scenario.topology.dcp > 1) {
    // Queries of all heads of the decode group come together.
    const std::uint32_t dcp = scenario.topology.dcp;
    return {.first = rank.value() % tp / dcp * dcp * own.count, .count = own.count * dcp};
  }
  return own;
}

void compare_metadata(const Problem& problem, const Plan& plan, DataMode mode,
                      CheckReport& report) {
  MetadataComparison comparison{problem, plan, mode};
  comparison.compare();
  report.compared += comparison.compared();
  const std::vector<Finding>& findings = comparison.log().findings();
  report.findings.insert(report.findings.end(), findings.begin(), findings.end());
}

CheckReport check_metadata(const CellEvidence& evidence) {
  CheckReport report;
  for (const Plan& plan : *evidence.plans)
    compare_metadata(*evidence.problem, plan, evidence.mode, report);
  return report;
}

}  // namespace cpverify::judge
