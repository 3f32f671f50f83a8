#include "base/search/ranged_steps.h"

#include "base/problem/points.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace deepgen {
namespace {

constexpr double kUnbounded = std::numeric_limits<double>::infinity();
constexpr size_t kFewestPoints = 4;   ///< with fewer a kernel cannot be checked against itself
constexpr size_t kMostDemands = 48;   ///< predicted sizes that a choice counts with
constexpr size_t kMostContenders = 6; ///< at a doubtful size
/// Beyond the bound, where sizes are predicted: first so that the noise, too, keeps within it.
constexpr double kTight = -0.02, kLoose = 0.1;
constexpr double kLeastDoubt = 0.03; ///< that is worth a measurement

double middle_value(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 0 : values[values.size() / 2];
}

/// Seconds of the kernel to which ratios are, at this size; 0: not known. `balanced`: over both regimes.
double anchor_seconds(const std::vector<const Record*>& records, const Sizes& at, bool balanced) {
  std::vector<double> first, bursts;
  for (const Record* r : records) {
    const PointTiming* p = timed_at(*r, at);
    if (p && p->timing.ratio > 0) first.push_back(p->timing.seconds / p->timing.ratio);
    if (p && p->bursts && p->bursts->ratio > 0) bursts.push_back(p->bursts->seconds / p->bursts->ratio);
  }
  return balanced ? std::sqrt(middle_value(first) * middle_value(bursts)) : middle_value(first);
}

std::vector<int64_t> measured_sizes(const std::vector<const Record*>& records, const Sizes& beside,
                                    Size along) {
  std::vector<int64_t> sizes;
  for (const Record* r : records)
    for (const auto* list : {&r->points, &r->between})
      for (const PointTiming& p : *list) {
        Sizes at = beside;
        at[along] = p.at[along];
        if (at == p.at && p.at[along] > 0) sizes.push_back(p.at[along]);
      }
  std::sort(sizes.begin(), sizes.end());
  sizes.erase(std::unique(sizes.begin(), sizes.end()), sizes.end());
  return sizes;
}

/// The crossover's input: points, then demands.
struct Extended {
  std::vector<CrossoverKernel> kernels;
  std::vector<double> weights;
  CrossoverRules rules;
};

Extended extend(const RangedSteps& steps, const std::vector<CrossoverKernel>& kernels,
                const std::vector<double>& weights, const CrossoverRules& rules,
                const std::vector<StepDemand>& demands, double allowed) {
  const std::vector<size_t> points = steps.points();
  Extended out{kernels, weights, rules};
  out.rules.allowed.assign(points.size(), 0);
  for (size_t k = 0; k < kernels.size(); ++k) {
    out.kernels[k].seconds.clear();
    for (size_t place : points) out.kernels[k].seconds.push_back(kernels[k].seconds[place]);
    for (const StepDemand& d : demands) out.kernels[k].seconds.push_back(kernels[k].seconds[d.place]);
  }
  for (const StepDemand& d : demands) {
    // All between two points weigh as much as these do on average.
    const size_t above = size_t(std::upper_bound(points.begin(), points.end(), d.place) - points.begin());
    out.weights.push_back(d.share * (weights[above - 1] + weights[above]) / 2);
    out.rules.allowed.push_back(allowed);
    if (!rules.limits.empty()) out.rules.limits.push_back(kUnbounded);
  }
  return out;
}

/// Of the points alone.
void keep_points(Crossover& c, const std::vector<double>& weights) {
  c.at.resize(weights.size()), c.regrets.resize(weights.size());
  double sum = 0, total = 0;
  c.worst = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] > 0) sum += weights[i] * c.regrets[i], total += weights[i];
    c.worst = std::max(c.worst, c.regrets[i]);
  }
  c.regret = sum / total;
}

} // namespace

const PointTiming* timed_at(const Record& r, const Sizes& at) {
  for (const auto* list : {&r.points, &r.between})
    for (const PointTiming& p : *list)
      if (p.at == at) return &p;
  return nullptr;
}

Sizes RangedSteps::at(size_t place) const {
  Sizes sizes = beside;
  sizes[along] = table.sizes[place];
  return sizes;
}

bool RangedSteps::starts_at(int64_t size) const {
  const auto place = std::lower_bound(table.sizes.begin(), table.sizes.end(), size);
  return place != table.sizes.end() && *place == size && table.starts[size_t(place - table.sizes.begin())];
}

