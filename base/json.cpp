#include "base/json.h"

#include "base/files.h"

namespace deepgen {

Json parse_json(const std::string& text, const std::string& where) {
  try {
    return Json::parse(text);
  } catch (const nlohmann::json::parse_error& e) {
    throw Error("not valid JSON", where, e.what(), "restore the file from version control, or delete it");
  }
}

void check_schema(const Json& json, const std::string& schema, const std::string& where) {
  std::string found = get<std::string>(json, "schema", where);
  if (found != schema)
    throw Error("unknown schema '" + found + "'", where, "this version of DeepGen reads '" + schema + "'",
                "use the DeepGen version that wrote the file, or tune again");
}

Json read_json(const std::string& path, const std::string& schema) {
  Json json = parse_json(read_file(path), path);
  if (!schema.empty()) check_schema(json, schema, path);
  return json;
}

} // namespace deepgen
