// What one line of a log says: a call of a library, as a problem of DeepGen's or with the reason why it is
// none.
#pragma once

#include "base/problem/problem.h"

#include <string>
#include <string_view>

namespace deepgen {

/// Why a call cannot become a problem. For people; calls of one reason are counted together.
struct Untranslatable {
  std::string why;
};

struct Call {
  Problem problem;
  int64_t calls = 1;
  double seconds = 0; ///< of one call; 0 when the log does not say
  double flops = 0;   ///< of one call, where it is known even if the call is no problem
};

/// One kind of log, of which each call is a line.
struct LogKind {
  const char* name;
  /// Whether a line is of this kind. Cheap, as all lines of all logs are asked.
  bool (*is)(std::string_view line);
  /// Reads such a line: false when it is no matrix product, and of no concern. Throws Untranslatable, with
  /// what it has read so far in the call, or Error.
  bool (*read)(std::string_view line, Call&);
  /// The kind that counts the same calls, where both are in one log; nullptr: none.
  const char* instead = nullptr;
};

extern const LogKind kHipblasltProfile, kHipblasltBench, kRocblasProfile, kRocblasBench, kCublasltTrace,
    kOnednnVerbose, kMklVerbose, kTunableOp;

} // namespace deepgen
