// Texts in JSON files: of names and words nothing but these is taken (base/text/text.h), of others what can
// be shown.
#pragma once

#include "base/json/json.h"

namespace deepgen {

/// A field that is a name: throws Error when it is none, or longer than `longest` bytes. It may be empty.
std::string get_name(const Json& json, const std::string& key, const std::string& where,
                     size_t longest = 200);
/// Such as an arch, a template or an argument: a word, or empty.
std::string get_word(const Json& json, const std::string& key, const std::string& where);
std::vector<std::string> get_words(const Json& json, const std::string& key, const std::string& where);
/// Free text, such as a compiler's message, as visible() shows it.
std::string get_text(const Json& json, const std::string& key, const std::string& where);

} // namespace deepgen
