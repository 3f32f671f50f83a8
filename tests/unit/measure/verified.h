// Verifies kernels for test_kernels' small problem, as deepgen-measure does.
#pragma once

#include "measure/cpu/gemm_cases.h"
#include "measure/cpu/verify_all.h"
#include "measure/process/progress.h"
#include "measure/process/stopwatch.h"
#include "test_kernels.h"

namespace deepgen::test_kernels {

inline void verify_small(const std::vector<Candidate*>& list, double call_seconds = 10) {
  GemmCases cases(small_problem(), 1);
  VerifyOptions options;
  options.call_seconds = call_seconds;
  options.deadline = wall_seconds() + 60;
  Progress progress("test");
  verify_all(list, cases, options, progress);
}

/// What comes of a candidate with these kernels.
inline Record verified(std::vector<Kernel> kernels, double call_seconds = 10) {
  Candidate c;
  c.file.problem = small_problem();
  c.file.kernels = std::move(kernels);
  c.record.status = "";
  verify_small({&c}, call_seconds);
  return c.record;
}

} // namespace deepgen::test_kernels