std::vector<size_t> RangedSteps::points() const {
  std::vector<size_t> out;
  for (size_t place = 0; place < table.sizes.size(); ++place)
    if (table.points[place]) out.push_back(place);
  return out;
}

std::vector<CrossoverKernel> RangedSteps::kernels(const std::vector<const Record*>& records,
                                                  double favour) const {
  std::vector<CrossoverKernel> out;
  for (size_t k = 0; k < records.size(); ++k) {
    const Record& r = *records[k];
    out.push_back({r.choice.text(), r.code_bytes, {}});
    for (size_t place = 0; place < table.sizes.size(); ++place)
      out.back().seconds.push_back(table.cost(k, place) * (r.origin == "default" ? 1 - favour : 1));
  }
  return out;
}

std::optional<RangedSteps> ranged_steps(const Problem& p, const std::vector<const Record*>& records,
                                        const std::vector<Sizes>& points, const RatioAt& ratio,
                                        bool everywhere) {
  if (count_ranges(p) != 1 || points.size() < kFewestPoints || records.empty()) return std::nullopt;
  for (const Record* r : records)
    if (r->grids.empty()) return std::nullopt;
  RangedSteps out;
  out.along = *split_size(p), out.beside = points.front();
  std::vector<int64_t> list;
  for (const Sizes& at : points) list.push_back(at[out.along]);
  bool balanced = true;
  const std::vector<int64_t> sizes = measured_sizes(records, out.beside, out.along);
  const auto call = [&](int64_t size) {
    Sizes at = out.beside;
    at[out.along] = size;
    return at;
  };
  for (int64_t size : sizes) balanced = balanced && anchor_seconds(records, call(size), true) > 0;
  std::vector<std::vector<StepTimes::Measured>> measured(records.size());
  for (int64_t size : sizes) {
    const double anchor = anchor_seconds(records, call(size), balanced);
    for (size_t k = 0; k < records.size(); ++k) {
      const double seconds = anchor * ratio(*records[k], call(size));
      if (seconds > 0 && std::isfinite(seconds)) measured[k].push_back({size, seconds});
    }
  }
  std::vector<StepTimes> kernels;
  for (size_t k = 0; k < records.size(); ++k) {
    if (everywhere && measured[k].size() < points.size()) return std::nullopt; // a time of 0 is none
    kernels.emplace_back(records[k]->grids, out.beside, out.along, measured[k]);
  }
  out.table = step_table(kernels, list);
  return out;
}

namespace {

/// Of some kernels, how far they are from the best of all at each place.
class Cover {
public:
  explicit Cover(const StepTable& table) : table_(table) {
    for (size_t i = 0; i < table.sizes.size(); ++i) {
      Place place;
      if (i + 1 < table.sizes.size())
        place.weight = std::log(double(table.sizes[i + 1]) / double(table.sizes[i]));
      for (size_t k = 0; k < table.times.size(); ++k) place.best = std::min(place.best, table.cost(k, i));
      places_.push_back(place);
    }
  }
  void take(size_t kernel) {
    for (size_t i = 0; i < places_.size(); ++i)
      places_[i].now = std::min(places_[i].now, table_.cost(kernel, i));
  }
  double gain(size_t kernel) const {
    double sum = 0;
    for (size_t i = 0; i < places_.size(); ++i)
      if (const double cost = table_.cost(kernel, i); cost < places_[i].now)
        sum += places_[i].weight * (loss(places_[i].now, places_[i]) - loss(cost, places_[i]));
    return sum;
  }
  double weight() const {
    double sum = 0;
    for (const Place& place : places_) sum += place.weight;
    return sum;
  }

private:
  struct Place {
    double weight = 0, best = kUnbounded, now = kUnbounded;
  };
  const StepTable& table_;
  std::vector<Place> places_;

  static double loss(double cost, const Place& place) {
    constexpr double kMost = 0.5;
    return std::isinf(place.best) ? 0 : std::min(kMost, cost / place.best - 1);
  }
};

} // namespace

