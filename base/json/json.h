// Reading JSON that people and crashed processes may have damaged: every error names the file, the key, the
// value.
#pragma once

#include "base/json/json_fwd.h"
#include "base/text/error.h"

#include <array>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <type_traits>
#include <vector>

namespace deepgen {

/// Parses `text`; throws Error with `where` on a syntax error, on a key that an object has twice, and on
/// nesting or objects beyond what any file of ours has.
Json parse_json(const std::string& text, const std::string& where);
/// Reads and parses a file, and checks its "schema" field when `schema` is not empty.
Json read_json(const std::string& path, const std::string& schema = "");
/// As one line. Bytes that are no UTF-8, such as those of a compiler's message cut short, become U+FFFD.
std::string dump_json(const Json&);
/// The same for an error message: cut when long.
std::string excerpt(const Json&);
/// A number that JSON can hold. It has neither NaN nor infinity: it would say null, and no reader takes that.
double finite(double value);
void check_schema(const Json& json, const std::string& schema, const std::string& where);

namespace json_types {
template <typename T>
struct Sequence : std::false_type {};
template <typename T>
struct Sequence<std::vector<T>> : std::true_type {};
template <typename T, size_t N>
struct Sequence<std::array<T, N>> : std::true_type {
  static constexpr size_t size = N;
};
} // namespace json_types

/// Whether `json` is a T as it stands. The library's own conversion takes true, 1.5 and 1e300 for an integer,
/// and the first two of four numbers for a pair.
template <typename T>
bool is_a(const Json& json) {
  if constexpr (std::is_same_v<T, Json>) {
    return true;
  } else if constexpr (std::is_same_v<T, bool>) {
    return json.is_boolean();
  } else if constexpr (std::is_integral_v<T>) {
    if (json.is_number_unsigned()) return std::in_range<T>(json.template get<uint64_t>());
    return json.is_number_integer() && std::in_range<T>(json.template get<int64_t>());
  } else if constexpr (std::is_floating_point_v<T>) {
    return json.is_number();
  } else if constexpr (json_types::Sequence<T>::value) {
    if (!json.is_array()) return false;
    if constexpr (requires { json_types::Sequence<T>::size; })
      if (json.size() != json_types::Sequence<T>::size) return false;
    for (const Json& item : json)
      if (!is_a<typename T::value_type>(item)) return false;
    return true;
  } else {
    static_assert(std::is_same_v<T, std::string>);
    return json.is_string();
  }
}

/// The field `key` of object `json` as T; throws Error naming `where`, the key and the value.
template <typename T>
T get(const Json& json, const std::string& key, const std::string& where) {
  auto it = json.is_object() ? json.find(key) : json.end();
  if (!json.is_object() || it == json.end()) throw Error("missing field '" + key + "'", where);
  if (!is_a<T>(*it)) throw Error("field '" + key + "' has the wrong type: " + excerpt(*it), where);
  return it->template get<T>();
}

/// The field as a number of bytes, threads and the like: at least `least` and at most 2^50, so that
/// arithmetic on it neither divides by zero nor overflows at once.
int64_t get_count(const Json& json, const std::string& key, const std::string& where, int64_t least = 0);
/// For each item of a field that is a list.
void check_counts(const std::string& key, const std::string& where, const int64_t* begin, const int64_t* end,
                  int64_t least = 0);

} // namespace deepgen
