#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace cpverify::sim {

/// One kernel parameter: its place in the parameter bytes of a launch.
struct ParameterInfo {
  std::string name;
  std::uint32_t offset_bytes = 0;
  std::uint32_t size_bytes = 0;
};

/// What a launch must know of an entry.
struct KernelInfo {
  std::string name;
  std::vector<ParameterInfo> parameters;
  std::uint32_t parameter_bytes = 0;              ///< End of the last parameter.
  std::uint32_t static_shared_bytes = 0;          ///< Laid out before the dynamic ones.
  std::uint32_t local_bytes = 0;                  ///< Of each thread.
  std::uint32_t max_threads = 1024;               ///< From .maxntid or .reqntid, at most 1024.
  std::array<std::uint32_t, 3> required_block{};  ///< .reqntid; zeros when absent.
  /// .reqnctapercluster: CTAs of a cluster; zeros when absent.
  std::array<std::uint32_t, 3> required_cluster{};
  std::uint32_t max_cluster = 0;      ///< .maxclusterrank; 0 when absent.
  std::uint32_t registers = 0;        ///< .maxnreg; 0 when absent.
  bool has_explicit_cluster = false;  ///< .explicitcluster: the launch must name a cluster.
};

}  // namespace cpverify::sim
