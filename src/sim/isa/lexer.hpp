#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "cpverify/error.hpp"

namespace cpverify::sim {

enum class TokenKind : std::uint8_t {
  end,
  word,         ///< Identifier, directive, register or dotted instruction name.
  integer,      ///< Value in Token::bits.
  real_single,  ///< 0f...: 32 bits in Token::bits.
  real_double,  ///< 0d... or a decimal fraction: 64 bits in Token::bits.
  string,
  punctuation,
};

struct Token {
  TokenKind kind = TokenKind::end;
  std::string_view text;
  std::uint64_t bits = 0;
  std::uint32_t line = 1;
  std::uint32_t column = 1;
};

/// Cuts PTX text into tokens. Comments and white space separate tokens and mean nothing.
class Lexer {
 public:
  /// `text` must outlive the tokens.
  Lexer(std::string_view text, std::string file);

  /// The next token, without and with taking it. After the last: TokenKind::end, for ever.
  [[nodiscard]] const Token& peek() const noexcept { return next_; }
  Token take();

  [[nodiscard]] bool is_next(std::string_view punctuation_or_word) const noexcept;
  /// Takes the next token when it is this one.
  bool take_if(std::string_view punctuation_or_word);
  /// Takes a token that must be this one.
  void expect(std::string_view punctuation_or_word);
  [[nodiscard]] Token expect_word(std::string_view what);
  [[nodiscard]] std::uint64_t expect_integer(std::string_view what);

  [[nodiscard]] SourceLocation where(const Token& token) const;
  [[noreturn]] void fail(const Token& token, const std::string& message) const;

 private:
  void advance();
  void skip_blanks();
  void skip_one() noexcept;
  Token lex_number();
  Token lex_decimal(Token token);
  Token lex_string();

  std::string_view text_;
  std::string file_;
  std::size_t at_ = 0;
  std::uint32_t line_ = 1;
  std::size_t line_begin_ = 0;
  Token next_;
};

}  // namespace cpverify::sim
