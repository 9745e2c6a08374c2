#include "report/finding_text.hpp"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cpverify/finding.hpp"

namespace cpverify::report {

std::string place_text(const Finding& finding) {
  std::vector<std::string> parts;
  const auto number = [&parts](const char* label, const auto& value) {
    if (value) parts.push_back(fmt::format("{} {}", label, *value));
  };
  if (finding.rank) parts.push_back(fmt::format("rank {}", finding.rank->value()));
  parts.push_back(fmt::format("step {}", finding.step));
  if (!finding.request.empty()) parts.push_back("request " + finding.request);
  number("token", finding.token);
  number("key", finding.key);
  number("head", finding.head);
  number("page", finding.page);
  number("slot", finding.slot);
  if (!finding.buffer.empty()) {
    parts.push_back(finding.element ? fmt::format("{}[{}]", finding.buffer, *finding.element)
                                    : finding.buffer);
  } else {
    number("element", finding.element);
  }
  if (!finding.kernel.empty()) parts.push_back("kernel " + finding.kernel);
  if (!finding.source.empty()) parts.push_back("at " + finding.source);
  if (finding.count > 1) parts.push_back(fmt::format("{} in all", finding.count));
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace cpverify::report
