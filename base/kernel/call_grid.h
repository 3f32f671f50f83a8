// The grids of a kernel's calls, as far as sizes and the device tell them: what a record of a search keeps of
// a kernel, so that its time between two measured sizes can be told without it.
#pragma once

#include "base/json/json.h"
#include "base/kernel/device.h"
#include "base/kernel/kernel.h"

#include <array>
#include <string>
#include <vector>

namespace deepgen {

/// Of one launch.
struct CallGrid {
  std::array<int64_t, 3> most{1, 1, 1}; ///< blocks in each direction, of the largest call
  std::array<SizeRule, 3> rules{};      ///< and of any, where that follows from its sizes
  int64_t resident = 0;                 ///< blocks that the device runs at a time; 0: not known
  bool operator==(const CallGrid&) const = default;

  double blocks(const Sizes&) const; ///< no less than 1, where numbers are not hostile
  double waves(const Sizes&) const;  ///< turns of the device; 0: not known
};

/// In the order of its launches. None on the CPU, whose calls have no blocks.
std::vector<CallGrid> grids_of(const Kernel&, const Device&);

/// The sizes in (low, high] along one range, beside `at` of the others, at which a call has more blocks than
/// one of a size less. Nothing where that is almost everywhere, at more than `most` sizes.
std::vector<int64_t> grid_steps(const std::vector<CallGrid>&, const Sizes& at, Size along, int64_t low,
                                int64_t high, size_t most);

Json to_json(const std::vector<CallGrid>&);
/// Throws Error when they are malformed, or out of range.
std::vector<CallGrid> grids_from(const Json& list, const std::string& where);

} // namespace deepgen
