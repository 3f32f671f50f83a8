// What the programs of GEMMs share: the rows of the suite, and whether two programs agree.
#pragma once

#include "peers.h"
#include "rounds.h"

#include <suite.h>

#include <cmath>
#include <vector>

inline const std::vector<Row>& rows() {
  static const std::vector<Row> all = {
#include "suite_rows.inc"
  };
  return all;
}

/// Whether two programs may have computed the same: `count` elements of D.
inline bool agrees(const Row& row, const float* d, const float* expected, size_t count) {
  for (size_t i = 0; i < count; ++i)
    if (!(std::abs(d[i] - expected[i]) <= 2e-5f * std::sqrt(float(row.k)) + 1e-5f * std::abs(expected[i])))
      return false;
  return true;
}
