#include "base/json/json_text.h"

#include "base/text/text.h"

namespace deepgen {
namespace {

[[noreturn]] void refuse_word(const std::string& text, const std::string& key, const std::string& where) {
  throw Error("field '" + key + "' has what is no word: " + excerpt(text), where,
              "letters, digits and _-.+ only, at most 64 of them", "correct it, or delete the entry");
}

} // namespace

std::string get_name(const Json& json, const std::string& key, const std::string& where, size_t longest) {
  const auto text = get<std::string>(json, key, where);
  if (const std::string why = why_no_name(text, longest); !why.empty())
    throw Error("field '" + key + "' is no name: " + excerpt(text), where, why,
                "correct it, or delete the entry");
  return text;
}

std::string get_word(const Json& json, const std::string& key, const std::string& where) {
  const auto text = get<std::string>(json, key, where);
  if (!text.empty() && !is_word(text)) refuse_word(text, key, where);
  return text;
}

std::vector<std::string> get_words(const Json& json, const std::string& key, const std::string& where) {
  auto words = get<std::vector<std::string>>(json, key, where);
  for (const std::string& word : words)
    if (!is_word(word)) refuse_word(word, key, where);
  return words;
}

std::string get_text(const Json& json, const std::string& key, const std::string& where) {
  return visible(get<std::string>(json, key, where));
}

} // namespace deepgen
