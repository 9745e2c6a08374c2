#include "sim/machine/launch_counts.hpp"

#include <algorithm>
#include <cstddef>

#include "cpverify/coverage.hpp"
#include "cpverify/observer.hpp"
#include "sim/isa/code.hpp"
#include "sim/isa/insn.hpp"
#include "sim/isa/opcode.hpp"
#include "sim/machine/cta.hpp"

namespace cpverify::sim {
namespace {

bool may_go_both_ways(const Insn& insn) {
  const Effect effect = info(insn.op).effect;
  const bool is_guarded = insn.guard != 0 || insn.guard_flip != 0;
  return is_guarded && (effect == Effect::branch || effect == Effect::exit);
}

bool wants_counts(const Observer* observer) {
  return observer->wants_counts();
}

}  // namespace

void prepare_counts(LaunchState& launch) {
  if (std::any_of(launch.observers.begin(), launch.observers.end(), wants_counts)) {
    launch.counts.resize(launch.code->insns.size());
    launch.run_lanes.resize(launch.counts.size() + 1);
  }
}

void report_counts(const LaunchState& launch) {
  if (launch.counts.empty()) return;
  const Code& code = *launch.code;
  Coverage::Kernel kernel{code.info.name, {}};
  Coverage::Counts counts;
  counts.launches = 1;
  std::uint64_t lanes_of_runs = 0;
  for (std::size_t i = 0; i < code.insns.size(); ++i) {
    lanes_of_runs += launch.run_lanes[i];
    const SourceLine& line = code.lines[i];
    // Joins, and the return at the end of every body, are the decoder's: nobody wrote them.
    if (line.ptx_line == 0 || code.insns[i].op == Op::join) continue;
    kernel.second.push_back({code.files[line.file], line.line, line.ptx_line, line.ptx_column,
                             may_go_both_ways(code.insns[i])});
    counts.instructions.push_back(launch.counts[i]);
    counts.instructions.back().executed += lanes_of_runs;
  }
  for (Observer* const observer : launch.observers) {
    if (observer->wants_counts()) observer->on_counts(kernel, counts);
  }
}

}  // namespace cpverify::sim
