#include "sim/isa/lexer.hpp"

#include <bit>
#include <charconv>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "cpverify/error.hpp"

namespace cpverify::sim {
namespace {

constexpr bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
constexpr bool is_hex_digit(char c) {
  return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}
constexpr bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '$';
}
/// `%`, `.` and `::` belong to words: registers, directives, and names such as shared::cta.
constexpr bool is_word_begin(char c) {
  return is_letter(c) || c == '%' || c == '.';
}
constexpr bool is_word_part(char c) {
  return is_letter(c) || is_digit(c) || c == '.';
}

std::string describe(const Token& token) {
  if (token.kind == TokenKind::end) return "the end of the text";
  return fmt::format("'{}'", token.text.substr(0, 80));
}

}  // namespace

Lexer::Lexer(std::string_view text, std::string file) : text_{text}, file_{std::move(file)} {
  advance();
}

SourceLocation Lexer::where(const Token& token) const {
  return {file_, static_cast<int>(token.line), static_cast<int>(token.column)};
}

void Lexer::fail(const Token& token, const std::string& message) const {
  throw InputError{where(token), message};
}

Token Lexer::take() {
  Token token = next_;
  advance();
  return token;
}

bool Lexer::is_next(std::string_view punctuation_or_word) const noexcept {
  return (next_.kind == TokenKind::punctuation || next_.kind == TokenKind::word) &&
         next_.text == punctuation_or_word;
}

bool Lexer::take_if(std::string_view punctuation_or_word) {
  if (!is_next(punctuation_or_word)) return false;
  advance();
  return true;
}

void Lexer::expect(std::string_view punctuation_or_word) {
  if (take_if(punctuation_or_word)) return;
  fail(next_, fmt::format("expected '{}', found {}", punctuation_or_word, describe(next_)));
}

Token Lexer::expect_word(std::string_view what) {
  if (next_.kind != TokenKind::word) {
    fail(next_, fmt::format("expected {}, found {}", what, describe(next_)));
  }
  return take();
}

std::uint64_t Lexer::expect_integer(std::string_view what) {
  if (next_.kind != TokenKind::integer) {
    fail(next_, fmt::format("expected {}, found {}", what, describe(next_)));
  }
  return take().bits;
}

void Lexer::skip_one() noexcept {
  if (text_[at_] == '\n') {
    ++line_;
    line_begin_ = at_ + 1;
  }
  ++at_;
}

void Lexer::skip_blanks() {
  while (at_ < text_.size()) {
    const char c = text_[at_];
    const std::string_view two = text_.substr(at_, 2);
    if (c == ' ' || c == '\t' || c == '\n' || c == '\r') {
      skip_one();
    } else if (two == "//") {
      while (at_ < text_.size() && text_[at_] != '\n') ++at_;
    } else if (two == "/*") {
      const std::size_t end = text_.find("*/", at_ + 2);
      if (end == std::string_view::npos) fail(next_, "comment without end");
      while (at_ < end + 2) skip_one();
    } else {
      return;
    }
  }
}

void Lexer::advance() {
  next_.line = line_;
  next_.column = static_cast<std::uint32_t>(at_ - line_begin_) + 1;
  skip_blanks();
  Token token;
  token.line = line_;
  token.column = static_cast<std::uint32_t>(at_ - line_begin_) + 1;
  next_ = token;
  if (at_ >= text_.size()) return;
  const char c = text_[at_];
  if (is_digit(c)) {
    next_ = lex_number();
  } else if (c == '"') {
    next_ = lex_string();
  } else if (is_word_begin(c)) {
    const std::size_t begin = at_++;
    while (at_ < text_.size()) {
      if (is_word_part(text_[at_])) {
        ++at_;
      } else if (text_.substr(at_, 2) == "::") {
        at_ += 2;
      } else {
        break;
      }
    }
    next_.kind = TokenKind::word;
    next_.text = text_.substr(begin, at_ - begin);
  } else if (std::string_view{"{}[]()<>,;:@!|+-*=~&?"}.find(c) != std::string_view::npos) {
    next_.kind = TokenKind::punctuation;
    next_.text = text_.substr(at_++, 1);
  } else {
    next_.text = text_.substr(at_, 1);
    fail(next_, fmt::format("unexpected character 0x{:02x}", static_cast<unsigned char>(c)));
  }
}

