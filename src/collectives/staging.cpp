#include "collectives/staging.hpp"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>

#include "collectives/reduction.hpp"
#include "gpu/driver_api.hpp"
#include "gpu/nccl_api.hpp"

namespace cpverify::collectives {

void StagedReduction::run(void* data) {
  const auto& staged = *static_cast<const StagedReduction*>(data);
  reduce(staged.spec, staged.reduction, staged.inputs, staged.output);
}

void StagedReduction::end_result(void* data) {
  --static_cast<StagedReduction*>(data)->results_left;
}

// A context that is gone has freed its memory; the answer does not matter.
Staging::~Staging() {
  for (const auto& staged : all_) static_cast<void>(driver_.cuMemFreeHost(staged->memory));
}

gpu::CuResult Staging::take(const Reduction& reduction, std::size_t ranks, std::size_t results,
                            StagedReduction*& staged) {
  const std::size_t input_bytes = reduction.count * gpu::size_bytes(reduction.type);
  const std::size_t needed_bytes = input_bytes * (ranks + 1);
  const auto idle = std::find_if(all_.begin(), all_.end(), [&](const auto& candidate) {
    return candidate->results_left == 0 && candidate->capacity_bytes >= needed_bytes;
  });
  if (idle != all_.end()) {
    staged = idle->get();
  } else {
    void* memory = nullptr;
    const gpu::CuResult result = driver_.cuMemHostAlloc(&memory, needed_bytes, 0);
    if (result != gpu::CuResult::success) return result;
    auto created = std::make_unique<StagedReduction>();
    created->memory = static_cast<std::byte*>(memory);
    created->capacity_bytes = needed_bytes;
    staged = created.get();
    all_.push_back(std::move(created));
  }
  staged->reduction = reduction;
  staged->results_left = results;
  staged->inputs.clear();
  for (std::size_t rank = 0; rank < ranks; ++rank) {
    staged->inputs.push_back(staged->memory + rank * input_bytes);
  }
  staged->output = staged->memory + ranks * input_bytes;
  return gpu::CuResult::success;
}

}  // namespace cpverify::collectives
