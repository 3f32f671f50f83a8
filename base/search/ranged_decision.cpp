#include "base/search/ranged_decision.h"

#include "base/json/json_text.h"
#include "base/kernel/regime.h"
#include "base/problem/partition.h"
#include "base/ranges/crossover.h"
#include "base/search/ranged_steps.h"
#include "base/search/sum_orders.h"
#include "base/search/tune_points_json.h"
#include "base/text/error.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>

namespace deepgen {
namespace {

/// The finalists that were timed at every point, and their ratios there.
class Matrix {
public:
  Matrix(const RecordLog& final, const TunePoints& points) {
    for (const Record& r : final.records)
      if (r.stage == "final" && r.ok() && r.timing && !r.is_vendor() && !r.points.empty() && !known(r))
        records_.push_back(&r);
    for (size_t i = 0; i < points.at.size(); ++i) {
      const Sizes& at = points.at[i];
      const bool again = std::find(points_.begin(), points_.end(), at) != points_.end();
      if (!again && std::all_of(records_.begin(), records_.end(), [&](const Record* r) { return r->at(at); }))
        points_.push_back(at), weights_.push_back(points.weights[i]);
    }
  }

  /// The same of those that add up over K in this order.
  Matrix of(const std::string& order) const {
    Matrix one = *this;
    one.records_ = of_order(records_, order);
    return one;
  }
  bool empty() const { return records_.empty() || points_.empty(); }
  const std::vector<const Record*>& records() const { return records_; }
  /// Ascending by the product of sizes.
  const std::vector<Sizes>& points() const { return points_; }
  std::vector<double> weights() const {
    // The points that count may be those that somebody could not be timed at.
    const bool none = std::all_of(weights_.begin(), weights_.end(), [](double w) { return w == 0; });
    return none ? std::vector<double>(weights_.size(), 1) : weights_;
  }

  /// `favour`: the share of its time that the default is given.
  std::vector<CrossoverKernel> kernels(double favour) const {
    std::vector<CrossoverKernel> out;
    for (const Record* r : records_) {
      CrossoverKernel k{r->choice.text(), r->code_bytes, {}};
      for (const Sizes& at : points_)
        k.seconds.push_back(std::max(ratio(*r, at), 1e-9) * (r->origin == "default" ? 1 - favour : 1));
      out.push_back(std::move(k));
    }
    return out;
  }

  /// The default's time at each point, which nothing chosen should exceed; nothing where it is not among
  /// them.
  std::vector<double> limits() const {
    const std::vector<CrossoverKernel> all = kernels(0);
    for (size_t i = 0; i < records_.size(); ++i)
      if (records_[i]->origin == "default") return all[i].seconds;
    return {};
  }

  /// Over both regimes, where there are two; 0: not timed.
  double ratio(const Record& r, const Sizes& at) const {
    std::vector<double> changes; ///< of a ratio, by the second regime
    for (const Record* other : records_)
      if (const PointTiming* p = timed_at(*other, at);
          p && p->bursts && other->origin != "default" && p->timing.ratio > 0)
        changes.push_back(p->bursts->ratio / p->timing.ratio);
    std::sort(changes.begin(), changes.end());
    return ratio(r, at, changes.empty() ? 1 : std::sqrt(changes[changes.size() / 2]));
  }

private:
  static double ratio(const Record& r, const Sizes& at, double change) {
    const PointTiming* p = timed_at(r, at);
    if (!p) return 0;
    return p->bursts || r.origin == "default" ? over_regimes(p->timing, p->bursts).ratio
                                              : p->timing.ratio * change;
  }

  std::vector<const Record*> records_;
  std::vector<Sizes> points_;
  std::vector<double> weights_;