Token Lexer::lex_string() {
  Token token = next_;
  const std::size_t end = text_.find_first_of("\"\n", at_ + 1);
  if (end == std::string_view::npos || text_[end] == '\n') fail(token, "string without end");
  token.kind = TokenKind::string;
  token.text = text_.substr(at_ + 1, end - at_ - 1);
  at_ = end + 1;
  return token;
}

/// 0x.., 0.. (octal), 0b.., decimal, with an optional U; 0fXXXXXXXX, 0dXXXXXXXXXXXXXXXX; 1.5.
/// Source: PTX ISA, "Integer Constants", "Floating-Point Constants".
Token Lexer::lex_number() {
  Token token = next_;
  const char prefix = text_[at_] == '0' && at_ + 1 < text_.size() ? text_[at_ + 1] : '\0';
  int base = 0;
  if (prefix == 'x' || prefix == 'X' || prefix == 'f' || prefix == 'F' || prefix == 'd' ||
      prefix == 'D') {
    base = 16;
  } else if (prefix == 'b' || prefix == 'B') {
    base = 2;
  } else {
    return lex_decimal(token);
  }
  const std::size_t begin = at_ + 2;
  std::size_t end = begin;
  while (end < text_.size() && is_hex_digit(text_[end])) ++end;
  const auto [stop, status] =
      std::from_chars(text_.data() + begin, text_.data() + end, token.bits, base);
  token.text = text_.substr(at_, end - at_);
  const bool is_single = prefix == 'f' || prefix == 'F';
  const bool is_double = prefix == 'd' || prefix == 'D';
  const std::size_t digits = end - begin;
  if (status != std::errc{} || stop != text_.data() + end || (is_single && digits != 8) ||
      (is_double && digits != 16)) {
    fail(token, fmt::format("malformed number '{}'", token.text.substr(0, 40)));
  }
  token.kind = is_single   ? TokenKind::real_single
               : is_double ? TokenKind::real_double
                           : TokenKind::integer;
  at_ = end;
  if (token.kind == TokenKind::integer && at_ < text_.size() && text_[at_] == 'U') ++at_;
  return token;
}

Token Lexer::lex_decimal(Token token) {
  std::size_t end = at_;
  while (end < text_.size() && is_digit(text_[end])) ++end;
  const bool is_real = end + 1 < text_.size() && text_[end] == '.' && is_digit(text_[end + 1]);
  const char* const first = text_.data() + at_;
  if (is_real) {
    double value = 0.0;
    const auto [stop, status] = std::from_chars(first, text_.data() + text_.size(), value);
    if (status != std::errc{}) fail(token, "malformed number");
    token.kind = TokenKind::real_double;
    token.bits = std::bit_cast<std::uint64_t>(value);
    end = static_cast<std::size_t>(stop - text_.data());
  } else {
    const int base = text_[at_] == '0' && end > at_ + 1 ? 8 : 10;
    const auto [stop, status] = std::from_chars(first, text_.data() + end, token.bits, base);
    token.text = text_.substr(at_, end - at_);
    if (status != std::errc{} || stop != text_.data() + end) {
      fail(token, fmt::format("malformed number '{}'", token.text.substr(0, 40)));
    }
    token.kind = TokenKind::integer;
  }
  token.text = text_.substr(at_, end - at_);
  at_ = end;
  if (token.kind == TokenKind::integer && at_ < text_.size() && text_[at_] == 'U') ++at_;
  return token;
}

}  // namespace cpverify::sim
