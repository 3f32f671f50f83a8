// Workload: the problems of a program with how often and how long they run. The committed file workload.json
// (docs/workloads.md); no dates, hosts or paths.
#pragma once

#include "workload/log/tally.h"

#include <string>
#include <vector>

namespace deepgen {

struct WorkloadLog {
  std::string name;                                   ///< of the file, without its folder
  std::vector<std::pair<std::string, int64_t>> kinds; ///< lines of each kind
  int64_t lines = 0;                                  ///< all of them
};

/// Of a problem with a range: the calls of one size.
struct WorkloadPoint {
  int64_t value = 1, calls = 1;
  double seconds = 0; ///< of one call
  bool timed = false; ///< false: an estimate

  double weight() const { return double(calls) * seconds; }
};

struct WorkloadProblem {
  std::string name; ///< of the function: an identifier, derived from the problem
  Problem problem;
  int64_t calls = 1;
  double seconds = 0;          ///< of one call
  bool timed = false;          ///< false: an estimate
  std::vector<LogPlace> lines; ///< the first few
  /// Of a problem that merge_ranges() has made, or whoever wrote the file: its calls, by size ascending.
  std::vector<WorkloadPoint> points = {};

  double weight() const { return double(calls) * seconds; }
};

/// What there is no problem for.
struct WorkloadSkipped {
  std::string why, example;
  int64_t calls = 0;
  double seconds = 0; ///< all of it together; 0: not known
  std::vector<LogPlace> lines;
};

struct Workload {
  static constexpr const char* schema = "deepgen.workload/1";
  static constexpr size_t most_problems = 100'000;

  /// What lay under the threshold.
  struct Below {
    int64_t problems = 0, calls = 0;
    double seconds = 0;
  };

  std::vector<WorkloadLog> logs;
  std::vector<WorkloadProblem> problems; ///< the heaviest first
  Below below;
  std::vector<WorkloadSkipped> skipped; ///< the heaviest first

  /// Throws Error on anything that is not as serialize() writes it, except for shares, which follow from the
  /// rest.
  static Workload parse(const std::string& text, const std::string& where);
  /// One problem a line, which CMake takes apart.
  std::string serialize() const;

  double seconds() const; ///< of everything: problems, what lay below, what was skipped
  double skipped_seconds() const;
  /// Moves the problems whose share is less to `below`, and returns them.
  std::vector<WorkloadProblem> drop_below(double share);
  /// Puts the heaviest first, equal ones by their keys, and makes texts as the file has them.
  void arrange();
};

/// "m8_n6144_k2560_bf16_nt_bias": of one problem, and of no other.
std::string function_name(const Problem&);
/// Six digits, as files have it.
double rounded(double);

} // namespace deepgen
