#include "base/search/crossover.h"

#include "base/text/error.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <tuple>

namespace deepgen {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

void check(const std::vector<CrossoverKernel>& kernels, const std::vector<double>& weights,
           const CrossoverRules& rules) {
  const auto refuse = [](const std::string& what) {
    throw Error("no crossover can be chosen: " + what, "choose_crossover()");
  };
  if (kernels.empty() || weights.empty() || rules.most_kernels == 0)
    refuse("there are no kernels or no points");
  double sum = 0;
  for (double w : weights) {
    if (!(w >= 0) || !std::isfinite(w)) refuse("a weight is negative, infinite or no number");
    sum += w;
  }
  if (!(sum > 0) || !std::isfinite(sum)) refuse("all weights are 0, or their sum is no number");
  for (const CrossoverKernel& k : kernels) {
    if (k.seconds.size() != weights.size())
      refuse("'" + k.name + "' has not as many times as there are points");
    for (double s : k.seconds)
      if (!(s > 0)) refuse("a time of '" + k.name + "' is not above 0");
  }
}

/// How far a set of kernels is from the best at every point. Compared as the header says, but for code and
/// names.
struct Quality {
  double regret = kNever, worst = kNever;
};

/// Regrets of all kernels at all points, and the search of the best set of a size among them.
class Chooser {
public:
  Chooser(const std::vector<CrossoverKernel>& kernels, const std::vector<double>& weights,
          const CrossoverRules& rules)
      : kernels_(kernels), weights_(weights), rules_(rules),
        sum_(std::accumulate(weights.begin(), weights.end(), 0.0)) {
    for (size_t i = 0; i < weights.size(); ++i) {
      double best = kNever;
      for (const CrossoverKernel& k : kernels) best = std::min(best, k.seconds[i]);
      if (!std::isfinite(best))
        throw Error("no kernel runs at point " + std::to_string(i), "choose_crossover()");
      best_.push_back(best);
    }
    for (size_t k = 0; k < kernels.size(); ++k)
      if (!dominated(k)) order_.push_back(k);
    std::sort(order_.begin(), order_.end(), [&](size_t x, size_t y) { return preferred(x, y); });
    // What the kernels from each place of the order on could still bring.
    rest_.assign(order_.size() + 1, std::vector<double>(weights.size(), kNever));
    for (size_t place = order_.size(); place-- > 0;)
      for (size_t i = 0; i < weights.size(); ++i)
        rest_[place][i] = std::min(rest_[place + 1][i], regret(order_[place], i));
  }

  double regret(size_t kernel, size_t point) const {
    return kernels_[kernel].seconds[point] / best_[point] - 1;
  }
  size_t candidates() const { return order_.size(); }

  /// The best set of exactly this many kernels; earlier ones of the order win ties.
  std::vector<size_t> best_of(size_t count) {
    found_.clear(), quality_ = {};
    std::vector<size_t> chosen;
    extend(chosen, 0, count, std::vector<double>(weights_.size(), kNever));
    return found_;
  }
  Quality quality() const { return quality_; }

  bool keeps_bound(double worst) const { return worst <= rules_.most_regret + rules_.noise; }
  /// Whether x is better than y by more than `margin` of the weighted time.
  bool better(const Quality& x, const Quality& y, double margin) const {
    const bool kept = keeps_bound(x.worst);
    if (kept != keeps_bound(y.worst)) return kept;
    return kept ? x.regret < y.regret - margin
                : std::tuple(x.worst, x.regret) < std::tuple(y.worst - margin, y.regret);
  }

private:
  const std::vector<CrossoverKernel>& kernels_;
  const std::vector<double>& weights_;
  const CrossoverRules& rules_;
  double sum_;
  std::vector<double> best_;              ///< seconds, at each point
  std::vector<size_t> order_;             ///< kernels that no other one replaces, the preferred first
  std::vector<std::vector<double>> rest_; ///< least regrets, from each place of the order on
  std::vector<size_t> found_;
  Quality quality_;

  bool preferred(size_t x, size_t y) const {
    const CrossoverKernel &a = kernels_[x], &b = kernels_[y];
    return std::tie(a.code_bytes, a.name, x) < std::tie(b.code_bytes, b.name, y);
  }
  /// Another kernel is as fast everywhere, and faster somewhere or preferred.
  bool dominated(size_t k) const {
    for (size_t other = 0; other < kernels_.size(); ++other) {
      if (other == k) continue;
      bool as_fast = true, faster = false;
      for (size_t i = 0; i < weights_.size() && as_fast; ++i) {
        as_fast = kernels_[other].seconds[i] <= kernels_[k].seconds[i];
        faster = faster || kernels_[other].seconds[i] < kernels_[k].seconds[i];
      }
      if (as_fast && (faster || preferred(other, k))) return true;
    }
    return false;
  }

