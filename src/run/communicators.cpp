#include "run/communicators.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

#include "cpverify/dtype.hpp"
#include "cpverify/ids.hpp"
#include "cpverify/plan.hpp"
#include "gpu/check.hpp"
#include "gpu/nccl_api.hpp"
#include "support/check.hpp"

namespace cpverify::run {

gpu::NcclDataType nccl_type(DType dtype) noexcept {
  switch (dtype) {
    case DType::f32:
      return gpu::NcclDataType::float32;
    case DType::f16:
      return gpu::NcclDataType::float16;
    case DType::bf16:
      return gpu::NcclDataType::bfloat16;
    case DType::i32:
      return gpu::NcclDataType::int32;
    case DType::i64:
      return gpu::NcclDataType::int64;
    case DType::u8:
      return gpu::NcclDataType::uint8;
  }
  return gpu::NcclDataType::uint8;
}

Communicators::~Communicators() {
  for (const auto& entry : by_members_) {
    for (const gpu::NcclComm comm : entry.second) static_cast<void>(nccl_.ncclCommDestroy(comm));
  }
}

gpu::NcclComm Communicators::of(const Group& group, RankId rank) {
  auto found = by_members_.find(group.members);
  if (found == by_members_.end()) {
    std::vector<int> devices;
    devices.reserve(group.members.size());
    for (const RankId member : group.members) devices.push_back(static_cast<int>(member.value()));
    std::vector<gpu::NcclComm> comms(devices.size());
    gpu::nccl_check(
        nccl_.ncclCommInitAll(comms.data(), static_cast<int>(devices.size()), devices.data()),
        "ncclCommInitAll");
    found = by_members_.emplace(group.members, comms).first;
  }
  const auto member = std::find(group.members.begin(), group.members.end(), rank);
  CPVERIFY_CHECK(member != group.members.end());
  return found->second[static_cast<std::size_t>(member - group.members.begin())];
}

}  // namespace cpverify::run
