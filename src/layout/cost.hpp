#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "layout/splits.hpp"

namespace cpverify::layout {

/// Peak numbers of a GPU without sparsity, from its maker's data sheet.
struct Device {
  std::string_view name;
  double tflops_16bit;  ///< Tensor cores, f16 or bf16, dense. [10^12 / s]
  double memory_tb_s;   ///< [10^12 bytes / s]
  double link_gb_s;     ///< NVLink, one direction. [10^9 bytes / s]
  std::string_view source;
};

[[nodiscard]] const std::vector<Device>& all_devices();

/// What a rank's model part is.
struct CostModel {
  std::int64_t heads_q = 1;   ///< Of a rank, before any exchange of heads.
  std::int64_t heads_kv = 1;  ///< Of a rank.
  std::int64_t head_dim = 128;
  std::int64_t element_bytes = 2;
  bool is_packed_combine = false;  ///< a2a or direct instead of ag_rs.
};

/// One collective of a layer; every rank of the group sends and receives the same bytes.
struct Exchange {
  std::string what;
  std::string_view collective;
  std::int64_t group_size = 1;
  std::int64_t sent_bytes = 0;  ///< By each rank, in the algorithm with the fewest.
};

struct RankCost {
  std::int64_t query_rows = 0;
  std::int64_t pairs = 0;  ///< (query, key) pairs times query heads.
  double flops = 0.0;      ///< 4 D per pair and head: Q K^T and P V.
  std::int64_t stored_tokens = 0;
  std::int64_t stored_bytes = 0;     ///< K and V after the step.
  std::int64_t memory_bytes = 0;     ///< Q, K, V read and O written by attention.
  std::int64_t workspace_bytes = 0;  ///< Sum of the strategy's arrays.
};

struct BatchCost {
  std::vector<RankCost> ranks;
  std::vector<Exchange> exchanges;
  double balance = 1.0;  ///< Pairs of the busiest rank over the mean; 1 when there are none.
};

/// Seconds of one attention layer on the busiest rank.
struct Roofline {
  double compute = 0.0;
  double memory = 0.0;
  double network = 0.0;
  double serial = 0.0;      ///< Attention, then the exchanges.
  double overlapped = 0.0;  ///< The longest of the three: no schedule is faster.
};

/// Pairs (query, key) of a part, per head. Closed form unless queries and keys are both periodic.
[[nodiscard]] std::int64_t count_pairs(const AttentionPart& part) noexcept;

[[nodiscard]] BatchCost cost_of(const BatchSplit& batch, const CostModel& model);

/// `link_gb_s` 0 takes the device's own.
[[nodiscard]] Roofline roofline(const BatchCost& cost, const Device& device, double link_gb_s);

}  // namespace cpverify::layout
