// Defects of rings and of exchanges of heads.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "cpverify/launch.hpp"
#include "cpverify/plan.hpp"
#include "mutants/injection.hpp"
#include "plan/rank_builder.hpp"

namespace cpverify::mutants {
namespace {

/// Parameter positions in an attention launch; docs/plan.md has the list.
constexpr std::size_t kKeys = 1;
constexpr std::size_t kValues = 2;
constexpr std::size_t kIsCausal = 14;

/// The launch with that label, or null.
Launch* find_launch(RankPlan& rank, std::string_view label) {
  for (Operation& operation : rank.operations) {
    auto* launch = std::get_if<Launch>(&operation.body);
    if (launch != nullptr && operation.label == label) return launch;
  }
  return nullptr;
}

std::string hop_label(std::string_view what, std::int64_t hop) {
  return fmt::format("{} the block of hop {}", what, hop);
}

}  // namespace

std::size_t send_against_the_ring(const Injection& injection) {
  return injection.for_each_rank([](const Plan& /*plan*/, RankPlan& rank) {
    bool has_changed = false;
    for (Operation& operation : rank.operations) {
      auto* collective = std::get_if<Collective>(&operation.body);
      if (collective == nullptr || collective->kind != CollectiveKind::send_recv) continue;
      // In a ring of two both neighbours are the same rank.
      has_changed |= collective->send_peer != collective->recv_peer;
      std::swap(collective->send_peer, collective->recv_peer);
    }
    return has_changed;
  });
}

// The two buffers take turns; this launch is a turn late, or early.
std::size_t attend_other_block(const Injection& injection) {
  const std::string label = hop_label("attention of", injection.value("hop"));
  return injection.for_each_rank([&label](const Plan& /*plan*/, RankPlan& rank) {
    Launch* launch = find_launch(rank, label);
    if (launch == nullptr) return false;
    for (const std::size_t place : {kKeys, kValues}) {
      auto& block = std::get<BufferRef>(launch->arguments.at(place));
      const bool is_even = rank.buffers.at(block.buffer.value()).name == "kv_block_even";
      const std::string_view other = is_even ? "kv_block_odd" : "kv_block_even";
      for (std::uint32_t i = 0; i < rank.buffers.size(); ++i) {
        if (rank.buffers[i].name == other) block.buffer = BufferId{i};
      }
    }
    return true;
  });
}

std::size_t skip_round(const Injection& injection) {
  const std::string label = hop_label("merge", injection.value("hop"));
  return injection.for_each_rank([&label](const Plan& /*plan*/, RankPlan& rank) {
    return std::erase_if(rank.operations, [&label](const Operation& operation) {
             return operation.label == label;
           }) > 0;
  });
}

std::size_t unmask_own_block(const Injection& injection) {
  return injection.for_each_rank([](const Plan& /*plan*/, RankPlan& rank) {
    Launch* launch = find_launch(rank, hop_label("attention of", 0));
    if (launch == nullptr) return false;
    launch->arguments.at(kIsCausal) = std::int32_t{0};
    return true;
  });
}

std::size_t swap_returned_heads(const Injection& injection) {
  return injection.for_each_rank([](const Plan& plan, RankPlan& rank) {
    Buffer* order = find_buffer(rank, "head_order");
    const Buffer* send = find_buffer(rank, "q_send");
    if (!plan.is_cp_on || order == nullptr || send == nullptr) return false;
    const auto cp_size = static_cast<std::size_t>(send->shape.front());
    for (std::size_t row = 0; row + 1 < order->values.size(); row += cp_size) {
      std::swap(order->values[row], order->values[row + 1]);
    }
    return !order->values.empty();
  });
}

// Heads go round robin to the ranks, as if query head h read KV head h mod K.
std::size_t deal_kv_heads_in_turn(const Injection& injection) {
  return injection.for_each_rank([](const Plan& /*plan*/, RankPlan& rank) {
    Buffer* index = find_buffer(rank, "kv_send_index");
    const Buffer* send = find_buffer(rank, "k_send");
    if (index == nullptr || send == nullptr) return false;
    const std::int64_t runs = rank.heads_kv.count / send->shape.at(2);
    const std::int64_t rows = send->shape.at(1);
    bool has_changed = false;
    for (std::size_t i = 0; i < index->values.size(); ++i) {
      std::int64_t& entry = index->values[i];
      if (entry == plan::kPadRow) continue;
      const std::int64_t target = static_cast<std::int64_t>(i) / rows;
      const std::int64_t wrong = entry / runs * runs + target % runs;
      has_changed |= wrong != entry;
      entry = wrong;
    }
    return has_changed;
  });
}

}  // namespace cpverify::mutants
