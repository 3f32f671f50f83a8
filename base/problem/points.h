// Points: the sizes at which kernels of a problem with ranges are compared.
#pragma once

#include "base/problem/problem.h"

#include <optional>
#include <string>
#include <vector>

namespace deepgen {

/// Of each range both ends (1 for 0) and powers of four between; and where tiles matter, above 64 of M, N and
/// K, one size between neighbours, at the golden section of their logarithms: a kernel whose tiles fill a
/// device at 256 rows may need two turns at 269. Powers are thinned evenly, so that there are at most `most`
/// in all. With several ranges the first, second, ... of each together, and the corners where one range is
/// least and the others are most. Ascending by the product of sizes. Without ranges: the sizes themselves. Of
/// an attention: the calls that it is tuned for.
std::vector<Sizes> default_points(const Problem&, size_t most = 10);

/// What a function of a problem with ranges is tuned for.
struct TunePoints {
  std::vector<Sizes> at;       ///< ascending by the product of sizes, each once; empty without ranges
  std::vector<double> weights; ///< how often each is called, to the others; not all 0
  size_t kernels = 16;         ///< at most so many are linked
  bool operator==(const TunePoints&) const = default;
};

constexpr size_t kMostPoints = 32, kMostKernels = 32; ///< that a user may ask for

/// default_points(), of equal weight; nothing without ranges.
TunePoints default_tune_points(const Problem&);
/// What a user says: `points` such as {"1", "64"}, with several ranges {"16x128"} in the order of M, N, K,
/// batch, and of an attention {"8x1x4096"} in the order of batch, queries and keys: those of its key. Empty:
/// the default ones. `weights`: as many, or none. Throws Error that names the value, `where`
/// and what is allowed.
TunePoints tune_points(const Problem&, const std::vector<std::string>& points,
                       const std::vector<double>& weights, size_t kernels, const std::string& where);
/// Throws Error unless they are of the problem, and their numbers in range.
void check_points(const Problem&, const TunePoints&, const std::string& where);
/// "64"; with several ranges "16x128".
std::string point_text(const Problem&, const Sizes&);

/// All that a call may pass, but 0.
SizeSpan all_calls(const Problem&);
size_t count_ranges(const Problem&);
/// As texts name it: "m", ..., "batch"; of an attention "queries" and "keys" for m and n.
std::string size_text(const Problem&, Size);
/// Of the sizes that are ranges: "m=16", "m=16 k=128".
std::string sizes_text(const Problem&, const Sizes&);
/// "m 1..63", "m 1..63, k 1..512".
std::string span_text(const Problem&, const SizeSpan&);

/// The points, and between neighbours of which one size alone differs more: a little above the lower one,
/// and the geometric mean. Each of those weighs as much as its neighbours do on average. There kernels of a
/// search that knows the points are compared once more. `dense`: also those of dense_points().
TunePoints final_points(const TunePoints&, bool dense = false);
/// Of fewer rows, kernels read the same.
inline constexpr int64_t dense_from = 16;
/// The points, and from 16 on as many between neighbours that each is at most 1.6 times the one before. Of a
/// GPU, where the time of a kernel goes up in steps: what is best at a size often is not at 1.6 times as
/// many.
TunePoints dense_points(const TunePoints&);
/// Of GEMMs on GPUs, unless a user has said where to tune: then the search has no more sizes than it was told
/// of.
bool wants_dense_points(const Problem&, const std::string& arch, const TunePoints&);
/// By the product of sizes, each once.
std::vector<Sizes> ascending(std::vector<Sizes>);
/// The first size that is a range, in the order of point_text().
std::optional<Size> split_size(const Problem&);

} // namespace deepgen
