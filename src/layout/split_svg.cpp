#include "layout/split_svg.hpp"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "layout/intervals.hpp"
#include "layout/splits.hpp"

namespace cpverify::layout {
namespace {

/// Okabe and Ito, "Color Universal Design" (2008), without black, which is for text.
constexpr std::array<std::string_view, 7> kColors{"#E69F00", "#56B4E9", "#009E73", "#F0E442",
                                                  "#0072B2", "#D55E00", "#CC79A7"};
constexpr double kLeft = 96.0;
constexpr double kWidth = 640.0;
constexpr double kStrip = 16.0;
constexpr double kLine = 18.0;
constexpr std::int64_t kRunsMax = 128;
constexpr std::int64_t kStairsMax = 64;
constexpr std::size_t kRequestsMax = 8;

std::string_view color(std::uint32_t rank) {
  return kColors[rank % kColors.size()];
}

std::string escaped(std::string_view text) {
  std::string safe;
  for (const char letter : text) {
    switch (letter) {
      case '&':
        safe += "&amp;";
        break;
      case '<':
        safe += "&lt;";
        break;
      case '>':
        safe += "&gt;";
        break;
      case '"':
        safe += "&quot;";
        break;
      default:
        // Control characters are no XML, whatever their spelling.
        safe += letter >= 0 && letter < 32 ? '?' : letter;
    }
  }
  return safe;
}

/// The set as intervals; nothing when there are too many to draw.
std::optional<std::vector<TokenSet>> runs_of(const TokenSet& set) {
  std::vector<TokenSet> runs;
  std::optional<std::int64_t> begin = first(set);
  while (begin) {
    if (std::ssize(runs) == kRunsMax) return std::nullopt;
    const std::int64_t left = set.run == set.period
                                  ? set.end - *begin
                                  : set.low + set.run - floor_mod(*begin, set.period);
    runs.push_back(interval(*begin, std::min(*begin + left, set.end)));
    begin = next_in(set, runs.back().end);
  }
  return runs;
}

class Drawing {
 public:
  void text(double x, std::string_view words) {
    body_ +=
        fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\">{}</text>\n", x, y_ + 12.0, escaped(words));
  }
  void line(std::string_view words) {
    text(8.0, words);
    y_ += kLine;
  }

  void request(const BatchSplit& batch, std::size_t index, std::string_view name) {
    const RequestSplit split = batch.request(index);
    const SplitRow& row = split.row;
    const std::int64_t total = row.computed + row.scheduled;
    std::uint32_t copies = 1;
    for (const TokenShare& share : split.stored) copies = std::max(copies, share.copy + 1);
    line(fmt::format("request {}: {} new tokens after {}{}", name, row.scheduled, row.computed,
                     copies == 1 ? "" : fmt::format("; {} copies of the keys", copies)));
    if (total == 0) return;
    scale_ = kWidth / static_cast<double>(total);
    is_complete_ = true;
    strip("new tokens", split.rows);
    strip("stored keys", split.stored);
    triangle(split);
    if (!is_complete_) line("(shares with more than 128 runs of tokens are not drawn)");
    y_ += kLine;
  }

  void legend(std::uint32_t num_ranks) {
    const std::uint32_t shown = std::min<std::uint32_t>(num_ranks, 28);
    for (std::uint32_t rank = 0; rank < shown; ++rank) {
      const double x = 8.0 + 26.0 * rank;
      rectangle(x, 12.0, 12.0, rank);
      text(x + 13.0, std::to_string(rank));
    }
    y_ += kLine;
  }

  [[nodiscard]] std::string document() const {
    return fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" "
        "viewBox=\"0 0 {0:.0f} {1:.0f}\" font-family=\"sans-serif\" font-size=\"11\">\n"
        "<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n{2}</svg>\n",
        kLeft + kWidth + 8.0, y_ + 8.0, body_);
  }

 private:
  void rectangle(double x, double width, double height, std::uint32_t rank) {
    body_ += fmt::format(
        "<rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\" "
        "stroke=\"white\" stroke-width=\"0.3\"><title>rank {}</title></rect>\n",
        x, y_, width, height, color(rank), rank);
  }

  /// The shares of copy 0 on one line.
  void strip(std::string_view label, const std::vector<TokenShare>& shares) {
    text(8.0, label);
    for (const TokenShare& share : shares) {
      if (share.copy != 0) continue;
      const std::optional<std::vector<TokenSet>> runs = runs_of(share.tokens);
      is_complete_ = is_complete_ && runs.has_value();
      if (!runs) continue;
      for (const TokenSet& run : *runs) {
        const double width = scale_ * static_cast<double>(run.end - run.begin);
        const double x = kLeft + scale_ * static_cast<double>(run.begin);
        rectangle(x, width, kStrip - 2.0, share.rank);
        if (width >= 14.0) text(x + 2.0, std::to_string(share.rank));
      }
    }
    y_ += kStrip;
  }

  void triangle(const RequestSplit& split) {
    const SplitRow& row = split.row;
    if (row.scheduled == 0) return;
    row_height_ = std::max(scale_, 10.0 / static_cast<double>(row.scheduled));
    text(8.0, "queries (down)");
    for (const AttentionPart& part : split.parts) {
      if (part.replica == 0 && part.heads.first == 0) area(part, row.computed);
    }
    y_ += row_height_ * static_cast<double>(row.scheduled) + 4.0;
  }

