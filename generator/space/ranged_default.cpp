#include "generator/space/ranged_default.h"

#include "base/problem/partition.h"
#include "base/ranges/crossover.h"
#include "generator/space/order_estimate.h"

#include <algorithm>

namespace deepgen {
namespace {

constexpr size_t kMostEstimated = 6; ///< kernels: what only an estimate tells apart is not worth more code

/// The estimate at the points.
class Estimates {
public:
  Estimates(const Problem& p, const std::string& arch, const Device& device, const TunePoints& tuned)
      : problem_(p), arch_(arch), device_(device), points_(tuned.at), weights_(tuned.weights) {}

  const std::vector<Sizes>& points() const { return points_; }
  const std::vector<double>& weights() const { return weights_; }

  double cost(const Choice& c, const Sizes& at) const {
    return find_template(c.template_name).cost(problem_at(problem_, arch_, at), device_, c.config);
  }

  /// The best config at each point, of those that serve the whole range; of a batch invariant problem, all of
  /// one order of sums.
  std::vector<Choice> best() const {
    if (problem_.batch_invariant())
      return estimated_orders(problem_, arch_, device_, points_, weights_).front().best;
    std::vector<Choice> all;
    for (const Sizes& at : points_) all.push_back(best(at));
    return all;
  }

  Choice best(const Sizes& at) const {
    const Space space(problem_at(problem_, arch_, at), arch_, device_);
    for (size_t rank = 0; rank < space.size(); ++rank)
      if (const Choice c = space.choice(rank); why_illegal(problem_, arch_, device_, c).empty()) return c;
    return Space(problem_, arch_, device_).default_choice();
  }

  /// The first size above b.low at which the second one is no slower, up to b.high, where it is not.
  int64_t border(const Choice& first, const Choice& second, const PartitionBorder& b) const {
    Sizes at = b.at;
    int64_t low = b.low, high = b.high;
    while (high - low > 1) {
      at[b.size] = low + (high - low) / 2;
      (cost(second, at) <= cost(first, at) ? high : low) = at[b.size];
    }
    return high;
  }

private:
  const Problem& problem_;
  const std::string& arch_;
  const Device& device_;
  std::vector<Sizes> points_;
  std::vector<double> weights_;
};

std::vector<Choice> candidates_of(const Estimates& estimates) {
  std::vector<Choice> all;
  for (const Choice& c : estimates.best())
    if (std::find(all.begin(), all.end(), c) == all.end()) all.push_back(c);
  return all;
}

Crossover crossover_of(const Estimates& estimates, const std::vector<Choice>& candidates,
                       size_t most_kernels) {
  std::vector<CrossoverKernel> kernels;
  for (const Choice& c : candidates) {
    CrossoverKernel k{c.text(), 0, {}};
    for (const Sizes& at : estimates.points()) k.seconds.push_back(estimates.cost(c, at));
    kernels.push_back(std::move(k));
  }
  CrossoverRules rules;
  rules.most_kernels = std::min(most_kernels, kMostEstimated);
  return choose_crossover(kernels, estimates.weights(), rules);
}

} // namespace

std::vector<RangedChoice> ranged_default(const Problem& p, const std::string& arch, const Device& device,
                                         const TunePoints& points) {
  const Estimates estimates(p, arch, device, points);
  const std::vector<Choice> candidates = candidates_of(estimates);
  const std::vector<size_t> best = crossover_of(estimates, candidates, points.kernels).at;
  std::vector<PartitionPoint> shared;
  for (size_t i = 0; i < best.size(); ++i) shared.push_back({estimates.points()[i], {best[i]}});
  const Partition partition = partition_of(all_calls(p), shared, [&](const PartitionBorder& b) {
    return estimates.border(candidates[b.before], candidates[b.after], b);
  });
  std::vector<RangedChoice> choices;
  for (const PartitionBox& box : partition.boxes) choices.push_back({candidates[box.kernel], box.span});
  return choices;
}

} // namespace deepgen
