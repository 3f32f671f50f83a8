// Results: what tuning gained over a reference, problem by problem, as CSV and as sums.
#pragma once

#include "generator/report/report_study.h"

namespace deepgen {

struct ResultsInput {
  std::vector<Study> studies;    ///< with their evidence where there is a reference lock
  std::optional<Lock> reference; ///< absent: the vendor's library
  std::string reference_name;    ///< of the lock's file
  std::optional<double> uplift;  ///< kept is what is so many times as fast; absent: faster beyond the noise
};

/// One problem on one device.
struct ResultRow {
  std::string problem, name, arch, device;
  double calls = 1, share = 0; ///< share: of the reference's time for all problems of the device
  std::string reference;       ///< "openblas 0.3.21"; the lock's file and config; empty: there is none
  std::optional<double> reference_seconds, tuned_seconds; ///< of a call
  std::optional<Speed> uplift;                            ///< times as fast as the reference
  std::string regime;                                     ///< tuned for; empty: a CPU, or sustained
  std::map<std::string, double> regimes; ///< times as fast as the vendor, in each regime that was measured
  double error = 0;                      ///< of the tuned kernel, over what is allowed
  std::string verdict; ///< "win", "tie", ...; "same": the reference's own; why there is nothing to compare
  bool kept = false;
};
/// By device and problem. What has no winner has a row, too.
std::vector<ResultRow> result_rows(const ResultsInput&);

/// Of all rows, or of those that are kept.
std::string results_csv(const std::vector<ResultRow>&, bool only_kept);

/// Over all rows of one device: what is not kept runs at the reference's time.
struct ResultSums {
  size_t rows = 0, kept = 0;
  size_t without_times = 0; ///< rows without a reference's time: they weigh nothing
  double average_kept = 0;  ///< mean of uplift - 1 over the kept
  double average = 0;       ///< mean of uplift - 1 over all rows, 0 for what is not kept
  double weighted = 0;      ///< sum of calls x reference's time, over that with the kept ones' own, - 1
};
ResultSums sums_of(const std::vector<ResultRow>&);

/// A paragraph a device.
std::string results_text(const std::vector<ResultRow>&);

} // namespace deepgen
