#include "sim/machine/handlers.hpp"
#include "sim/machine/machine_code.hpp"
#include "sim/machine/warp_loop.hpp"

namespace cpverify::sim {

const MachineCode& machine_code_256() noexcept {
  static constexpr MachineCode code{&find_handler, &run_warp, &run_warp_to_point};
  return code;
}

}  // namespace cpverify::sim
