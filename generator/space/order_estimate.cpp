#include "generator/space/order_estimate.h"

#include "base/text/error.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <utility>

namespace deepgen {
namespace {

/// What is slower by more than so much at a point is not looked for there: others of its order serve the
/// point.
constexpr double kFarBehind = 4;

struct Best {
  Choice choice;
  double seconds;
};

/// The best config of each order at a point.
std::map<std::string, Best> best_at(const Problem& p, const std::string& arch, const Device& device,
                                    const SearchOptions& options, const Sizes& at) {
  std::map<std::string, Best> found;
  const Space space(problem_at(p, arch, at), arch, device, options);
  for (size_t rank = 0; rank < space.size() && space.cost(rank) <= kFarBehind * space.cost(0); ++rank) {
    const Choice c = space.choice(rank);
    std::string order = space.families()[space.family(rank)].source->sum_order(p, arch, c.config);
    if (!found.count(order) && why_illegal(p, arch, device, c).empty())
      found.emplace(std::move(order), Best{c, space.cost(rank)});
  }
  return found;
}

/// A config at every point, of all that the points like. One that is not in a point's space, as one for a
/// larger K, serves it all the same.
OrderEstimate completed(const std::string& order, const std::vector<std::optional<Best>>& found,
                        const Problem& p, const std::string& arch, const Device& device,
                        const std::vector<Sizes>& at) {
  OrderEstimate e;
  e.order = order;
  for (size_t i = 0; i < at.size(); ++i) {
    std::optional<Best> best = found[i];
    for (size_t j = 0; j < at.size() && !found[i]; ++j) {
      if (!found[j]) continue;
      const Choice& c = found[j]->choice;
      const double seconds =
          find_template(c.template_name).cost(problem_at(p, arch, at[i]), device, c.config);
      if (!best || seconds < best->seconds) best = Best{c, seconds};
    }
    e.best.push_back(best->choice), e.seconds.push_back(best->seconds);
  }
  return e;
}

double mean_of(const OrderEstimate& e, const std::vector<double>& weights) {
  double sum = 0;
  for (size_t i = 0; i < weights.size(); ++i)
    if (weights[i] > 0) sum += weights[i] * std::log(e.seconds[i]);
  return sum;
}

} // namespace

Problem problem_at(const Problem& p, const std::string& arch, const Sizes& at) {
  return arch == "cpu" || p.op() != "gemm" ? p.at(at) : p.gemm().up_to(at);
}

std::vector<OrderEstimate> estimated_orders(const Problem& p, const std::string& arch, const Device& device,
                                            const std::vector<Sizes>& at, const std::vector<double>& weights,
                                            const SearchOptions& options) {
  std::map<std::string, std::vector<std::optional<Best>>> found; // by order, at each point
  for (size_t i = 0; i < at.size(); ++i)
    for (auto& [order, best] : best_at(p, arch, device, options, at[i])) {
      auto& list = found[order];
      list.resize(at.size());
      list[i] = best;
    }
  std::vector<OrderEstimate> orders;
  for (const auto& [order, list] : found) orders.push_back(completed(order, list, p, arch, device, at));
  if (orders.empty())
    throw Error("no config is legal for a batch invariant function", p.key() + " on " + arch,
                "no order of sums has one for any of its points",
                "allow more in the search file, or leave BATCH_INVARIANT out");
  std::stable_sort(orders.begin(), orders.end(), [&](const OrderEstimate& x, const OrderEstimate& y) {
    return mean_of(x, weights) < mean_of(y, weights);
  });
  return orders;
}

} // namespace deepgen
