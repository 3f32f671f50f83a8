// What a function with ranges is tuned for, in plans and logs.
#pragma once

#include "base/json/json.h"
#include "base/problem/points.h"

namespace deepgen {

/// {"at": [[m, n, k, batch], ...], "weights": [...], "kernels": 6}
Json tune_points_json(const TunePoints&);
/// The field `key`; default_tune_points() when it is absent. Throws Error when it is not of the problem.
TunePoints get_tune_points(const Json&, const std::string& key, const Problem&, const std::string& where);

} // namespace deepgen
