// Regression: what learns times from trials. Rows are configs, columns their features.
#pragma once

#include <cstddef>
#include <vector>

namespace deepgen {

class Table {
public:
  explicit Table(size_t columns) : columns_(columns) {}
  size_t columns() const { return columns_; }
  size_t rows() const { return columns_ ? values_.size() / columns_ : 0; }
  void append(const std::vector<float>& row) { values_.insert(values_.end(), row.begin(), row.end()); }
  const float* row(size_t i) const { return values_.data() + i * columns_; }
  const float* data() const { return values_.data(); }

private:
  size_t columns_;
  std::vector<float> values_;
};

/// Fits `labels` over `known` (at least one row) and returns what it expects for each row of `asked`.
using Regression = std::vector<double> (*)(const Table& known, const std::vector<float>& labels,
                                           const Table& asked);

/// Gradient-boosted regression trees after Friedman (2001): 60 trees of depth 4, exact greedy splits, squared
/// error. The same input gives the same result on every host with IEEE arithmetic.
std::vector<double> boosted_trees(const Table& known, const std::vector<float>& labels, const Table& asked);

/// The same model by libxgboost.
std::vector<double> xgboost_trees(const Table& known, const std::vector<float>& labels, const Table& asked);
/// Throws Error, with the way to get it, when deepgen was built without libxgboost.
void require_xgboost();

} // namespace deepgen
