#include "base/search/sum_orders.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

namespace deepgen {
namespace {

/// Of the logarithms of the fastest ratio at each point; infinite where there is none.
double mean_of(const std::vector<const Record*>& records, const std::vector<Sizes>& at,
               const std::vector<double>& weights) {
  double sum = 0, total = 0;
  for (size_t i = 0; i < at.size(); ++i) {
    double best = std::numeric_limits<double>::infinity();
    for (const Record* r : records)
      if (const Timing* t = r->at(at[i])) best = std::min(best, std::max(t->ratio, 1e-9));
    if (std::isinf(best)) return best;
    sum += weights[i] * std::log(best), total += weights[i];
  }
  return total > 0 ? sum / total : 0;
}

} // namespace

std::vector<const Record*> of_order(const std::vector<const Record*>& records, const std::string& order) {
  std::vector<const Record*> out;
  for (const Record* r : records)
    if (order.empty() || r->sum_order == order) out.push_back(r);
  return out;
}

std::vector<std::string> orders_by_time(const std::vector<const Record*>& records,
                                        const std::vector<Sizes>& at, const std::vector<double>& weights) {
  std::map<std::string, std::vector<const Record*>> orders;
  for (const Record* r : records)
    if (r->ok() && !r->sum_order.empty()) orders[r->sum_order].push_back(r);
  std::vector<std::pair<double, std::string>> means;
  for (const auto& [order, list] : orders)
    if (const double mean = mean_of(list, at, weights); std::isfinite(mean)) means.emplace_back(mean, order);
  std::sort(means.begin(), means.end());
  std::vector<std::string> out;
  for (const auto& [mean, order] : means) out.push_back(order);
  return out;
}

void reject_other_bits(const std::vector<Record*>& records) {
  const auto counts = [](const Record& r) {
    return (r.ok() || r.status.empty()) && !r.sum_order.empty() && !r.row_bits.empty();
  };
  for (const Record* first : records) {
    if (!counts(*first)) continue;
    const std::string order = first->sum_order;
    std::vector<std::pair<const Record*, size_t>> bits; // who has them first, and how many have them
    for (const Record* r : records) {
      if (!counts(*r) || r->sum_order != order) continue;
      const auto same = std::find_if(bits.begin(), bits.end(),
                                     [&](const auto& b) { return b.first->row_bits == r->row_bits; });
      if (same == bits.end())
        bits.emplace_back(r, 1);
      else
        ++same->second;
    }
    const Record& right = *std::max_element(bits.begin(), bits.end(), [](const auto& x, const auto& y) {
                             return x.second < y.second;
                           })->first;
    const std::string name = right.choice.text(), expected = right.row_bits;
    for (Record* r : records) {
      if (!counts(*r) || r->sum_order != order || r->row_bits == expected) continue;
      r->status = "varies";
      r->detail =
          "a row's bits are others than those of " + name + ", which adds up in the same order: " + order;
    }
  }
}

} // namespace deepgen
