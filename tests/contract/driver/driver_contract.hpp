#pragma once

#include <functional>
#include <memory>
#include <ostream>
#include <string>

#include <gtest/gtest.h>

#include "gpu/driver_api.hpp"

namespace cpverify::contract {

/// An implementation of DriverApi with at least two devices.
struct DriverSubject {
  std::string name;
  std::function<std::unique_ptr<gpu::DriverApi>()> make;
};

inline void PrintTo(const DriverSubject& subject, std::ostream* out) {
  *out << subject.name;
}

/// What every driver keeps to; the tests are in driver_contract.cpp.
class DriverContract : public testing::TestWithParam<DriverSubject> {
 protected:
  std::unique_ptr<gpu::DriverApi> driver_ = GetParam().make();
};

}  // namespace cpverify::contract
