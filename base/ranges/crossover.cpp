#include "base/ranges/crossover.h"

#include "base/text/error.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <tuple>

namespace deepgen {
namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();
constexpr double kOfPredictions =
    2; ///< times the noise: differences that are none where points are predicted

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
  if (!rules.limits.empty() && rules.limits.size() != weights.size())
    refuse("there are not as many limits as points");
  for (double limit : rules.limits)
    if (!(limit > 0)) refuse("a limit is not above 0");
  if (!rules.allowed.empty() && rules.allowed.size() != weights.size())
    refuse("there is not for each point what is allowed beyond the bound");
  for (double share : rules.allowed)
    if (!(share > -1)) refuse("what is allowed beyond the bound is not above -1");
  for (const CrossoverKernel& k : kernels) {
    if (k.seconds.size() != weights.size())
      refuse("'" + k.name + "' has not as many times as there are points");
    for (double s : k.seconds)
      if (!(s > 0)) refuse("a time of '" + k.name + "' is not above 0");
  }
}

/// How far a set of kernels is from the best at every point: the mean of its regrets, and its largest excess.
/// Compared as the header says, but for code and names.
struct Quality {
  double regret = kNever, excess = kNever;
};

/// As many points as have a say: n of equal weights are n, one with all of it is 1.
double noise_of_mean(const std::vector<double>& weights, double noise) {
  const double sum = std::accumulate(weights.begin(), weights.end(), 0.0);
  double squares = 0;
  for (double w : weights) squares += (w / sum) * (w / sum);
  return noise * std::sqrt(squares);
}

/// Regrets of all kernels at all points, and the search of the best set of a size among them.
class Chooser {
public:
  Chooser(const std::vector<CrossoverKernel>& kernels, const std::vector<double>& weights,
          const CrossoverRules& rules)
      : kernels_(kernels), weights_(weights), rules_(rules),
        sum_(std::accumulate(weights.begin(), weights.end(), 0.0)),
        noise_of_mean_(noise_of_mean(weights, rules.noise)) {
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
    for (size_t k : order_) {
      regrets_.emplace_back();
      for (size_t i = 0; i < weights.size(); ++i) regrets_.back().push_back(regret(k, i));
    }
    // What the kernels from each place of the order on could still bring.
    rest_.assign(order_.size() + 1, std::vector<double>(weights.size(), kNever));
    for (size_t place = order_.size(); place-- > 0;)
      for (size_t i = 0; i < weights.size(); ++i)
        rest_[place][i] = std::min(rest_[place + 1][i], regrets_[place][i]);
    gains_.reserve(order_.size());
  }

  double regret(size_t kernel, size_t point) const {
    return kernels_[kernel].seconds[point] / best_[point] - 1;
  }
  /// Of a regret at the point.
  double excess(double regret, size_t point) const {
    const double allowed = rules_.allowed.empty() ? 0 : rules_.allowed[point];
    if (std::isinf(allowed)) return -1;
    const double beyond = regret - rules_.most_regret - allowed;
    if (rules_.limits.empty()) return beyond;
    const double limit = std::max(rules_.limits[point], best_[point]) * (1 + allowed);
    return std::max(beyond, best_[point] * (1 + regret) / limit - 1);
  }
  bool keeps_bound(double excess) const { return excess <= rules_.noise; }
  bool predicted(size_t point) const { return !rules_.allowed.empty() && rules_.allowed[point] != 0; }
  size_t candidates() const { return order_.size(); }

  /// The best set of exactly this many kernels that is better than `smaller` by more than the noise; none
  /// where no set is. Earlier ones of the order win ties.
  std::vector<size_t> best_of(size_t count, const std::optional<Quality>& smaller) {
    found_.clear(), quality_ = {}, smaller_ = smaller;
    std::vector<size_t> chosen;
    extend(chosen, 0, count, std::vector<double>(weights_.size(), kNever));
    return found_;
  }
  Quality quality() const { return quality_; }
  /// Who brings the set the most nearer to the best, by more than the noise of the mean; else none.
  std::optional<size_t> next_of(const std::vector<size_t>& set) const {
    std::vector<double> regrets(weights_.size(), kNever);
    const auto with = [&](size_t k) {
      std::vector<double> all = regrets;
      for (size_t i = 0; i < all.size(); ++i) all[i] = std::min(all[i], regret(k, i));
      return all;
    };
    for (size_t k : set) regrets = with(k);
    Quality best = quality_of(regrets);
    double margin = noise_of_mean_; // the preferred ones of the order win ties
    std::optional<size_t> found;
    for (size_t k : order_)
      if (const Quality q = quality_of(with(k)); better(q, best, margin)) best = q, found = k, margin = 0;
    return found;
  }
  /// Whether x is better than y by more than `margin` of the weighted time.
  bool better(const Quality& x, const Quality& y, double margin) const {
    const bool kept = keeps_bound(x.excess);
    if (kept != keeps_bound(y.excess)) return kept;
    return kept ? x.regret < y.regret - margin
                : std::tuple(x.excess, x.regret) < std::tuple(y.excess - margin, y.regret);
  }

