// Plan: the candidates of one round of one search.
#pragma once

#include "base/kernel/config.h"
#include "base/problem/points.h"
#include "base/problem/problem.h"

namespace deepgen {

struct PlanSlot {
  Choice choice;
  std::string origin; ///< "default", "incumbent", "model", "neighbour", "random"
  /// Of a problem with ranges: the sizes at which it is timed; none: at all points.
  std::vector<Sizes> at = {};
};

/// Slot i of the build graph compiles slots[i]; a slot beyond the end compiles to an "empty" kernel file.
struct Plan {
  Problem problem;
  std::string arch = "cpu";
  int round = 0;
  std::vector<PlanSlot> slots;
  TunePoints points = {}; ///< of a problem with ranges: where its candidates are timed

  std::string serialize() const; ///< one slot a line, for people and diffs
  static Plan parse(const std::string& text, const std::string& where);
  static Plan read(const std::string& path);
};

} // namespace deepgen
