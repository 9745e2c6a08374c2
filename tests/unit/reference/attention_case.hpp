#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include "cpverify/data.hpp"
#include "cpverify/dtype.hpp"
#include "cpverify/plan.hpp"
#include "cpverify/step.hpp"

namespace cpverify::reference {

/// Which number of a request's data is asked for.
struct ElementIndex {
  std::uint32_t request = 0;
  TensorKind tensor = TensorKind::q;
  std::size_t position = 0;
  std::size_t head = 0;
  std::size_t dim = 0;
};

/// Values that the dtype of the case holds exactly.
using ElementValue = std::function<float(const ElementIndex&)>;

inline void append_bits(std::vector<std::byte>& bytes, DType dtype, float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::size_t size = size_bytes(dtype);
  // f32, or its upper half: bf16. Tests of f16 write bits of their own.
  const std::uint32_t kept = dtype == DType::f32 ? bits : bits >> 16U;
  const std::size_t end = bytes.size();
  bytes.resize(end + size);
  std::memcpy(bytes.data() + end, &kept, size);
}

inline HostRows rows_of(const ModelSpec& model, ElementIndex index, std::size_t num_tokens,
                        const ElementValue& value) {
  const std::size_t heads = index.tensor == TensorKind::q ? model.num_heads_q : model.num_heads_kv;
  HostRows rows;
  rows.row_bytes = heads * model.head_dim * size_bytes(model.dtype);
  for (index.position = 0; index.position < num_tokens; ++index.position) {
    for (index.head = 0; index.head < heads; ++index.head) {
      for (index.dim = 0; index.dim < model.head_dim; ++index.dim) {
        append_bits(rows.bytes, model.dtype, value(index));
      }
    }
  }
  return rows;
}

/// The data of every request of step 0 of a problem in f32 or bf16.
inline std::vector<RequestData> data_of(const Problem& problem, const ElementValue& value) {
  std::vector<RequestData> result;
  for (const StepRow& row : problem.steps.at(0).rows) {
    const auto tokens = static_cast<std::size_t>(row.computed + row.scheduled);
    const ModelSpec& model = problem.scenario.model;
    const std::uint32_t request = row.request.value();
    result.push_back(
        {.q = rows_of(model, {.request = request, .tensor = TensorKind::q}, tokens, value),
         .k = rows_of(model, {.request = request, .tensor = TensorKind::k}, tokens, value),
         .v = rows_of(model, {.request = request, .tensor = TensorKind::v}, tokens, value)});
  }
  return result;
}

}  // namespace cpverify::reference
