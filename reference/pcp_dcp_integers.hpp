#pragma once

#include <cstddef>
#include <vector>

#include "cpverify/scenario.hpp"
#include "cpverify/step.hpp"
#include "reference/integer_oracle.hpp"

namespace cpverify::reference {

/// Which part of the cache each world rank has, where prefill ranks divide it too.
[[nodiscard]] std::vector<std::size_t> product_shards(const TopologySpec& topology);

/// One entry per world rank.
[[nodiscard]] std::vector<RankIntegers> pcp_dcp_integers(const Problem& problem, const Step& step);

}  // namespace cpverify::reference
