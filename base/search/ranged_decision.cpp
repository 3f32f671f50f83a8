#include "base/search/ranged_decision.h"

#include "base/json/json_text.h"
#include "base/kernel/regime.h"
#include "base/search/crossover.h"
#include "base/search/sum_orders.h"
#include "base/search/tune_points_json.h"
#include "base/text/error.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>

namespace deepgen {
namespace {

/// The finalists that were timed at every point, and their ratios by the size that splits.
class Matrix {
public:
  Matrix(const Gemm& p, const RecordLog& final, const TunePoints& points) : size_(*split_size(p)) {
    for (const Record& r : final.records)
      if (r.stage == "final" && r.ok() && r.timing && !r.is_vendor() && !r.points.empty() && !known(r))
        records_.push_back(&r);
    for (size_t i = 0; i < points.at.size(); ++i) {
      const Sizes& at = points.at[i];
      if (std::all_of(records_.begin(), records_.end(), [&](const Record* r) { return r->at(at); }))
        points_[at[size_]].push_back(at), weights_[at[size_]] += points.weights[i], timed_at_.push_back(at),
            weights_of_all_.push_back(points.weights[i]);
    }
  }

  /// The same of those that add up over K in this order.
  Matrix of(const std::string& order) const {
    Matrix one = *this;
    one.records_ = of_order(records_, order);
    return one;
  }
  /// All that they were timed at, and weights, before points that are equal in the size that splits count as
  /// one.
  const std::vector<Sizes>& timed_at() const { return timed_at_; }
  const std::vector<double>& weights_of_all() const { return weights_of_all_; }

  bool empty() const { return records_.empty() || points_.empty(); }
  const std::vector<const Record*>& records() const { return records_; }
  /// Ascending.
  std::vector<int64_t> values() const {
    std::vector<int64_t> out;
    for (const auto& [value, at] : points_) out.push_back(value);
    return out;
  }

  std::vector<double> weights() const {
    std::vector<double> out;
    for (const auto& [value, weight] : weights_) out.push_back(weight);
    // The points that count may be those that somebody could not be timed at.
    if (std::all_of(out.begin(), out.end(), [](double w) { return w == 0; })) out.assign(out.size(), 1);
    return out;
  }

