#include "base/kernel/config.h"

#include "base/json/json.h"
#include "base/text/text.h"

#include <charconv>
#include <sstream>

namespace deepgen {
namespace {

/// `text`: the whole config.
int64_t value_of(const std::string& word, size_t equals, const std::string& text) {
  const char *begin = word.data() + equals + 1, *end = word.data() + word.size();
  const std::string value(begin, end);
  int64_t number = 0;
  const auto [stop, status] = std::from_chars(begin, end, number);
  if (status == std::errc() && stop == end) return number;
  throw Error(
      "'" + word + "' is not of the form parameter=integer", text,
      status == std::errc::result_out_of_range ? value + " takes more than 64 bits"
                                               : "'" + value + "' is no integer",
      "`deepgen space explain` prints the parameters with their values, and with --config what is wrong");
}

} // namespace

int64_t Config::operator[](const std::string& name) const {
  for (const auto& [key, value] : values)
    if (key == name) return value;
  throw Error("config has no parameter '" + name + "'", text());
}

void Config::set(const std::string& name, int64_t value) {
  for (auto& [key, old] : values)
    if (key == name) {
      old = value;
      return;
    }
  values.emplace_back(name, value);
}

std::string Config::text() const {
  std::string out;
  char digits[24];
  for (const auto& [key, value] : values) {
    if (!out.empty()) out += ' ';
    out.append(key).append(1, '=').append(digits,
                                          std::to_chars(std::begin(digits), std::end(digits), value).ptr);
  }
  return out;
}

Config Config::parse(const std::string& text) {
  Config config;
  std::istringstream in(text);
  for (std::string word; in >> word;) {
    const size_t equals = word.find('=');
    if (equals == std::string::npos || equals == 0)
      throw Error("'" + word + "' is not of the form parameter=integer", text, "",
                  "write it as `deepgen space list` does: bm=128 bn=256");
    config.set(word.substr(0, equals), value_of(word, equals, text));
  }
  return config;
}

Json Config::to_json() const {
  Json json = Json::object();
  for (const auto& [key, value] : values) json[key] = value;
  return json;
}

Config Config::from_json(const Json& json) {
  if (!json.is_object()) throw Error("a config must be a JSON object", excerpt(json));
  Config config;
  for (const auto& [key, value] : json.items()) {
    if (!is_word(key))
      throw Error("a config's parameter is no word: " + excerpt(key), "", "letters, digits and _-.+ only");
    if (!is_a<int64_t>(value))
      throw Error("a config value must be an integer of 64 bits", key + " = " + excerpt(value));
    config.values.emplace_back(key, value.get<int64_t>());
  }
  return config;
}

} // namespace deepgen
