#include "generator/space/order_estimate.h"

#include "base/text/error.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

namespace deepgen {
namespace {

/// What is slower by more than so much at a point is looked at only where no order is left without it.
constexpr double kFarBehind = 4;

struct Best {
  Choice choice;
  double seconds;
};

/// The best config of each order at a point.
std::map<std::string, Best> best_at(const Gemm& p, const std::string& arch, const Device& device,
                                    const SearchOptions& options, const Sizes& at, double far_behind) {
  std::map<std::string, Best> found;
  const Space space(problem_at(p, arch, at), arch, device, options);
  for (size_t rank = 0; rank < space.size() && space.cost(rank) <= far_behind * space.cost(0); ++rank) {
    const Choice c = space.choice(rank);
    std::string order = find_template(c.template_name).sum_order(p, arch, c.config);
    if (!found.count(order) && why_illegal(p, arch, device, c).empty())
      found.emplace(std::move(order), Best{c, space.cost(rank)});
  }
  return found;
}

std::vector<OrderEstimate> orders_within(const Gemm& p, const std::string& arch, const Device& device,
                                         const SearchOptions& options, const std::vector<Sizes>& at,
                                         double far_behind) {
  std::map<std::string, OrderEstimate> all;
  for (const Sizes& sizes : at)
    for (auto& [order, best] : best_at(p, arch, device, options, sizes, far_behind)) {
      OrderEstimate& e = all[order];
      e.order = order;
      e.best.push_back(best.choice), e.seconds.push_back(best.seconds);
    }
  std::vector<OrderEstimate> out;
  for (auto& [order, e] : all)
    if (e.best.size() == at.size()) out.push_back(std::move(e));
  return out;
}

double mean_of(const OrderEstimate& e, const std::vector<double>& weights) {
  double sum = 0;
  for (size_t i = 0; i < weights.size(); ++i)
    if (weights[i] > 0) sum += weights[i] * std::log(e.seconds[i]);
  return sum;
}

} // namespace

Gemm problem_at(const Gemm& p, const std::string& arch, const Sizes& at) {
  return arch == "cpu" ? p.at(at) : p.up_to(at);
}

std::vector<OrderEstimate> estimated_orders(const Gemm& p, const std::string& arch, const Device& device,
                                            const std::vector<Sizes>& at, const std::vector<double>& weights,
                                            const SearchOptions& options) {
  std::vector<OrderEstimate> orders = orders_within(p, arch, device, options, at, kFarBehind);
  if (orders.empty())
    orders = orders_within(p, arch, device, options, at, std::numeric_limits<double>::infinity());
  if (orders.empty())
    throw Error("no order of sums serves all sizes of a batch invariant function", p.key() + " on " + arch,
                "each order of its legal configs leaves out one of the points",
                "choose points in a narrower range, or leave BATCH_INVARIANT out");
  std::stable_sort(orders.begin(), orders.end(), [&](const OrderEstimate& x, const OrderEstimate& y) {
    return mean_of(x, weights) < mean_of(y, weights);
  });
  return orders;
}

} // namespace deepgen
