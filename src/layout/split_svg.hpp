#pragma once

#include <string>
#include <vector>

#include "layout/splits.hpp"

namespace cpverify::layout {

/// One batch to draw, e.g. a step of a scenario.
struct SplitPicture {
  std::string title;
  BatchSplit batch;
  std::vector<std::string> request_names;  ///< One per row of the batch.
};

/// An SVG document, one request below the other: its new tokens and the keys in the pools coloured
/// by rank, then which rank computes which (query, key), for query head 0 and replica 0. Names are
/// escaped; the palette (Okabe and Ito) is told apart without colour vision, and ranks are
/// numbered. At most 8 requests of a batch are drawn, and no shard with more than 128 runs of
/// tokens: the drawing says so where it leaves something out.
[[nodiscard]] std::string splits_svg(const std::vector<SplitPicture>& pictures);

}  // namespace cpverify::layout
