// Whether a kernel computes the right thing and nothing else: what all operators' cases have in common.
#pragma once

#include "measure/values/loader.h"

#include <algorithm>
#include <functional>

namespace deepgen {

struct Verdict {
  std::string status = "ok", detail; ///< "ok", "wrong", "out_of_bounds", "varies"
  double error = 0;                  ///< largest error relative to its tolerance
  std::string row_bits = {};         ///< of a batch invariant problem: Record::row_bits
};

/// Runs cases until one fails, of which the verdict then tells the name; else the largest error counts.
template <typename Cases, typename Name, typename Run>
Verdict verify_in_turn(const Problem& p, const Cases& cases, Name name_of, Run run) {
  Verdict worst;
  for (const auto& each : cases) {
    Verdict one = run(each);
    if (one.status != "ok") {
      one.detail += " (case '" + std::string(std::invoke(name_of, each)) + "' of " + p.key() + ")";
      return one;
    }
    worst.error = std::max(worst.error, one.error);
  }
  return worst;
}

/// Whether the kernels of one file that add up over K in one order, for one problem, have the same bits.
class SameOrder {
public:
  /// Words for a kernel that has others than an earlier one; empty when it is good.
  std::string add(const Kernel&, const Verdict&);

private:
  struct Seen {
    std::string problem, order, bits, config;
  };
  std::vector<Seen> seen_;
};

/// Operands and expected results of every case of one problem, computed once and shared by all candidates:
/// workers see them through fork(2). Inputs are read-only, so that a write to one is a fault.
class CaseSet {
public:
  CaseSet() = default;
  CaseSet(const CaseSet&) = delete;
  virtual ~CaseSet() = default;

  virtual Problem problem() const = 0;
  /// Runs `kernel` through all cases; `before` is called with the case's name ahead of each.
  virtual Verdict verify(const LoadedKernel& kernel, int64_t workspace,
                         const std::function<void(const std::string&)>& before) = 0;
};

/// How the grid is shared out among calls, as threads would.
enum class GridCut { whole, rows, columns, entries };
/// The ranges of `cut`, last first: no call may depend on another having run.
std::vector<TileRanges> cut_ranges(const TileRanges& full, GridCut cut);

/// Seconds after which one verified call counts as hanging: `base`, or 20 times what a slow kernel needs.
double call_limit(const Problem&, double base);

} // namespace deepgen
