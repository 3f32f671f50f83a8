// What C and C++ see of a text besides its comments and what its literals hold. Two texts that differ in
// these alone have the same skeleton; one whose comment or literal was ended from inside has another one.
#pragma once

#include <algorithm>
#include <string>

namespace deepgen {

/// Phases 1 and 2 of translation: trigraphs, where they count (before C++17, and in strict C), and lines that
/// go on.
inline std::string translated(const std::string& text, bool trigraphs) {
  const std::string third = "=/'()!<>-", meant = "#\\^[]|{}~";
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (trigraphs && c == '?' && i + 2 < text.size() && text[i + 1] == '?')
      if (const size_t which = third.find(text[i + 2]); which != std::string::npos) c = meant[which], i += 2;
    if (c == '\n' && !out.empty() && out.back() == '\\')
      out.pop_back();
    else
      out += c;
  }
  return out;
}

inline std::string c_skeleton(const std::string& source, bool trigraphs) {
  const std::string text = translated(source, trigraphs);
  std::string out;
  for (size_t i = 0; i < text.size(); ++i) {
    const std::string two = text.substr(i, 2);
    if (two == "/*") {
      const size_t end = text.find("*/", i + 2);
      if (end == std::string::npos) return out + "<a comment without an end>";
      i = end + 1;
      out += ' ';
    } else if (two == "//") {
      i = std::min(text.find('\n', i), text.size()) - 1;
    } else if (text[i] == '"' || text[i] == '\'') {
      const char quote = text[i];
      for (++i; i < text.size() && text[i] != quote && text[i] != '\n'; ++i)
        if (text[i] == '\\') ++i;
      if (i >= text.size() || text[i] == '\n') return out + "<a literal without an end>";
      out += {quote, quote};
    } else {
      out += text[i];
    }
  }
  return out;
}

} // namespace deepgen
