#include "base/config.h"

#include "base/json.h"

#include <sstream>

namespace deepgen {

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
  for (const auto& [key, value] : values) out += (out.empty() ? "" : " ") + key + "=" + std::to_string(value);
  return out;
}

Config Config::parse(const std::string& text) {
  Config config;
  std::istringstream in(text);
  for (std::string word; in >> word;) {
    size_t eq = word.find('=');
    try {
      size_t end = 0;
      if (eq == std::string::npos || eq == 0) throw std::invalid_argument(word);
      int64_t value = std::stoll(word.substr(eq + 1), &end);
      if (end != word.size() - eq - 1) throw std::invalid_argument(word);
      config.set(word.substr(0, eq), value);
    } catch (const std::exception&) {
      throw Error("'" + word + "' is not of the form parameter=integer", text);
    }
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
    if (!is_a<int64_t>(value)) throw Error("a config value must be an integer of 64 bits", key + " = " + excerpt(value));
    config.values.emplace_back(key, value.get<int64_t>());
  }
  return config;
}

} // namespace deepgen