  /// The fewest kernels that keep the bound at every point. All together do, as the best of each is one.
  size_t fewest_that_keep() const {
    std::vector<std::vector<size_t>> good(weights_.size()); // of each point
    for (size_t i = 0; i < good.size(); ++i)
      for (size_t k : order_)
        if (keeps_bound(excess(regret(k, i), i))) good[i].push_back(k);
    std::vector<size_t> chosen;
    size_t count = 1;
    while (count < order_.size() && !serve_all(good, chosen, count)) ++count;
    return count;
  }

private:
  const std::vector<CrossoverKernel>& kernels_;
  const std::vector<double>& weights_;
  const CrossoverRules& rules_;
  double sum_;
  double noise_of_mean_;                     ///< of the mean over the points, whose noises are independent
  std::vector<double> best_;                 ///< seconds, at each point
  std::vector<size_t> order_;                ///< kernels that no other one replaces, the preferred first
  std::vector<std::vector<double>> regrets_; ///< of each place of the order, at each point
  std::vector<std::vector<double>> rest_;    ///< least regrets, from each place of the order on
  std::vector<double> gains_;                ///< bound_of()'s, which a search calls millions of times
  std::vector<size_t> found_;
  Quality quality_;
  std::optional<Quality> smaller_; ///< of the smaller set that was taken

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
    Quality q{0, -1};
    for (size_t i = 0; i < regrets.size(); ++i) {
      if (weights_[i] > 0) q.regret += weights_[i] * regrets[i]; // not 0 times infinity
      q.excess = std::max(q.excess, excess(regrets[i], i));
    }
    q.regret /= sum_;
    return q;
  }

  /// Whether so many more kernels are good for the points for which none of the chosen ones is. The point
  /// with the fewest good ones comes first, one of which has to be chosen.
  static bool serve_all(const std::vector<std::vector<size_t>>& good, std::vector<size_t>& chosen,
                        size_t more) {
    const std::vector<size_t>* narrow = nullptr;
    for (const std::vector<size_t>& list : good) {
      const bool served =
          std::find_first_of(list.begin(), list.end(), chosen.begin(), chosen.end()) != list.end();
      if (!served && (!narrow || list.size() < narrow->size())) narrow = &list;
    }
    if (!narrow) return true;
    for (size_t k : *narrow) {
      if (more == 0) return false;
      chosen.push_back(k);
      if (serve_all(good, chosen, more - 1)) return true;
      chosen.pop_back();
    }
    return false;
  }

  /// What `more` of the kernels from the place of the order on cannot exceed: not all of them together, and
  /// not the sum of what the best of them gain each by itself.
  Quality bound_of(const std::vector<double>& regrets, size_t place, size_t more) {
    std::vector<double> with_rest = regrets;
    double now = 0;
    for (size_t i = 0; i < regrets.size(); ++i) {
      with_rest[i] = std::min(regrets[i], rest_[place][i]);
      if (weights_[i] > 0) now += weights_[i] * regrets[i];
    }
    Quality bound = quality_of(with_rest);
    if (!std::isfinite(now) || !may_be_taken(bound)) return bound;
    gains_.clear();
    for (size_t k = place; k < order_.size(); ++k) {
      const std::vector<double>& of_k = regrets_[k];
      double gain = 0;
      for (size_t i = 0; i < regrets.size(); ++i)
        if (weights_[i] > 0) gain += weights_[i] * std::max(0.0, regrets[i] - of_k[i]);
      gains_.push_back(gain);
    }
    const auto end = gains_.begin() + std::ptrdiff_t(std::min(more, gains_.size()));
    std::partial_sort(gains_.begin(), end, gains_.end(), std::greater<>());
    constexpr double kRounding = 1e-12;
    bound.regret =
        std::max(bound.regret, (now - std::accumulate(gains_.begin(), end, 0.0)) / sum_ - kRounding);
    return bound;
  }

  bool may_be_taken(const Quality& q) const {
    return (!smaller_ || better(q, *smaller_, rules_.noise)) && (found_.empty() || better(q, quality_, 0));
  }

  /// Branch and bound: a branch that could not be better is left.
  void extend(std::vector<size_t>& chosen, size_t place, size_t count, const std::vector<double>& regrets) {
    if (chosen.size() == count) {
      const Quality q = quality_of(regrets);
      if (may_be_taken(q)) found_ = chosen, quality_ = q;
      return;
    }
    if (order_.size() - place < count - chosen.size()) return;
    if (!may_be_taken(bound_of(regrets, place, count - chosen.size()))) return;
    std::vector<double> with = regrets;
    for (size_t i = 0; i < with.size(); ++i) with[i] = std::min(with[i], regrets_[place][i]);
    chosen.push_back(order_[place]);
    extend(chosen, place + 1, count, with);
    chosen.pop_back();
    extend(chosen, place + 1, count, regrets);
  }
};

