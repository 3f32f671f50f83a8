#include "base/kernel/span_json.h"

#include <array>

namespace deepgen {
namespace {

Json sizes_json(const Sizes& x) { return {x.m, x.n, x.k, x.batch}; }

} // namespace

Json span_json(const SizeSpan& x) { return {sizes_json(x.least), sizes_json(x.most)}; }

std::optional<SizeSpan> get_span(const Json& json, const std::string& key, const std::string& where) {
  if (!json.contains(key)) return std::nullopt;
  const auto ends = get<std::array<std::array<int64_t, size_count>, 2>>(json, key, where);
  for (const auto& end : ends) check_counts(key, where, end.data(), end.data() + end.size());
  const auto [least, most] = ends;
  for (size_t i = 0; i < size_count; ++i)
    if (least[i] > most[i]) throw Error("field '" + key + "' is an empty range", where, excerpt(json));
  return SizeSpan{{least[0], least[1], least[2], least[3]}, {most[0], most[1], most[2], most[3]}};
}

} // namespace deepgen