  /// The default runs twice.
  bool known(const Record& r) const {
    return std::any_of(records_.begin(), records_.end(),
                       [&](const Record* other) { return other->sha256 == r.sha256; });
  }
};

/// The measured one, else between the points.
int64_t first_after(const std::vector<Border>& measured, const PartitionBorder& border,
                    const std::vector<const Record*>& records) {
  for (const Border& b : measured)
    if (b.before == records[border.before]->sha256 && b.after == records[border.after]->sha256 &&
        b.first > border.low && b.first <= border.high &&
        (!b.size || (b.size == border.size && b.at == border.at)))
      return b.first;
  return middle_of(border);
}

RangedDecision alone(const Problem& p, const Record& only, std::string reason) {
  RangedDecision d;
  d.found = true, d.parts = {{only, all_calls(p)}}, d.sum_order = only.sum_order,
  d.reason = std::move(reason);
  return d;
}

/// Kernels are counted once, though two parts may have the same.
std::string count_text(const Crossover& crossover, const RangedDecision& d) {
  const size_t count = crossover.taken.size();
  char text[120];
  std::snprintf(text, sizeof text, "%zu kernel%s, at most %.1f %% behind the best at a point", count,
                count == 1 ? "" : "s", 100 * d.worst);
  return text + (d.bound->kept ? "" : "; " + bound_text(*d.bound));
}

/// Of the chosen kernels' time at the points, by weight: the mean of its logarithm.
double mean_of(const Matrix& matrix, const Crossover& crossover) {
  const std::vector<CrossoverKernel> kernels = matrix.kernels(0);
  const std::vector<double> weights = matrix.weights();
  double sum = 0, total = 0;
  for (size_t i = 0; i < weights.size(); ++i)
    sum += weights[i] * std::log(kernels[crossover.at[i]].seconds[i]), total += weights[i];
  return sum / total;
}

/// Of the chosen ones to the default, over the points of the hold-out; 0: there is none.
double mean_ratio(const std::vector<RangedHoldout>& holdout) {
  double sum = 0;
  for (const RangedHoldout& h : holdout) sum += std::log(std::max(h.both().ratio, 1e-9));
  return holdout.empty() ? 0 : std::exp(sum / double(holdout.size()));
}

} // namespace

namespace {

/// The kernels that share the calls, from those of one order.
struct Choosing {
  Matrix matrix;
  Crossover crossover;
  std::string order = ""; ///< empty: of any
  double cost = 1;        ///< times as long as those of all orders
  std::optional<RangedSteps> steps = {};
  std::vector<size_t> at = {}; ///< with steps: the kernel of each place
};

/// With predicted sizes, as far as measured ones do not lose by it.
void choose_at_steps(const Problem& p, CrossoverRules rules, double favour, Choosing& chosen) {
  const Matrix& matrix = chosen.matrix;
  chosen.steps = ranged_steps(p, matrix.records(), matrix.points(),
                              [&](const Record& r, const Sizes& at) { return matrix.ratio(r, at); });
  if (!chosen.steps) return;
  const std::vector<size_t> points = chosen.steps->points();
  const auto kernels = chosen.steps->kernels(matrix.records(), favour);
  rules.limits.clear();
  for (size_t k = 0; k < kernels.size() && rules.limits.empty(); ++k)
    if (matrix.records()[k]->origin == "default")
      for (size_t place : points) rules.limits.push_back(chosen.steps->table.times[k][place].seconds);
  Crossover& crossover = chosen.crossover;
  const Crossover with = choose_with_steps(*chosen.steps, kernels, matrix.weights(), rules);
  if ((with.bound_kept || !crossover.bound_kept) && with.regret <= crossover.regret + rules.noise)
    crossover = with;
  chosen.at = share_steps(*chosen.steps, kernels, crossover.taken, rules);
  take_shares(points, kernels, chosen.at, matrix.weights(), crossover);
}

Choosing choose_kernels(const Problem& p, const Matrix& all, const CrossoverRules& rules, double favour) {
  const auto of = [&](const Matrix& matrix) {
    CrossoverRules bounded = rules;
    bounded.limits = matrix.limits();
    Choosing chosen{matrix, choose_crossover(matrix.kernels(favour), matrix.weights(), bounded)};
    choose_at_steps(p, rules, favour, chosen);
    return chosen;
  };
  Choosing best = of(all);
  if (!p.batch_invariant()) return best;
  const double free = mean_of(best.matrix, best.crossover);
  double least = std::numeric_limits<double>::infinity();
  for (const std::string& order : orders_by_time(all.records(), all.points(), all.weights())) {
    Choosing chosen = of(all.of(order));
    if (const double mean = mean_of(chosen.matrix, chosen.crossover); mean < least)
      least = mean, best = std::move(chosen), best.order = order, best.cost = std::exp(mean - free);
  }
  return best;
}

/// Of the point: the chosen kernel, and with several ranges, where points have no order in which neighbours
/// could share one, the others of the set that are as good up to the noise and keep the bound.
std::vector<size_t> good_at(const Choosing& chosen, const std::vector<CrossoverKernel>& kernels, size_t point,
                            double noise) {
  const auto seconds = [&](size_t k) { return kernels[k].seconds[point]; };
  const size_t own = chosen.crossover.at[point];
  double best = seconds(own);
  for (const CrossoverKernel& k : kernels) best = std::min(best, k.seconds[point]);
  double most = std::min(seconds(own) * (1 + noise), best * (1 + kMostRegret));
  if (const std::vector<double> limits = chosen.matrix.limits(); !limits.empty())
    most = std::min(most, limits[point]);
  std::vector<size_t> good = {own};
  for (size_t k : chosen.crossover.taken)
    if (k != own && seconds(k) <= std::max(most, seconds(own))) good.push_back(k);
  return good;
}

std::vector<PartitionPoint> points_to_share(const Problem& p, const Choosing& chosen, double noise) {
  const std::vector<CrossoverKernel> kernels = chosen.matrix.kernels(0);
  const std::vector<Sizes>& at = chosen.matrix.points();
  std::vector<PartitionPoint> points;
  // Of the places that one kernel has in a row, the first and the last.
  for (size_t i = 0; i < chosen.at.size(); ++i)
    if (i == 0 || i + 1 == chosen.at.size() || chosen.at[i - 1] != chosen.at[i] ||
        chosen.at[i + 1] != chosen.at[i])
      points.push_back({chosen.steps->at(i), {chosen.at[i]}});
  for (size_t i = 0; i < at.size() && chosen.at.empty(); ++i)
    points.push_back({at[i], count_ranges(p) == 1 ? std::vector<size_t>{chosen.crossover.at[i]}
                                                  : good_at(chosen, kernels, i, noise)});
  return points;
}

void share_calls(const Problem& p, const RecordLog& final, const Choosing& chosen, double noise,
                 RangedDecision& d) {
  const auto& records = chosen.matrix.records();
  const std::vector<Border> measured = borders_of(final.environment);
  const auto known = [&](const PartitionBorder& b) {
    return chosen.steps && chosen.steps->starts_at(b.high);
  };
  const Partition partition =
      partition_of(all_calls(p), points_to_share(p, chosen, noise), [&](const PartitionBorder& b) {
        return known(b) ? b.high : first_after(measured, b, records);
      });
  for (const PartitionBox& box : partition.boxes) d.parts.push_back({*records[box.kernel], box.span});
  for (const PartitionBorder& b : partition.borders)
    d.borders.push_back(
        {b.size, b.low, b.high, records[b.before]->sha256, records[b.after]->sha256, b.at, known(b)});
}

} // namespace

std::string bound_text(const RangedBound& bound) {
  char text[160];
  std::snprintf(text, sizeof text,
                "beyond the bound of %.0f %%, or slower than the default: KERNELS %zu would keep it",
                100 * kMostRegret, bound.needed);
  return text;
}

namespace {

Choosing choose_by_finals(const Problem& p, const RecordLog& final, const TunePoints& points,
                          const Matrix& matrix, CrossoverRules& rules) {
  const double threshold = threshold_of(noise_of(final));
  rules.most_kernels = points.kernels;
  rules.noise = std::max(rules.noise, threshold);
  return choose_kernels(p, matrix, rules, threshold);
}

} // namespace

std::vector<DoubtfulSize> doubtful_sizes(const Problem& p, const RecordLog& final, size_t most) {
  std::vector<DoubtfulSize> out;
  const TunePoints points = points_of(p, final);
  const Matrix matrix(final, final_points(points, true));
  if (matrix.empty()) return out;
  CrossoverRules rules;
  const Choosing chosen = choose_by_finals(p, final, points, matrix, rules);
  if (!chosen.steps) return out;
  for (const DoubtfulStep& step : doubtful_steps(*chosen.steps, chosen.at, most)) {
    out.push_back({chosen.steps->at(step.place), {}});
    for (size_t k : step.kernels) out.back().kernels.push_back(chosen.matrix.records()[k]->sha256);
  }
  return out;
}

RangedDecision decide_ranges(const Problem& p, const RecordLog& final) {
  RangedDecision d;
  const TunePoints points = points_of(p, final);
  const Matrix matrix(final, final_points(points, true));
  if (matrix.empty()) {
    d.reason = "no candidate was both correct and timed at the points of the range";
    return d;
  }
  const auto& records = matrix.records();
  const auto standard =
      std::find_if(records.begin(), records.end(), [](const Record* r) { return r->origin == "default"; });
  if (standard != records.end() && !final.stable)
    return alone(p, **standard, "the default stays: too much interference to decide");
  const double mean = mean_ratio(holdout_of(final.environment));
  if (standard != records.end() && mean >= 1)
    return alone(p, **standard, "the default stays: a second process does not confirm what won the finals");
  CrossoverRules rules;
  const Choosing chosen = choose_by_finals(p, final, points, matrix, rules);
  d.found = true, d.regret = chosen.crossover.regret, d.worst = chosen.crossover.worst;
  d.bound = {chosen.crossover.bound_kept, chosen.crossover.needed};
  d.sum_order = chosen.order, d.order_cost = chosen.cost;
  share_calls(p, final, chosen, rules.noise, d);
  d.improved = d.parts.size() > 1 || d.parts[0].record.origin != "default";
  d.reason = count_text(chosen.crossover, d);
  return d;
}

Decision mean_decision(const Problem& p, const RecordLog& final) {
  const RangedDecision d = decide_ranges(p, final);
  Decision out;
  out.found = d.found, out.improved = d.improved, out.reason = d.reason;
  out.threshold = threshold_of(noise_of(final));
  if (!d.found) return out;
  out.winner = d.parts.back().record;
  std::vector<Timing> first, bursts;
  const auto timing = [](const HeldOut& h) {
    return Timing{h.seconds, h.seconds, h.seconds, h.ratio, h.low, h.high, 1, 1};
  };
  for (const RangedHoldout& h : holdout_of(final.environment)) {
    first.push_back(timing(h.first));
    if (h.bursts) bursts.push_back(timing(*h.bursts));
  }
  // Where the default takes all calls, the hold-out is of others.
  if (d.improved && !first.empty()) {
    out.winner.timing = mean_timing(first);
    if (bursts.size() == first.size()) out.winner.bursts = mean_timing(bursts);
  }
  if (out.winner.timing) out.timing = over_regimes(*out.winner.timing, out.winner.bursts);
  return out;
}

TunePoints points_of(const Problem& p, const RecordLog& final) {
  return get_tune_points(final.environment, "tune_at", p, "the search's log");
}

std::vector<Border> borders_of(const Json& environment) {
  std::vector<Border> out;
  const std::string where = "borders";
  if (!environment.contains("borders")) return out;
  for (const Json& item : get<std::vector<Json>>(environment, "borders", where)) {
    Border b{get_name(item, "before", where), get_name(item, "after", where),
             get_count(item, "first", where, 1)};
    if (item.contains("size")) {
      const auto name = std::find(size_names.begin(), size_names.end(), get_name(item, "size", where));
      if (name == size_names.end()) throw Error("a border is along no size", where, excerpt(item));
      const auto at = get<std::array<int64_t, size_count>>(item, "at", where);
      b.size = Size(name - size_names.begin()), b.at = {at[0], at[1], at[2], at[3]};
    }
    out.push_back(std::move(b));
  }
  return out;
}

Json to_json(const std::vector<Border>& borders) {
  Json json = Json::array();
  for (const Border& b : borders) {
    json.push_back({{"before", b.before}, {"after", b.after}, {"first", b.first}});
    if (b.size)
      json.back()["size"] = size_names[size_t(*b.size)],
      json.back()["at"] = {b.at.m, b.at.n, b.at.k, b.at.batch};
  }
  return json;
}

HeldOut RangedHoldout::both() const {
  if (!bursts) return first;
  const auto mean = [&](double HeldOut::* field) { return std::sqrt(first.*field * (*bursts.*field)); };
  return {mean(&HeldOut::seconds), mean(&HeldOut::ratio), mean(&HeldOut::low), mean(&HeldOut::high),
          mean(&HeldOut::vendor)};
}

namespace {

HeldOut held_out_from(const Json& item, const std::string& where) {
  return {get<double>(item, "seconds", where), get<double>(item, "ratio", where),
          get<double>(item, "low", where), get<double>(item, "high", where),
          get<double>(item, "vendor", where)};
}

void write_held_out(const HeldOut& h, Json& json) {
  json["seconds"] = finite(h.seconds), json["ratio"] = finite(h.ratio);
  json["low"] = finite(h.low), json["high"] = finite(h.high);
  json["vendor"] = finite(h.vendor);
}

} // namespace

std::vector<RangedHoldout> holdout_of(const Json& environment) {
  std::vector<RangedHoldout> out;
  const std::string where = "holdout";
  if (!environment.contains("points")) return out;
  for (const Json& item : get<std::vector<Json>>(environment, "points", where)) {
    const auto at = get<std::array<int64_t, size_count>>(item, "at", where);
    RangedHoldout h{
        {at[0], at[1], at[2], at[3]}, get_name(item, "sha256", where), held_out_from(item, where)};
    if (item.contains("bursts")) h.bursts = held_out_from(item["bursts"], where + ", bursts");
    out.push_back(std::move(h));
  }
  return out;
}

Json to_json(const std::vector<RangedHoldout>& holdout) {
  Json json = Json::array();
  for (const RangedHoldout& h : holdout) {
    Json item = {{"at", {h.at.m, h.at.n, h.at.k, h.at.batch}}, {"sha256", h.sha256}};
    write_held_out(h.first, item);
    if (h.bursts) write_held_out(*h.bursts, item["bursts"]);
    json.push_back(std::move(item));
  }
  return json;
}

} // namespace deepgen
