// Timing outside of a search: kernels against each other, and what a kernel differs from itself on this
// machine.
#pragma once

#include "measure/race/options.h"

#include <string>
#include <vector>

namespace deepgen {

/// Times kernels of one problem against the first of them, all in one process and on one device; prints a
/// line for each.
struct CompareCommand {
  std::vector<std::string> files;
  std::string device, output; ///< the output is JSON, "deepgen.compare/1"; empty: none
  std::string
      at; ///< sizes of the calls where problems have ranges: "m=64", "m=64 k=4096"; others are the largest
  bool vendor = false; ///< also the vendor's library: the best of its algorithms in this race
  bool serial = false; ///< on a GPU: every launch waits for the end of the one before
  MeasureOptions options;
};
void compare(const CompareCommand&);

/// Compares a kernel with itself as the finals compare candidates, many times over in several processes, and
/// prints how far from 1 the ratios were.
struct NoiseCommand {
  std::string file;   ///< of a kernel; empty: a loop on the CPU, reading memory on a GPU
  std::string device; ///< empty: that of `arch`
  std::string arch = "cpu", output;
  MeasureOptions options;
};
void noise(const NoiseCommand&);

} // namespace deepgen
