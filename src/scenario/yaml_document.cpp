#include "scenario/yaml_document.hpp"

#include <istream>
#include <optional>
#include <streambuf>
#include <string>
#include <utility>

#include <fmt/format.h>
#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/yaml.h>

#include "cpverify/error.hpp"

namespace cpverify::scenario {
namespace {

/// Remembers where the content of a document begins.
class ContentFinder final : public YAML::EventHandler {
 public:
  [[nodiscard]] const std::optional<YAML::Mark>& content() const noexcept { return content_; }

  // The names of yaml-cpp.
  // NOLINTBEGIN(readability-identifier-naming)
  void OnDocumentStart(const YAML::Mark& /*mark*/) override { content_.reset(); }
  void OnDocumentEnd() override {}
  void OnNull(const YAML::Mark& /*mark*/, YAML::anchor_t /*anchor*/) override {}
  void OnAlias(const YAML::Mark& mark, YAML::anchor_t /*anchor*/) override { note(mark); }
  void OnScalar(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                const std::string& /*value*/) override {
    note(mark);
  }
  void OnSequenceStart(const YAML::Mark& mark, const std::string& /*tag*/,
                       YAML::anchor_t /*anchor*/, YAML::EmitterStyle::value /*style*/) override {
    note(mark);
  }
  void OnSequenceEnd() override {}
  void OnMapStart(const YAML::Mark& mark, const std::string& /*tag*/, YAML::anchor_t /*anchor*/,
                  YAML::EmitterStyle::value /*style*/) override {
    note(mark);
  }
  void OnMapEnd() override {}
  // NOLINTEND(readability-identifier-naming)

 private:
  void note(const YAML::Mark& mark) {
    if (!content_) content_ = mark;
  }

  std::optional<YAML::Mark> content_;
};

/// Text as a stream, which is what the parser of yaml-cpp takes.
class TextBuffer final : public std::streambuf {
 public:
  explicit TextBuffer(std::string text) : text_{std::move(text)} {
    setg(text_.data(), text_.data(), text_.data() + text_.size());
  }

 private:
  std::string text_;
};

SourceLocation at(const YAML::Mark& mark, const std::string& file) {
  return mark.is_null() ? SourceLocation{file}
                        : SourceLocation{file, mark.line + 1, mark.column + 1};
}

/// Where a second document begins that holds something. YAML::LoadAll is of no use here: behind
/// some malformed text it finds one document after the other, for ever.
std::optional<YAML::Mark> second_document(const std::string& text) {
  TextBuffer buffer{text};
  std::istream stream{&buffer};
  YAML::Parser parser{stream};
  ContentFinder finder;
  if (!parser.HandleNextDocument(finder) || !parser.HandleNextDocument(finder)) return std::nullopt;
  return finder.content();
}

}  // namespace

YAML::Node parse_document(const std::string& text, const std::string& file) {
  YAML::Node document;
  std::optional<YAML::Mark> second;
  try {
    second = second_document(text);
    document = YAML::Load(text);
  } catch (const YAML::Exception& error) {
    throw InputError{at(error.mark, file), fmt::format("not YAML: {}", error.msg)};
  }
  if (document.IsNull()) {
    throw InputError{SourceLocation{file, 1, 1},
                     "the file is empty; expected a scenario with model, topology, cache and "
                     "requests, or with launch"};
  }
  if (second) {
    throw InputError{at(*second, file),
                     "the file has a second YAML document; expected one scenario"};
  }
  return document;
}

}  // namespace cpverify::scenario
