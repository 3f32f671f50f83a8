#include "base/json/json.h"

#include "base/files/files.h"
#include "base/text/text.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace deepgen {
namespace {

/// Sees a document while it is parsed, and refuses what the code behind it could not bear: copies and output
/// recurse as deep as the nesting, an object is searched linearly, and of a key that comes twice one value
/// would be lost.
class Limits {
public:
  explicit Limits(const std::string& where) : where_(where) {}

  bool operator()(int depth, Json::parse_event_t event, Json& value) {
    constexpr int kDeepest = 100;
    constexpr size_t kMostKeys = 10000;
    if (depth > kDeepest) refuse("values are nested more than " + std::to_string(kDeepest) + " deep");
    if (event == Json::parse_event_t::object_start) keys_.emplace_back();
    if (event == Json::parse_event_t::object_end) keys_.pop_back();
    if (event != Json::parse_event_t::key) return true;
    if (!keys_.back().insert(value.get<std::string>()).second)
      refuse("an object has the key " + excerpt(value) + " twice");
    if (keys_.back().size() > kMostKeys)
      refuse("an object has more than " + std::to_string(kMostKeys) + " keys");
    return true;
  }

private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw Error("not a file of DeepGen's", where_, why,
                "restore the file from version control, or delete it");
  }
  const std::string& where_;
  std::vector<std::set<std::string>> keys_; ///< of the objects that are open
};

} // namespace

Json parse_json(const std::string& text, const std::string& where) {
  try {
    return Json::parse(text, Limits(where));
  } catch (const Json::exception& e) { // of syntax; of range: 1e400
    throw Error("not valid JSON", where, e.what(), "restore the file from version control, or delete it");
  }
}

std::string dump_json(const Json& json) {
  return visible(json.dump(-1, ' ', false, Json::error_handler_t::replace));
}

std::string excerpt(const Json& json) {
  constexpr size_t kLongest = 200;
  const std::string text = dump_json(json);
  return text.size() > kLongest ? visible(text.substr(0, kLongest)) + "..." : text;
}

void check_counts(const std::string& key, const std::string& where, const int64_t* begin, const int64_t* end,
                  int64_t least) {
  for (const int64_t* at = begin; at != end; ++at)
    if (*at < least || *at > int64_t(1) << 50)
      throw Error("field '" + key + "' is out of range: " + std::to_string(*at), where, "",
                  "numbers from " + std::to_string(least) + " to 2^50");
}

int64_t get_count(const Json& json, const std::string& key, const std::string& where, int64_t least) {
  const auto value = get<int64_t>(json, key, where);
  check_counts(key, where, &value, &value + 1, least);
  return value;
}

double finite(double value) {
  constexpr double kLargest = 1e30;
  return std::isnan(value) ? kLargest : std::clamp(value, -kLargest, kLargest);
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