  void area(const AttentionPart& part, std::int64_t first_query) {
    const std::optional<std::vector<TokenSet>> queries = runs_of(part.queries);
    const std::optional<std::vector<TokenSet>> keys = runs_of(part.keys);
    is_complete_ = is_complete_ && queries && keys;
    if (!queries || !keys) return;
    for (const TokenSet& rows : *queries) {
      for (const TokenSet& columns : *keys) block(part, rows, columns, first_query);
    }
  }

  /// An interval of queries and one of keys: stairs when they are few, else the line through them.
  void block(const AttentionPart& part, const TokenSet& rows, const TokenSet& columns,
             std::int64_t first_query) {
    const auto end_at = [&part, &columns](std::int64_t query) {
      const std::int64_t end = part.diagonal ? query + *part.diagonal + 1 : columns.end;
      return std::clamp(end, columns.begin, columns.end);
    };
    if (part.window > 0 && part.diagonal) return band(part, rows, columns, first_query);
    std::vector<std::int64_t> corners{rows.begin, rows.end};
    if (part.diagonal) {
      for (const std::int64_t cut :
           {columns.begin - *part.diagonal - 1, columns.end - *part.diagonal - 1}) {
        if (cut > rows.begin && cut < rows.end) corners.push_back(cut);
      }
    }
    const bool has_stairs = part.diagonal && rows.end - rows.begin <= kStairsMax;
    if (has_stairs) {
      corners.clear();
      for (std::int64_t query = rows.begin; query <= rows.end; ++query) corners.push_back(query);
    }
    std::sort(corners.begin(), corners.end());
    if (end_at(rows.end) == columns.begin) return;
    const auto x = [this](std::int64_t key) { return kLeft + scale_ * static_cast<double>(key); };
    const auto y = [this, first_query](std::int64_t query) {
      return y_ + row_height_ * static_cast<double>(query - first_query);
    };
    std::string points = fmt::format("{:.2f},{:.2f} ", x(columns.begin), y(rows.begin));
    for (std::size_t i = 0; i < corners.size(); ++i) {
      if (has_stairs && i > 0) {
        points += fmt::format("{:.2f},{:.2f} ", x(end_at(corners[i] - 1)), y(corners[i]));
      }
      if (has_stairs && i + 1 == corners.size()) break;
      points += fmt::format("{:.2f},{:.2f} ", x(end_at(corners[i])), y(corners[i]));
    }
    body_ += fmt::format(
        "<polygon points=\"{}{:.2f},{:.2f}\" fill=\"{}\" stroke=\"white\" stroke-width=\"0.3\">"
        "<title>rank {}</title></polygon>\n",
        points, x(columns.begin), y(rows.end), color(part.rank), part.rank);
  }

  /// The keys of a window: a line of queries each when they are few, else the band's outline.
  void band(const AttentionPart& part, const TokenSet& rows, const TokenSet& columns,
            std::int64_t first_query) {
    const std::int64_t end = *part.diagonal + 1;
    const auto x = [&](std::int64_t key) {
      return kLeft + scale_ * static_cast<double>(std::clamp(key, columns.begin, columns.end));
    };
    const auto y = [&](std::int64_t query) {
      return y_ + row_height_ * static_cast<double>(query - first_query);
    };
    std::vector<std::int64_t> corners{rows.begin};
    if (rows.end - rows.begin <= kStairsMax) {
      for (std::int64_t query = rows.begin + 1; query < rows.end; ++query) corners.push_back(query);
    } else {
      for (const std::int64_t bound : {columns.begin, columns.end}) {
        for (const std::int64_t cut : {bound - end, bound - end + part.window}) {
          if (cut > rows.begin && cut < rows.end) corners.push_back(cut);
        }
      }
      std::sort(corners.begin(), corners.end());
    }
    corners.push_back(rows.end);
    const bool has_stairs = rows.end - rows.begin <= kStairsMax;
    for (std::size_t i = 0; i + 1 < corners.size(); ++i) {
      const std::int64_t top = corners[i];
      const std::int64_t bottom = has_stairs ? top : corners[i + 1];
      if (x(top + end) == x(top + end - part.window) &&
          x(bottom + end) == x(bottom + end - part.window)) {
        continue;
      }
      body_ += fmt::format(
          "<polygon points=\"{:.2f},{:.2f} {:.2f},{:.2f} {:.2f},{:.2f} {:.2f},{:.2f}\" "
          "fill=\"{}\"><title>rank {}</title></polygon>\n",
          x(top + end - part.window), y(top), x(top + end), y(top), x(bottom + end),
          y(corners[i + 1]), x(bottom + end - part.window), y(corners[i + 1]), color(part.rank),
          part.rank);
    }
  }

  std::string body_;
  double y_ = 4.0;
  double scale_ = 1.0;
  double row_height_ = 1.0;
  bool is_complete_ = true;
};

}  // namespace

std::string splits_svg(const std::vector<SplitPicture>& pictures) {
  Drawing drawing;
  for (const SplitPicture& picture : pictures) {
    drawing.line(picture.title);
    drawing.legend(picture.batch.num_ranks());
    const std::size_t requests = picture.batch.rows().size();
    for (std::size_t i = 0; i < std::min(requests, kRequestsMax); ++i) {
      drawing.request(picture.batch, i, picture.request_names[i]);
    }
    if (requests > kRequestsMax) {
      drawing.line(fmt::format("{} requests more are not drawn", requests - kRequestsMax));
    }
  }
  return drawing.document();
}

}  // namespace cpverify::layout
