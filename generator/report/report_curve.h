// The curve of a function with a range: how fast its kernels, the default and the vendor's library are by
// size.
#pragma once

#include "base/json/json.h"
#include "generator/report/report_study.h"

namespace deepgen {

/// {"size": "m", "points": [{"at": 64, "text": "64", "flops": ..., "seconds": ..., "default": seconds,
/// "vendor": seconds where it was timed, "weight": 1}, ...], "borders": [5, 70, ...], "vendor": name}, from
/// the evidence of the study's entry in a lock, else from its hold-out. Borders are the first sizes of
/// further kernels. Null without ranges, and where neither has times.
Json curve_json(const Study&);

} // namespace deepgen
