#include "measure/commands/starters.h"

#include "base/json/json.h"
#include "measure/cpu/gemm_subject.h"
#include "measure/cpu/thread_call.h"
#include "measure/gpu/cuda_bench.h"

#include <algorithm>
#include <cstdio>
#include <limits>

namespace deepgen {
namespace {

// Of 235 finals in benchmarks/gpu/results, the library took 0.4 to 1.9 s for its answer, and had 8 algorithms
// or fewer in nine of ten; kernels were loaded in 1.8 s or less in nine of ten.
constexpr double kAsking = 2, kLoading = 1.8;
constexpr size_t kAlgorithms = 8;

} // namespace

FinalsField expected_field(const Device& device, const MeasureOptions& o) {
  FinalsField f;
  f.vendor = o.vendor;
  if (device.is_cpu()) return f;
  f.asking = kAsking, f.algorithms = kAlgorithms;
  f.starting = kLoading + cuda::Bench::full_heat + cuda::Bench::again_heat, f.rest = cuda::Bench::burst_rest;
  f.regime = o.regime;
  f.extra = f.regime == TunedFor::sustained ? 0 : 1; // serial calls
  return f;
}

double finals_reserve(const Device& device, const MeasureOptions& o) {
  // In budgets: those with the fewest rounds may take more than one. Calls of no length: the time of rounds
  // is not known yet.
  constexpr double kBudgets = 1.5;
  constexpr size_t kFinalists = 6;
  const Starters all = starters_within(std::numeric_limits<double>::infinity(), 0,
                                       std::vector<double>(kFinalists, 0), expected_field(device, o));
  return std::max(kBudgets * o.seconds, all.needed);
}

Starters fit(FinalistSet& selection, double seconds, double preparing, const FinalsField& field,
             MeasureOptions& options) {
  std::vector<double> calls;
  for (const Finalist& f : selection.finalists()) calls.push_back(f.seconds);
  const bool ranged = !calls.empty() && selection.finalists().front().file.problem.ranged();
  if (ranged) return {calls.size(), options.vendor, 0};
  FinalsField here = field;
  if (!calls.empty() && shared_by(selection.finalists().front().file.problem) > 1)
    here.vendor_rest = vendor_rest;
  const Starters s = starters_within(seconds, preparing, calls, here);
  if (s.finalists) selection.keep_first(s.finalists);
  options.vendor &= s.vendor;
  return s;
}

RecordLog not_begun(const FinalistSet& selection, const Json& environment, const Starters& s,
                    const SearchTime& time, double left) {
  RecordLog log;
  log.stable = false;
  log.environment = environment;
  for (const Finalist& f : selection.finalists()) {
    log.records.push_back(f.record);
    log.records.back().status = "dropped", log.records.back().detail = "its search had no time for finals";
  }
  char text[120];
  std::snprintf(text, sizeof text, "its finals would take %.3g s, and %.3g s are left", s.needed, left);
  note_out_of_time(log.environment, time, text);
  return log;
}

} // namespace deepgen
