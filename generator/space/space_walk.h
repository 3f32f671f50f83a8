// Which configs of one template are legal: a walk over the grid of its parameters, on all cores.
#pragma once

#include "generator/space/space.h"
#include "generator/space/space_rules.h"

#include <optional>
#include <vector>

namespace deepgen {

/// What a walk finds, or one part of it.
struct Walked {
  struct Point {
    double cost;
    uint64_t grid; ///< the config's place: mixed radix over the parameters' values
  };
  std::vector<Point> points;
  uint64_t left_out = 0; ///< legal ones, by patterns or workspace
};

/// `parameters`: of `family`, with the values that the rules let be visited.
struct Ground {
  const Family& family;
  const std::vector<RuledParameter>& parameters;
  const SpaceRules& rules;
  const Problem& problem;
  const Device& device;
};

/// All legal configs, in the order of the grid, however many threads there are. Throws Error where it would
/// visit, or find, too many; `found` before, in other families, count.
Walked walk_grid(const Ground&, size_t found);
/// The points of the grid given, as far as they are legal.
Walked walk_points(const Ground&, const std::vector<uint64_t>& grid);

} // namespace deepgen
