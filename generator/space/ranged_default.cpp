#include "generator/space/ranged_default.h"

#include "base/search/crossover.h"
#include "generator/space/order_estimate.h"

#include <algorithm>
#include <map>

namespace deepgen {
namespace {

constexpr size_t kMostEstimated = 6; ///< kernels: what only an estimate tells apart is not worth more code

/// The estimate along one range, with the others at their most.
class Line {
public:
  Line(const Gemm& p, const std::string& arch, const Device& device, const TunePoints& tuned)
      : problem_(p), arch_(arch), device_(device) {
    std::map<int64_t, double> weights; // of the values of the size
    for (size_t i = 0; i < tuned.at.size(); ++i) weights[tuned.at[i][size()]] += tuned.weights[i];
    for (const auto& [value, weight] : weights) {
      points_.push_back(p.sizes());
      points_.back()[size()] = value;
      weights_.push_back(weight);
    }
  }

  /// The one that is split.
  Size size() const { return *split_size(problem_); }
  const std::vector<Sizes>& points() const { return points_; }
  const std::vector<double>& weights() const { return weights_; }

  double cost(const Choice& c, const Sizes& at) const {
    return find_template(c.template_name).cost(problem_at(problem_, arch_, at), device_, c.config);
  }

  /// The best config at each point, of those that serve the whole range; of a batch invariant problem, all of
  /// one order of sums.
  std::vector<Choice> best() const {
    if (problem_.batch_invariant)
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

  /// The first size above `low` at which the second one is no slower, up to `high`, where it is not.
  int64_t border(const Choice& first, const Choice& second, int64_t low, int64_t high) const {
    Sizes at = problem_.sizes();
    while (high - low > 1) {
      at[size()] = low + (high - low) / 2;
      (cost(second, at) <= cost(first, at) ? high : low) = at[size()];
    }
    return high;
  }

private:
  const Gemm& problem_;
  const std::string& arch_;
  const Device& device_;
  std::vector<Sizes> points_;
  std::vector<double> weights_;
};

std::vector<Choice> candidates_of(const Line& line) {
  std::vector<Choice> all;
  for (const Choice& c : line.best())
    if (std::find(all.begin(), all.end(), c) == all.end()) all.push_back(c);
  return all;
}

Crossover crossover_of(const Line& line, const std::vector<Choice>& candidates, size_t most_kernels) {
  std::vector<CrossoverKernel> kernels;
  for (const Choice& c : candidates) {
    CrossoverKernel k{c.text(), 0, {}};
    for (const Sizes& at : line.points()) k.seconds.push_back(line.cost(c, at));
    kernels.push_back(std::move(k));
  }
  CrossoverRules rules;
  rules.most_kernels = std::min(most_kernels, kMostEstimated);
  return choose_crossover(kernels, line.weights(), rules);
}

} // namespace

std::vector<RangedChoice> ranged_default(const Gemm& p, const std::string& arch, const Device& device,
                                         const TunePoints& points) {
  const Line line(p, arch, device, points);
  const std::vector<Choice> candidates = candidates_of(line);
  const std::vector<size_t> best = crossover_of(line, candidates, points.kernels).at;
  const Size size = line.size();
  const auto end = [&](size_t i) { return line.points()[i][size]; };
  SizeSpan all{p.sizes(), p.sizes()};
  for (size_t i = 0; i < size_count; ++i)
    if (p.least[i]) all.least[Size(i)] = *p.least[i];
  std::vector<RangedChoice> choices = {{candidates[best.front()], all}};
  for (size_t i = 1; i < best.size(); ++i) {
    if (best[i] == best[i - 1]) continue;
    const Choice &before = candidates[best[i - 1]], &after = candidates[best[i]];
    const int64_t first = line.border(before, after, end(i - 1), end(i));
    choices.back().taken.most[size] = first - 1;
    choices.push_back({after, all});
    choices.back().taken.least[size] = first;
  }
  return choices;
}

} // namespace deepgen
