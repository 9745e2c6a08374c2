#include "tidy/cpp_text.hpp"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <regex>
#include <string>
#include <string_view>
#include <vector>

namespace cpverify::tidy {
namespace {

/// Walks over C++ text and overwrites what is not code with blanks.
class Blanker {
 public:
  explicit Blanker(std::string_view text) : text_{text} {}

  std::string run() {
    while (at_ < text_.size()) step();
    return text_;
  }

 private:
  [[nodiscard]] bool sees(std::string_view what) const {
    return text_.compare(at_, what.size(), what) == 0;
  }

  void step() {
    if (sees("//")) {
      blank_to(text_.find('\n', at_));
    } else if (sees("/*")) {
      blank_past("*/", at_ + 2);
    } else if (sees("R\"")) {
      const std::size_t open = std::min(text_.find('(', at_), text_.size());
      blank_past(")" + text_.substr(at_ + 2, open - at_ - 2) + "\"", open);
    } else if (sees("#include")) {
      at_ = std::min(text_.find('\n', at_), text_.size());
    } else if (text_[at_] == '"' || (text_[at_] == '\'' && !is_digit_separator())) {
      blank_literal(text_[at_]);
    } else {
      ++at_;
    }
  }

  [[nodiscard]] bool is_digit_separator() const {
    return at_ > 0 && std::isalnum(static_cast<unsigned char>(text_[at_ - 1])) != 0;
  }

  void blank_literal(char quote) {
    std::size_t end = at_ + 1;
    while (end < text_.size() && text_[end] != quote && text_[end] != '\n') {
      end += text_[end] == '\\' ? 2U : 1U;
    }
    blank_to(end + 1);
  }

  void blank_past(const std::string& terminator, std::size_t from) {
    const std::size_t end = text_.find(terminator, from);
    blank_to(end == std::string::npos ? end : end + terminator.size());
  }

  void blank_to(std::size_t end) {
    for (end = std::min(end, text_.size()); at_ < end; ++at_) {
      if (text_[at_] != '\n') text_[at_] = ' ';
    }
  }

  std::string text_;
  std::size_t at_ = 0;
};

std::string without_preprocessor_lines(std::string code) {
  bool is_directive = false;
  for (std::size_t begin = 0; begin < code.size();) {
    const std::size_t end = std::min(code.find('\n', begin), code.size());
    const std::size_t first = code.find_first_not_of(" \t", begin);
    is_directive = is_directive || (first < end && code[first] == '#');
    const bool continues = end > begin && code[end - 1] == '\\';
    if (is_directive) {
      std::fill(code.begin() + static_cast<std::ptrdiff_t>(begin),
                code.begin() + static_cast<std::ptrdiff_t>(end), ' ');
    }
    is_directive = is_directive && continues;
    begin = end + 1;
  }
  return code;
}

enum class BraceKind { scope, initialiser, function };

/// What an opening brace opens, from the text between the last statement's end and it.
BraceKind classify(const std::string& head) {
  static const std::regex scope{R"(\b(namespace|class|struct|union|enum|extern)\b[^()=]*$)"};
  static const std::regex attribute{R"(\[\[[^\]]*\]\]|alignas\s*\([^)]*\)|__\w+__\s*\([^)]*\))"};
  static const std::regex member_initialiser{R"(\)[^:]*:[^:].*[\w>]\s*$)"};
  const std::string plain = std::regex_replace(head, attribute, "");
  const std::size_t last = plain.find_last_not_of(" \t\n");
  if (std::regex_search(plain, scope)) return BraceKind::scope;
  if (plain.find('(') == std::string::npos) {
    return last == std::string::npos ? BraceKind::scope : BraceKind::initialiser;
  }
  if (std::string{"(,=<"}.find(plain[last]) != std::string::npos) return BraceKind::initialiser;
  if (std::regex_search(plain, member_initialiser)) return BraceKind::initialiser;
  return BraceKind::function;
}

std::size_t closing_brace(const std::string& code, std::size_t open) {
  std::size_t depth = 0;
  for (std::size_t at = open; at < code.size(); ++at) {
    if (code[at] == '{') ++depth;
    if (code[at] == '}' && --depth == 0) return at;
  }
  return code.size() - 1;
}

}  // namespace

std::string code_only(std::string_view text) {
  return Blanker{text}.run();
}

std::vector<FunctionSpan> function_spans(std::string_view text) {
  const std::string code = without_preprocessor_lines(code_only(text));
  const auto line_of = [&](std::size_t at) {
    return static_cast<std::size_t>(
               std::count(code.begin(), code.begin() + static_cast<std::ptrdiff_t>(at), '\n')) +
           1;
  };
  std::vector<FunctionSpan> spans;
  std::string head;
  for (std::size_t at = 0; at < code.size(); ++at) {
    const bool is_open = code[at] == '{';
    const BraceKind kind = is_open ? classify(head) : BraceKind::scope;
    if (code[at] == ';' || code[at] == '}' || (is_open && kind == BraceKind::scope)) {
      head.clear();
      continue;
    }
    if (!is_open) {
      head += code[at] == '\n' ? ' ' : code[at];
      continue;
    }
    const std::size_t close = closing_brace(code, at);
    if (kind == BraceKind::function) {
      spans.push_back({line_of(at), line_of(close) - line_of(at) + 1});
      head.clear();
    } else {
      head += "{}";  // A constructor's body may follow its member initialisers.
    }
    at = close;
  }
  return spans;
}

}  // namespace cpverify::tidy