std::vector<size_t> who_is_missing(const StepTable& table, const std::vector<size_t>& chosen, size_t most) {
  constexpr double kLeastGain = 2e-4;
  Cover cover(table);
  for (size_t k : chosen) cover.take(k);
  std::vector<size_t> added;
  while (added.size() < most) {
    double most_gain = kLeastGain * cover.weight();
    std::optional<size_t> next;
    for (size_t k = 0; k < table.times.size(); ++k)
      if (const double gain = cover.gain(k); gain > most_gain) most_gain = gain, next = k;
    if (!next) break;
    cover.take(*next), added.push_back(*next);
  }
  return added;
}

Crossover choose_with_steps(const RangedSteps& steps, const std::vector<CrossoverKernel>& kernels,
                            const std::vector<double>& weights, const CrossoverRules& rules) {
  const std::vector<StepDemand> demands = step_demands(steps.table, kMostDemands);
  Crossover out;
  for (double allowed : {kTight, kLoose, kUnbounded}) {
    const Extended e = extend(steps, kernels, weights, rules, demands, allowed);
    out = choose_crossover(e.kernels, e.weights, e.rules);
    if (out.bound_kept) break;
  }
  keep_points(out, weights);
  return out;
}

std::vector<size_t> share_steps(const RangedSteps& steps, const std::vector<CrossoverKernel>& kernels,
                                const std::vector<size_t>& set, const CrossoverRules& rules) {
  CrossoverRules all = rules;
  all.limits.clear();
  size_t point = 0;
  for (size_t place = 0; place < steps.table.sizes.size(); ++place) {
    const bool is_point = steps.table.points[place];
    all.allowed.push_back(is_point ? 0 : kTight / 2);
    if (!rules.limits.empty()) all.limits.push_back(is_point ? rules.limits[point] : kUnbounded);
    point += is_point;
  }
  return share_points(kernels, set, all);
}

void take_shares(const std::vector<size_t>& points, const std::vector<CrossoverKernel>& kernels,
                 const std::vector<size_t>& at, const std::vector<double>& weights, Crossover& c) {
  for (size_t i = 0; i < points.size(); ++i) {
    const auto seconds = [&](size_t k) { return kernels[k].seconds[points[i]]; };
    double best = kUnbounded;
    for (size_t k = 0; k < kernels.size(); ++k) best = std::min(best, seconds(k));
    c.at[i] = at[points[i]], c.regrets[i] = seconds(c.at[i]) / best - 1;
  }
  c.taken = at;
  std::sort(c.taken.begin(), c.taken.end());
  c.taken.erase(std::unique(c.taken.begin(), c.taken.end()), c.taken.end());
  keep_points(c, weights);
}

std::vector<DoubtfulStep> doubtful_steps(const RangedSteps& steps, const std::vector<size_t>& at,
                                         size_t most) {
  const StepTable& table = steps.table;
  struct Scored {
    DoubtfulStep step;
    double score;
  };
  std::vector<Scored> all;
  Scored best{{}, 0};
  size_t last = 0; // point
  for (size_t place = 1; place < table.sizes.size(); ++place) {
    if (table.points[place]) {
      const double gap = std::log(double(table.sizes[place]) / double(table.sizes[last]));
      if (best.score > 0) best.score *= gap, all.push_back(best);
      best = {{}, 0}, last = place;
      continue;
    }
    const PredictedTime& own = table.times[at[place]][place];
    if (own.measured) continue;
    const double slow = own.seconds * (1 + own.doubt);
    std::vector<std::pair<double, size_t>> rivals; // the least that each may take
    for (size_t k = 0; k < table.times.size(); ++k) {
      const PredictedTime& t = table.times[k][place];
      const double least = t.seconds * (1 - std::min(0.9, t.doubt));
      if (k != at[place] && (own.doubt > 0 || t.doubt > 0) && least * (1 + kLeastDoubt) < slow)
        rivals.push_back({least, k});
    }
    if (rivals.empty()) continue;
    std::sort(rivals.begin(), rivals.end());
    const double score = std::min(1.0, slow / rivals.front().first - 1);
    if (score <= best.score) continue;
    best = {{place, {at[place]}}, score};
    for (const auto& [least, k] : rivals)
      if (best.step.kernels.size() < kMostContenders) best.step.kernels.push_back(k);
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Scored& a, const Scored& b) { return a.score > b.score; });
  if (all.size() > most) all.resize(most);
  std::vector<DoubtfulStep> out;
  for (Scored& s : all) out.push_back(std::move(s.step));
  return out;
}

} // namespace deepgen
