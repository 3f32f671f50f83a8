// Reading JSON that people and crashed processes may have damaged: every error names the file, the key, the value.
#pragma once

#include "base/config.h"
#include "base/error.h"

namespace deepgen {

/// Parses `text`; throws Error with `where` on a syntax error.
Json parse_json(const std::string& text, const std::string& where);
/// Reads and parses a file, and checks its "schema" field when `schema` is not empty.
Json read_json(const std::string& path, const std::string& schema = "");
/// The field `key` of object `json` as T; throws Error naming `where`, the key and the value.
template <typename T> T get(const Json& json, const std::string& key, const std::string& where) {
  auto it = json.is_object() ? json.find(key) : json.end();
  if (!json.is_object() || it == json.end()) throw Error("missing field '" + key + "'", where);
  try {
    return it->template get<T>();
  } catch (const nlohmann::json::exception&) {
    throw Error("field '" + key + "' has the wrong type: " + it->dump(), where);
  }
}
void check_schema(const Json& json, const std::string& schema, const std::string& where);

} // namespace deepgen
