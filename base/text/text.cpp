#include "base/text/text.h"

#include <algorithm>
#include <cstdint>
#include <cstdio>

namespace deepgen {
namespace {

struct Character {
  uint32_t code = 0;
  size_t bytes = 1;
  bool good = false; ///< false: the byte is no UTF-8
};

/// The character at `at`; overlong forms, surrogates and what lies beyond U+10FFFF are not good.
Character character(const std::string& text, size_t at) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(at);
  if (first < 0x80) return {first, 1, true};
  const size_t bytes = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || text.size() - at < bytes) return {};
  uint32_t code = first & (0x7fu >> bytes);
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(at + i) & 0xc0) != 0x80) return {};
    code = code << 6 | (byte(at + i) & 0x3f);
  }
  constexpr uint32_t kLeast[] = {0, 0, 0x80, 0x800, 0x10000};
  if (code < kLeast[bytes] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000)) return {};
  return {code, bytes, true};
}

bool is_control(uint32_t c) {
  return c < 0x20 || (c >= 0x7f && c < 0xa0) || c == 0x61c || c == 0x200e || c == 0x200f ||
         (c >= 0x2028 && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069) || c == 0xfeff;
}

std::string escaped(uint32_t code) {
  char text[16];
  std::snprintf(text, sizeof text, "\\u%04x", code);
  return text;
}

bool is_letter_or_digit(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

} // namespace

std::string why_no_name(const std::string& text, size_t longest) {
  if (text.size() > longest) return "it has more than " + std::to_string(longest) + " bytes";
  for (size_t at = 0; at < text.size();) {
    const Character c = character(text, at);
    if (!c.good) return "it is no UTF-8";
    if (is_control(c.code)) return "it has the control character " + escaped(c.code);
    at += c.bytes;
  }
  return "";
}

bool is_word(const std::string& text) {
  return !text.empty() && text.size() <= 64 && std::all_of(text.begin(), text.end(), [](char c) {
    return is_letter_or_digit(c) || c == '_' || c == '-' || c == '.' || c == '+';
  });
}

bool is_sha256(const std::string& text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

std::string visible(const std::string& text) {
  std::string out;
  out.reserve(text.size());
  for (size_t at = 0; at < text.size();) {
    const Character c = character(text, at);
    if (!c.good)
      out += "\xef\xbf\xbd";
    else if (is_control(c.code) && c.code != '\n' && c.code != '\t')
      out += escaped(c.code);
    else
      out.append(text, at, c.bytes);
    at += c.bytes;
  }
  return out;
}

/// A blank parts what would be the end of a comment, the begin of one, or a trigraph. A backslash at the end
/// of a line would continue it, for GCC also with blanks behind it.
std::string in_comment(const std::string& text) {
  std::string out;
  for (char c : visible(text)) {
    const char last = out.empty() ? ' ' : out.back();
    if ((last == '*' && c == '/') || (last == '/' && (c == '*' || c == '/')) || (last == '?' && c == '?'))
      out += ' ';
    out += c == '\n' || c == '\t' ? ' ' : c;
  }
  if (const size_t end = out.find_last_not_of(' '); end != std::string::npos && out[end] == '\\') out += '.';
  return out;
}

std::string c_literal(const std::string& text) {
  std::string out = "\"";
  char last = 0;
  for (char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\' || (c == '?' && last == '?')) {
      out += {'\\', c};
    } else if (c == '\n' || c == '\t') {
      out += c == '\n' ? "\\n" : "\\t";
    } else if (byte < 0x20 || byte >= 0x7f) {
      char octal[8]; // of three digits at most, where a hex escape takes all that follow
      std::snprintf(octal, sizeof octal, "\\%03o", byte);
      out += octal;
    } else {
      out += c;
    }
    last = c;
  }
  return out + "\"";
}

} // namespace deepgen
