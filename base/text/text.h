// Text that comes from files, and how it is written into other languages so that none of it leaves its place.
#pragma once

#include <string>

namespace deepgen {

/// What a name must not have: empty when `text` is UTF-8 without control characters, of at most `longest`
/// bytes. Control characters are C0, DEL and C1, line and paragraph separators, and what turns the direction
/// of writing round.
std::string why_no_name(const std::string& text, size_t longest = 200);
/// Letters, digits, '_', '-', '.' and '+', of which there is at least one and at most 64.
bool is_word(const std::string& text);
/// 64 lower-case hex digits, as every SHA-256 is written here.
bool is_sha256(const std::string& text);

/// As it may stand in a terminal or a log: control characters but newline and tab as \u001b, bytes that are
/// no UTF-8 as U+FFFD. In the text of a JSON document it changes no value.
std::string visible(const std::string& text);
/// One line inside a comment of C or C++ of either kind, which it can neither end nor continue.
std::string in_comment(const std::string& text);
/// A string literal of C and C++, quotes included, for any bytes: no trigraph, no escape that runs on.
std::string c_literal(const std::string& text);

} // namespace deepgen