  /// `favour`: the share of its time that the default is given.
  std::vector<CrossoverKernel> kernels(double favour) const {
    std::vector<CrossoverKernel> out;
    for (const Record* r : records_) {
      CrossoverKernel k{r->choice.text(), r->code_bytes, {}};
      for (const auto& [value, list] : points_) {
        double sum = 0;
        for (const Sizes& at : list) sum += std::log(std::max(ratio(*r, at), 1e-9));
        const double mean = std::exp(sum / double(list.size()));
        k.seconds.push_back(r->origin == "default" ? mean * (1 - favour) : mean);
      }
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

private:
  static double ratio(const Record& r, const Sizes& at, double change) {
    for (const PointTiming& p : r.points)
      if (p.at == at)
        return p.bursts || r.origin == "default" ? over_regimes(p.timing, p.bursts).ratio
                                                 : p.timing.ratio * change;
    return 0;
  }
  /// Over both regimes, where there are two.
  double ratio(const Record& r, const Sizes& at) const {
    std::vector<double> changes; ///< of a ratio, by the second regime
    for (const Record* other : records_)
      for (const PointTiming& p : other->points)
        if (p.at == at && p.bursts && other->origin != "default" && p.timing.ratio > 0)
          changes.push_back(p.bursts->ratio / p.timing.ratio);
    std::sort(changes.begin(), changes.end());
    return ratio(r, at, changes.empty() ? 1 : std::sqrt(changes[changes.size() / 2]));
  }

  Size size_;
  std::vector<const Record*> records_;
  std::map<int64_t, std::vector<Sizes>> points_;
  std::map<int64_t, double> weights_;
  std::vector<Sizes> timed_at_;
  std::vector<double> weights_of_all_;

  /// The default runs twice.
  bool known(const Record& r) const {
    return std::any_of(records_.begin(), records_.end(),
                       [&](const Record* other) { return other->sha256 == r.sha256; });
  }
};

SizeSpan all_calls(const Gemm& p) {
  SizeSpan all{p.sizes(), p.sizes()};
  for (size_t i = 0; i < size_count; ++i)
    if (p.least[i]) all.least[Size(i)] = *p.least[i];
  return all;
}

/// The first size of `after`, above `low` and at most `high`.
int64_t border(const std::vector<Border>& measured, const Record& before, const Record& after, int64_t low,
               int64_t high) {
  for (const Border& b : measured)
    if (b.before == before.sha256 && b.after == after.sha256 && b.first > low && b.first <= high)
      return b.first;
  const int64_t middle = std::llround(std::sqrt(double(low) * double(high)));
  return std::clamp(middle, low + 1, high);
}

RangedDecision alone(const Gemm& p, const Record& only, std::string reason) {
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
  std::string order; ///< empty: of any
  double cost = 1;   ///< times as long as those of all orders
};

Choosing choose_kernels(const Gemm& p, const Matrix& all, const CrossoverRules& rules, double favour) {
  const auto of = [&](const Matrix& matrix) {
    CrossoverRules bounded = rules;
    bounded.limits = matrix.limits();
    return choose_crossover(matrix.kernels(favour), matrix.weights(), bounded);
  };
  Choosing best{all, of(all), "", 1};
  if (!p.batch_invariant) return best;
  const double free = mean_of(best.matrix, best.crossover);
  double least = std::numeric_limits<double>::infinity();
  for (const std::string& order : orders_by_time(all.records(), all.timed_at(), all.weights_of_all())) {
    const Matrix matrix = all.of(order);
    const Crossover crossover = of(matrix);
    if (const double mean = mean_of(matrix, crossover); mean < least)
      least = mean, best = {matrix, crossover, order, std::exp(mean - free)};
  }
  return best;
}

void share_calls(const Gemm& p, const RecordLog& final, const Choosing& chosen, RangedDecision& d) {
  const Crossover& crossover = chosen.crossover;
  const auto& records = chosen.matrix.records();
  const std::vector<int64_t> values = chosen.matrix.values();
  const std::vector<Border> measured = borders_of(final.environment);
  const Size size = *split_size(p);
  d.parts = {{*records[crossover.at[0]], all_calls(p)}};
  for (size_t i = 1; i < values.size(); ++i) {
    if (crossover.at[i] == crossover.at[i - 1]) continue;
    const Record &before = *records[crossover.at[i - 1]], &after = *records[crossover.at[i]];
    const int64_t first = border(measured, before, after, values[i - 1], values[i]);
    d.parts.push_back({after, all_calls(p)});
    set_border(d, d.parts.size() - 1, size, first);
  }
}

} // namespace

std::string bound_text(const RangedBound& bound) {
  char text[160];
  std::snprintf(text, sizeof text,
                "beyond the bound of %.0f %%, or slower than the default: KERNELS %zu would keep it",
                100 * kMostRegret, bound.needed);
  return text;
}

RangedDecision decide_ranges(const Gemm& p, const RecordLog& final) {
  RangedDecision d;
  const TunePoints points = points_of(p, final);
  const Matrix matrix(p, final, final_points(points));
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
  const double threshold = threshold_of(noise_of(final));
  rules.most_kernels = points.kernels;
  rules.noise = std::max(rules.noise, threshold);
  const Choosing chosen = choose_kernels(p, matrix, rules, threshold);
  d.found = true, d.regret = chosen.crossover.regret, d.worst = chosen.crossover.worst;
  d.bound = {chosen.crossover.bound_kept, chosen.crossover.needed};
  d.sum_order = chosen.order, d.order_cost = chosen.cost;
  share_calls(p, final, chosen, d);
  d.improved = d.parts.size() > 1 || d.parts[0].record.origin != "default";
  d.reason = count_text(chosen.crossover, d);
  return d;
}

Decision mean_decision(const Gemm& p, const RecordLog& final) {
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

TunePoints points_of(const Gemm& p, const RecordLog& final) {
  return get_tune_points(final.environment, "tune_at", p, "the search's log");
}

void set_border(RangedDecision& d, size_t part, Size size, int64_t first) {
  d.parts[part - 1].taken.most[size] = first - 1;
  d.parts[part].taken.least[size] = first;
}

std::vector<Border> borders_of(const Json& environment) {
  std::vector<Border> out;
  const std::string where = "borders";
  if (!environment.contains("borders")) return out;
  for (const Json& item : get<std::vector<Json>>(environment, "borders", where))
    out.push_back({get_name(item, "before", where), get_name(item, "after", where),
                   get_count(item, "first", where, 1)});
  return out;
}

Json to_json(const std::vector<Border>& borders) {
  Json json = Json::array();
  for (const Border& b : borders)
    json.push_back({{"before", b.before}, {"after", b.after}, {"first", b.first}});
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
