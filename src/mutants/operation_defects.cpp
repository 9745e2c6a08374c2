// Defects of buffer sizes and of the sequence of launches and collectives.

#include <array>
#include <cstddef>
#include <cstdint>
#include <variant>
#include <vector>

#include "cpverify/plan.hpp"
#include "mutants/injection.hpp"

namespace cpverify::mutants {
namespace {

/// Positions of the collectives among a rank's operations.
std::vector<std::size_t> collective_places(const RankPlan& rank) {
  std::vector<std::size_t> places;
  for (std::size_t i = 0; i < rank.operations.size(); ++i) {
    if (std::holds_alternative<Collective>(rank.operations[i].body)) {
      places.push_back(i);
    }
  }
  return places;
}

/// Parameter positions of q, out and lse in an attention launch; docs/plan.md has the list.
constexpr std::array<std::size_t, 3> kRowArguments{0, 6, 7};

}  // namespace

// ceil(T / C) rows are enough only when the remainders of all requests spread evenly.
std::size_t size_gather_buffer_by_ceil(const Injection& injection) {
  return injection.for_each_rank([&injection](const Plan& plan, RankPlan& rank) {
    if (!plan.is_cp_on || find_buffer(rank, "kv_send") == nullptr) {
      return false;
    }
    const auto cp_size = static_cast<std::int64_t>(buffer_of(rank, "logical_rows").values.size());
    const std::int64_t rows = (injection.step_of(plan).num_tokens() + cp_size - 1) / cp_size;
    if (rows >= scalar_of(rank, "max_rows")) {
      return false;
    }
    buffer_of(rank, "kv_send").shape.front() = rows;
    buffer_of(rank, "kv_gathered").shape.front() = cp_size * rows;
    return true;
  });
}

// The kernel still steps by max_pages from row to row, so entries stay where they were and the last
// row's last page lies past the end.
std::size_t narrow_block_table(const Injection& injection) {
  return injection.for_each_rank([](const Plan& /*plan*/, RankPlan& rank) {
    Buffer& table = buffer_of(rank, "block_table");
    if (table.shape.back() < 2) {
      return false;
    }
    table.shape.back() -= 1;
    table.values.resize(static_cast<std::size_t>(table.size_elems()));
    return true;
  });
}

std::size_t lose_late_offset(const Injection& injection) {
  return injection.for_each_rank([](const Plan& plan, RankPlan& rank) {
    if (!plan.is_cp_on) {
      return false;
    }
    bool has_changed = false;
    for (Operation& operation : rank.operations) {
      auto* launch = std::get_if<Launch>(&operation.body);
      if (launch == nullptr || !launch->module.starts_with("attention_")) {
        continue;
      }
      for (const std::size_t place : kRowArguments) {
        auto& argument = std::get<BufferRef>(launch->arguments.at(place));
        has_changed |= argument.offset_elems != 0;
        argument.offset_elems = 0;
      }
    }
    return has_changed;
  });
}

std::size_t skip_collective(const Injection& injection) {
  const auto index = static_cast<std::size_t>(injection.value("index"));
  return injection.for_each_rank([index](const Plan& /*plan*/, RankPlan& rank) {
    const std::vector<std::size_t> places = collective_places(rank);
    if (index >= places.size()) {
      return false;
    }
    rank.operations.erase(rank.operations.begin() + static_cast<std::ptrdiff_t>(places[index]));
    return true;
  });
}

// The gather still begins after what fills its send buffer; only its end is not waited for.
std::size_t lose_event_wait(const Injection& injection) {
  const auto index = static_cast<std::size_t>(injection.value("index"));
  return injection.for_each_rank([index](const Plan& /*plan*/, RankPlan& rank) {
    const std::vector<std::size_t> places = collective_places(rank);
    if (index >= places.size()) {
      return false;
    }
    Operation& collective = rank.operations[places[index]];
    collective.stream = 1;
    if (places[index] > 0) {
      collective.after = {static_cast<std::uint32_t>(places[index] - 1)};
    }
    return true;
  });
}

std::size_t send_fewer_rows(const Injection& injection) {
  const auto index = static_cast<std::size_t>(injection.value("index"));
  const std::int64_t rows = injection.value("rows");
  return injection.for_each_rank([index, rows](const Plan& /*plan*/, RankPlan& rank) {
    const std::vector<std::size_t> places = collective_places(rank);
    if (index >= places.size() || rows == 0) {
      return false;
    }
    auto& collective = std::get<Collective>(rank.operations[places[index]].body);
    const Buffer& send = rank.buffers.at(collective.send.buffer.value());
    const std::int64_t count = collective.count - rows * (send.size_elems() / send.shape.front());
    if (count < 0) {
      return false;
    }
    collective.count = count;
    return true;
  });
}

}  // namespace cpverify::mutants