/// Of the set, the kernel of each point: the best there, or the neighbour's where that is as good up to the
/// noise and keeps the bound, where the best does. By dynamic programming over the points: fewest changes,
/// then least regret.
std::vector<size_t> assign(const Chooser& chooser, const std::vector<size_t>& set, size_t points,
                           double of_measured) {
  using Cost = std::tuple<size_t, double>; // changes, regret
  std::vector<std::vector<Cost>> cost(points, std::vector<Cost>(set.size()));
  std::vector<std::vector<size_t>> from(points, std::vector<size_t>(set.size(), 0));
  for (size_t i = 0; i < points; ++i) {
    const double noise = (chooser.predicted(i) ? kOfPredictions : 1) * of_measured;
    double best = kNever;
    for (size_t k : set) best = std::min(best, chooser.regret(k, i));
    for (size_t k = 0; k < set.size(); ++k) {
      const double regret = chooser.regret(set[k], i);
      const bool allowed =
          regret == best || (regret <= best + noise && (chooser.keeps_bound(chooser.excess(regret, i)) ||
                                                        !chooser.keeps_bound(chooser.excess(best, i))));
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

std::vector<size_t> share_points(const std::vector<CrossoverKernel>& kernels, const std::vector<size_t>& set,
                                 const CrossoverRules& rules) {
  const std::vector<double> weights(kernels.empty() ? 0 : kernels.front().seconds.size(), 1.0);
  check(kernels, weights, rules);
  for (size_t k : set)
    if (k >= kernels.size())
      throw Error("a kernel is none of those given: " + std::to_string(k), "share_points()");
  if (set.empty()) throw Error("no kernel may be taken", "share_points()");
  return assign(Chooser(kernels, weights, rules), set, weights.size(), rules.noise);
}

Crossover choose_crossover(const std::vector<CrossoverKernel>& kernels, const std::vector<double>& weights,
                           const CrossoverRules& rules) {
  check(kernels, weights, rules);
  Chooser chooser(kernels, weights, rules);
  std::vector<size_t> set;
  std::optional<Quality> quality;
  // A larger set must gain more than the noise over the smaller one that was taken.
  for (size_t count = 1; count <= std::min(rules.most_kernels, chooser.candidates()); ++count)
    if (const std::vector<size_t> next = chooser.best_of(count, quality); !next.empty())
      set = next, quality = chooser.quality();
  // One that is far better at a few points gains less than that in the mean.
  while (set.size() < rules.most_kernels) {
    const std::optional<size_t> next = chooser.next_of(set);
    if (!next) break;
    set.push_back(*next);
  }
  Crossover out;
  out.at = assign(chooser, set, weights.size(), rules.noise);
  out.bound_kept = true;
  out.needed = chooser.fewest_that_keep();
  double sum = 0, total = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    out.regrets.push_back(chooser.regret(out.at[i], i));
    out.worst = std::max(out.worst, out.regrets[i]);
    out.bound_kept = out.bound_kept && chooser.keeps_bound(chooser.excess(out.regrets[i], i));
    sum += weights[i] * out.regrets[i], total += weights[i];
  }
  out.regret = sum / total;
  out.taken = out.at;
  std::sort(out.taken.begin(), out.taken.end());
  out.taken.erase(std::unique(out.taken.begin(), out.taken.end()), out.taken.end());
  return out;
}

} // namespace deepgen