  Quality quality_of(const std::vector<double>& regrets) const {
    double sum = 0, worst = 0;
    for (size_t i = 0; i < regrets.size(); ++i) {
      if (weights_[i] > 0) sum += weights_[i] * regrets[i]; // not 0 times infinity
      worst = std::max(worst, regrets[i]);
    }
    return {sum / sum_, worst};
  }

  /// Branch and bound: a branch that could not be better even with all kernels behind it is left.
  void extend(std::vector<size_t>& chosen, size_t place, size_t count, const std::vector<double>& regrets) {
    if (chosen.size() == count) {
      const Quality q = quality_of(regrets);
      if (found_.empty() || better(q, quality_, 0)) found_ = chosen, quality_ = q;
      return;
    }
    if (order_.size() - place < count - chosen.size()) return;
    std::vector<double> bound = regrets;
    for (size_t i = 0; i < bound.size(); ++i) bound[i] = std::min(bound[i], rest_[place][i]);
    if (!found_.empty() && !better(quality_of(bound), quality_, 0)) return;
    std::vector<double> with = regrets;
    for (size_t i = 0; i < with.size(); ++i) with[i] = std::min(with[i], regret(order_[place], i));
    chosen.push_back(order_[place]);
    extend(chosen, place + 1, count, with);
    chosen.pop_back();
    extend(chosen, place + 1, count, regrets);
  }
};

/// Of the set, the kernel of each point: the best there, or the neighbour's where that is as good up to the
/// noise. By dynamic programming over the points: fewest changes, then least regret.
std::vector<size_t> assign(const Chooser& chooser, const std::vector<size_t>& set, size_t points,
                           double noise) {
  using Cost = std::tuple<size_t, double>; // changes, regret
  std::vector<std::vector<Cost>> cost(points, std::vector<Cost>(set.size()));
  std::vector<std::vector<size_t>> from(points, std::vector<size_t>(set.size(), 0));
  for (size_t i = 0; i < points; ++i) {
    double best = kNever;
    for (size_t k : set) best = std::min(best, chooser.regret(k, i));
    for (size_t k = 0; k < set.size(); ++k) {
      const double regret = chooser.regret(set[k], i);
      const bool allowed = regret == best || regret <= best + noise;
      const size_t penalty = allowed ? 0 : points; // more than all changes
      cost[i][k] = {penalty, 0};
      for (size_t before = 0; i > 0 && before < set.size(); ++before) {
        const auto [changes, sum] = cost[i - 1][before];
        const Cost here{changes + (before != k) + penalty, sum};
        if (before == 0 || here < cost[i][k]) cost[i][k] = here, from[i][k] = before;
      }
      std::get<1>(cost[i][k]) += std::isfinite(regret) ? regret : 0;
    }
  }
  std::vector<size_t> at(points);
  size_t k = size_t(std::min_element(cost.back().begin(), cost.back().end()) - cost.back().begin());
  for (size_t i = points; i-- > 0; k = from[i][k]) at[i] = set[k];
  return at;
}

} // namespace

Crossover choose_crossover(const std::vector<CrossoverKernel>& kernels, const std::vector<double>& weights,
                           const CrossoverRules& rules) {
  check(kernels, weights, rules);
  Chooser chooser(kernels, weights, rules);
  std::vector<size_t> set;
  Quality quality;
  // A larger set must gain more than the noise over the smaller one that was taken.
  for (size_t count = 1; count <= std::min(rules.most_kernels, chooser.candidates()); ++count) {
    const std::vector<size_t> next = chooser.best_of(count);
    if (set.empty() || chooser.better(chooser.quality(), quality, rules.noise))
      set = next, quality = chooser.quality();
  }
  Crossover out;
  out.at = assign(chooser, set, weights.size(), rules.noise);
  double sum = 0, total = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    out.regrets.push_back(chooser.regret(out.at[i], i));
    out.worst = std::max(out.worst, out.regrets[i]);
    sum += weights[i] * out.regrets[i], total += weights[i];
  }
  out.regret = sum / total;
  out.taken = out.at;
  std::sort(out.taken.begin(), out.taken.end());
  out.taken.erase(std::unique(out.taken.begin(), out.taken.end()), out.taken.end());
  out.bound_kept = chooser.keeps_bound(out.worst);
  return out;
}

} // namespace deepgen
