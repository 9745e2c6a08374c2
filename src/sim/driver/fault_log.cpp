#include "sim/driver/fault_log.hpp"

#include <string>
#include <utility>
#include <vector>

#include "cpverify/fault.hpp"

namespace cpverify::sim {

void FaultLog::add(const Fault& fault) {
  const bool is_of_host = fault.ptx_line == 0;
  const Key key{fault.kernel,
                fault.ptx_line,
                fault.kind,
                fault.device,
                is_of_host ? fault.allocation : 0,
                is_of_host ? fault.detail : std::string{}};
  const auto [place, is_new] = index_.emplace(key, faults_.size());
  if (is_new) {
    faults_.push_back(fault);
  } else {
    faults_[place->second].count += fault.count;
  }
}

std::vector<Fault> FaultLog::take() {
  index_.clear();
  return std::exchange(faults_, {});
}

}  // namespace cpverify::sim
