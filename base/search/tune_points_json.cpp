#include "base/search/tune_points_json.h"

#include <array>

namespace deepgen {

Json tune_points_json(const TunePoints& points) {
  Json at = Json::array();
  for (const Sizes& x : points.at) at.push_back({x.m, x.n, x.k, x.batch});
  return {{"at", at}, {"weights", points.weights}, {"kernels", points.kernels}};
}

TunePoints get_tune_points(const Json& json, const std::string& key, const Problem& p,
                           const std::string& where) {
  if (!json.contains(key)) return default_tune_points(p);
  const Json& list = json[key];
  if (!list.is_object()) throw Error("field '" + key + "' is no object", where, excerpt(list));
  TunePoints points;
  for (const auto& at : get<std::vector<std::array<int64_t, size_count>>>(list, "at", where))
    points.at.push_back({at[0], at[1], at[2], at[3]});
  points.weights = get<std::vector<double>>(list, "weights", where);
  points.kernels = size_t(get_count(list, "kernels", where, 1));
  check_points(p, points, where);
  return points;
}

} // namespace deepgen
