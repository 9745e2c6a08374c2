#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "gpu/driver_api.hpp"
#include "gpu/nccl_api.hpp"
#include "support/device_session.hpp"

namespace cpverify::contract {

/// A driver with at least four devices and the NCCL to be tested on it.
struct NcclPair {
  std::unique_ptr<gpu::DriverApi> driver;
  std::unique_ptr<gpu::NcclApi> nccl;
};

struct NcclSubject {
  std::string name;
  std::function<NcclPair()> make;
};

inline void PrintTo(const NcclSubject& subject, std::ostream* out) {
  *out << subject.name;
}

/// What every NCCL keeps to; the tests are in nccl_contract.cpp. Mismatched calls are not among
/// them, because a real NCCL hangs.
class NcclContract : public testing::TestWithParam<NcclSubject> {
 protected:
  NcclContract() {
    for (int device = 0; device < 4; ++device) {
      sessions_.push_back(std::make_unique<test_support::DeviceSession>(*pair_.driver, device));
    }
  }

  NcclPair pair_ = GetParam().make();
  std::vector<std::unique_ptr<test_support::DeviceSession>> sessions_;
};

}  // namespace cpverify::contract
