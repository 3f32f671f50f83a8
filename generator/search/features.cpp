#include "generator/search/features.h"

#include <algorithm>
#include <cmath>
#include <map>

namespace deepgen {
namespace {

/// Costs are compared by their order only; far beyond any time, an infinite one stays a number.
float cost_feature(double cost) { return cost > 0 ? float(std::log(std::min(cost, 1e30))) : -100; }

} // namespace

Features::Features(const Space& space) : space_(space) {
  std::map<std::string, size_t> columns;
  for (const Family& family : space.families()) {
    column_of_.emplace_back();
    for (const Parameter& p : family.parameters) {
      const auto [it, is_new] = columns.emplace(p.name, columns_);
      columns_ += is_new;
      column_of_.back().push_back(it->second);
    }
  }
}

std::vector<float> Features::row(size_t rank) const {
  std::vector<float> row(columns_, -1);
  const size_t family = space_.family(rank);
  const auto& parameters = space_.families()[family].parameters;
  const std::vector<uint32_t> positions = space_.positions(rank);
  row[0] = float(family);
  row[1] = cost_feature(space_.cost(rank));
  for (size_t i = 0; i < positions.size(); ++i)
    row[column_of_[family][i]] = float(parameters[i].values[positions[i]]);
  return row;
}

Table Features::table(const std::vector<size_t>& ranks) const {
  Table table(columns_);
  for (size_t rank : ranks) table.append(row(rank));
  return table;
}

} // namespace deepgen
