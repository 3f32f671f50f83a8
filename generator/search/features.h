// Features: a config as numbers that a regression can learn from.
#pragma once

#include "generator/search/regression.h"
#include "generator/space/space.h"

namespace deepgen {

/// Columns: the template, the estimated cost, then every parameter name of any template. A parameter that a
/// template lacks is -1.
class Features {
public:
  explicit Features(const Space&);
  size_t columns() const { return columns_; }
  std::vector<float> row(size_t rank) const;
  Table table(const std::vector<size_t>& ranks) const;

private:
  const Space& space_;
  size_t columns_ = 2;
  std::vector<std::vector<size_t>> column_of_; ///< per family and parameter
};

} // namespace deepgen
