// Evidence: what a lock entry says of how its config was chosen, and the same as a line for people. It
// decides nothing: entries of earlier versions have less of it.
#pragma once

#include "base/kernel/device.h"
#include "base/search/decide.h"

#include <cmath>
#include <vector>

namespace deepgen {

struct Tuned {
  std::string problem, arch;
  Device device;
};

/// `logs`: of the whole search, for how much of the space it tried.
Json evidence_of(const Decision&, const RecordLog& final, const std::vector<RecordLog>& logs, const Tuned&);

/// As evidence has its numbers: more digits would only make noise in diffs.
inline double four_places(double x) { return std::round(x * 1e4) / 1e4; }

/// "1.083x vs default [1.071, 1.094] (95 % CI, 40 paired rounds), noise floor 0.4 %, cold-graph/1, NVIDIA
/// H100, driver 570.86, SM clock 1.62/1.61 GHz, 200 of 11352 legal candidates, 1.031x vs cublaslt 13.1.0
/// [1.020, 1.043]: win". Says what the evidence has.
std::string statement(const Json& evidence, const Device&);

} // namespace deepgen
