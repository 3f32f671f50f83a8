#include "base/search/finalists.h"

#include "base/kernel/regime.h"
#include "base/problem/points.h"
#include "base/problem/problem.h"
#include "base/search/ranged_steps.h"
#include "base/search/sum_orders.h"
#include "base/search/tune_points_json.h"
#include "base/text/error.h"

#include <algorithm>
#include <cmath>
#include <set>
#include <tuple>

namespace deepgen {

namespace {

constexpr size_t kOfOtherOrders = 3; ///< finalists of a batch invariant problem, at most

/// Where the default could not be timed, each log has ratios to another kernel: seconds are all that they
/// share.
void compare_by_seconds(std::vector<LoggedRecord>& records) {
  double reference = 0;
  for (const LoggedRecord& r : records)
    if (r.record.ok() && r.record.timing && (reference == 0 || r.record.timing->seconds < reference))
      reference = r.record.timing->seconds;
  for (LoggedRecord& r : records) {
    if (!r.record.timing || reference <= 0) continue;
    Timing& t = *r.record.timing;
    const double ratio = t.seconds / reference;
    // Without a ratio, as where no round has both, there is no interval either.
    t.low = t.ratio > 0 ? t.low * (ratio / t.ratio) : ratio;
    t.high = t.ratio > 0 ? t.high * (ratio / t.ratio) : ratio;
    t.ratio = ratio;
  }
}

/// Of the points of a batch invariant problem: the search's.
void add_weights(RecordLog& log) {
  for (Record& r : log.records) {
    if (r.sum_order.empty() || r.points.empty()) continue;
    const TunePoints tuned =
        get_tune_points(log.environment, "tune_at", Problem::parse(r.problem), "a round's log");
    for (PointTiming& p : r.points)
      for (size_t i = 0; i < tuned.at.size(); ++i)
        if (tuned.at[i] == p.at) p.weight = tuned.weights[i];
  }
}

/// A round in which it left too early for bursts says nothing of these: what is known of them stays.
void update(LoggedRecord& known, const Record& again, size_t round) {
  Record& r = known.record;
  r.timing = again.timing, r.points = again.points, r.cached = again.cached;
  if (again.bursts) r.bursts = again.bursts;
  known.last_timed = round;
}

double median_of(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values.empty() ? 1 : values[values.size() / 2];
}

/// Replaces times by their means over both regimes.
void compare_over_regimes(std::vector<LoggedRecord>& records) {
  std::vector<double> changes; ///< of a ratio, by the second regime
  for (const LoggedRecord& r : records)
    if (const Record& one = r.record; one.ok() && one.timing && one.bursts && one.origin != "default" &&
                                      one.timing->ratio > 0 && one.bursts->ratio > 0)
      changes.push_back(one.bursts->ratio / one.timing->ratio);
  const double change = std::sqrt(median_of(std::move(changes)));
  for (LoggedRecord& r : records) {
    Record& one = r.record;
    if (!one.timing) continue;
    const int64_t samples = one.timing->samples; // of the race in which others left
    if (one.bursts)
      one.timing = over_regimes(*one.timing, one.bursts);
    else if (one.origin != "default")
      one.timing->ratio *= change, one.timing->low *= change, one.timing->high *= change;
    one.timing->samples = samples;
  }
}

} // namespace

std::vector<LoggedRecord> read_logs(const std::vector<std::string>& logs) {
  std::vector<LoggedRecord> records;
  bool comparable = true, balanced = false;
  for (size_t i = 0; i < logs.size(); ++i) {
    RecordLog log = RecordLog::read(logs[i]);
    for (const Record& again : log.again)
      for (LoggedRecord& r : records)
        if (r.record.ok() && r.record.sha256 == again.sha256 && r.record.problem == again.problem)
          update(r, again, i);
    add_weights(log);
    const std::string anchor = log.environment.value("anchor", "default");
    comparable &= anchor == "default" || anchor == "none";
    balanced |= tuned_for(log.environment) == TunedFor::balanced;
    for (Record& r : log.records) records.push_back({std::move(r), logs[i], i, i});
  }
  if (balanced) compare_over_regimes(records);
  if (!comparable) compare_by_seconds(records);
  return records;
}

std::vector<LoggedRecord> read_records(const std::vector<std::string>& logs) {
  std::vector<LoggedRecord> records = read_logs(logs);
  for (const LoggedRecord& r : records)
    if (r.record.problem != records.front().record.problem)
      throw Error("the logs are of different problems", r.log,
                  records.front().record.problem + " and " + r.record.problem, "pass the logs of one search");
  return records;
}

const LoggedRecord* default_of(const std::vector<LoggedRecord>& records) {
  for (const LoggedRecord& r : records)
    if (r.record.origin == "default") return &r;
  return nullptr;
}

namespace {

struct Ranked {
  const LoggedRecord* record;
  double ratio; ///< at least that of whom the round preferred
};

/// What left a round's race early lost there to those which stayed, when all ran side by side. Its fewer
/// samples are no ground to put it before them after all, however well they turned out. A stage more than
/// doubles an arm's samples. Times from the cache are of other races. The same of what no later round chose
/// to time again, beside those that it did.
bool was_preferred(const LoggedRecord& to, const LoggedRecord& r) {
  if (to.record.cached || r.record.cached) return false;
  if (to.last_timed == r.last_timed) return 2 * to.record.timing->samples > 3 * r.record.timing->samples;
  return to.last_timed > to.round && to.last_timed > r.last_timed;
}

std::vector<Ranked> ranked(const std::vector<LoggedRecord>& records) {
  const auto timed = [](const LoggedRecord& r) {
    return r.record.ok() && r.record.timing && !r.record.is_vendor();
  };
  std::vector<Ranked> out;
  for (const LoggedRecord& r : records) {
    if (!timed(r)) continue;
    double ratio = r.record.timing->ratio;
    for (const LoggedRecord& other : records)
      if (timed(other) && other.record.origin != "default" && was_preferred(other, r))
        ratio = std::max(ratio, other.record.timing->ratio);
    out.push_back({&r, ratio});
  }
  const auto key = [](const Ranked& x) {
    const Timing& t = *x.record->record.timing;
    return std::tuple(x.ratio, -int64_t(x.record->last_timed), -t.samples, t.ratio);
  };
  std::stable_sort(out.begin(), out.end(), [&](const Ranked& x, const Ranked& y) { return key(x) < key(y); });
  return out;
}

bool has_points(const std::vector<LoggedRecord>& records) {
  return std::any_of(records.begin(), records.end(),
                     [](const LoggedRecord& r) { return !r.record.points.empty(); });
}

/// All at which somebody was timed, with their weights.
void find_points(const std::vector<LoggedRecord>& records, std::vector<Sizes>& points,
                 std::vector<double>& weights) {
  for (const LoggedRecord& r : records)
    for (const PointTiming& p : r.record.points)
      if (std::find(points.begin(), points.end(), p.at) == points.end())
        points.push_back(p.at), weights.push_back(p.weight);
  if (std::all_of(weights.begin(), weights.end(), [](double w) { return w == 0; }))
    weights.assign(weights.size(), 1);
}

/// Of a batch invariant problem the order that the finals are about: that of the fastest so far. "": none.
std::string order_of_finals(const std::vector<LoggedRecord>& records, const std::vector<Sizes>& points,
                            const std::vector<double>& weights) {
  std::vector<const Record*> list;
  for (const LoggedRecord& r : records) list.push_back(&r.record);
  const std::vector<std::string> orders = orders_by_time(list, points, weights);
  return orders.empty() ? "" : orders.front();
}

/// Of a problem with one range, where all tell their grids: beside the chosen ones, who adds the most at the
/// points and at the steps of all, as far as these times say. Who is as good as another one adds nothing.
std::vector<const LoggedRecord*> missing_at_steps(const std::vector<LoggedRecord>& records,
                                                  std::vector<Sizes> points, const std::string& order,
                                                  const std::set<std::string>& chosen, size_t most) {
  std::vector<const LoggedRecord*> list, out;
  std::vector<const Record*> timed;
  std::vector<size_t> have;
  for (const LoggedRecord& r : records) {
    if (!r.record.ok() || r.record.points.empty() || r.record.is_vendor()) continue;
    if (!order.empty() && r.record.sum_order != order) continue;
    if (chosen.contains(r.record.sha256)) have.push_back(list.size());
    list.push_back(&r), timed.push_back(&r.record);
  }
  if (list.empty()) return out;
  points = ascending(std::move(points));
  const auto steps = ranged_steps(
      Problem::parse(list.front()->record.problem), timed, points,
      [](const Record& r, const Sizes& at) { return r.at(at) ? r.at(at)->ratio : 0; }, false);
  if (!steps) return out;
  for (size_t k : who_is_missing(steps->table, have, most)) out.push_back(list[k]);
  return out;
}

/// Of a problem with ranges: the best at the first point, at the second, ..., then the second best at each.
/// `order`: of this order of sums alone; "": of all.
std::vector<const LoggedRecord*> best_by_turns(const std::vector<LoggedRecord>& records,
                                               const std::vector<Sizes>& points, const std::string& order) {
  std::vector<std::vector<const LoggedRecord*>> ranks;
  for (const Sizes& at : points) {
    std::vector<const LoggedRecord*> list;
    for (const LoggedRecord& r : records)
      if (r.record.ok() && r.record.at(at) && (order.empty() || r.record.sum_order == order))
        list.push_back(&r);
    std::stable_sort(list.begin(), list.end(), [&](const LoggedRecord* x, const LoggedRecord* y) {
      return x->record.at(at)->ratio < y->record.at(at)->ratio;
    });
    ranks.push_back(std::move(list));
  }
  std::vector<const LoggedRecord*> out;
  for (size_t place = 0; place < records.size(); ++place)
    for (const auto& list : ranks)
      if (place < list.size()) out.push_back(list[place]);
  return out;
}

} // namespace

std::vector<LoggedRecord> finalists_of(const std::vector<LoggedRecord>& records) {
  std::vector<LoggedRecord> finalists;
  std::set<std::string> seen;
  const LoggedRecord* standard = default_of(records);
  const bool has_default = standard && standard->record.ok();
  if (has_default) {
    finalists.push_back(*standard);
    seen.insert(standard->record.sha256);
  }
  if (has_points(records)) {
    std::vector<Sizes> points;
    std::vector<double> weights;
    find_points(records, points, weights);
    const size_t places = records.front().record.arch == "cpu"
                              ? kRangedFinalistsOfCpu
                              : std::clamp(points.size() * 3 / 2, kRangedFinalists, kMostRangedFinalists);
    const auto add_all = [&](const std::vector<const LoggedRecord*>& list, size_t most) {
      for (const LoggedRecord* r : list)
        if (finalists.size() < most + has_default && seen.insert(r->record.sha256).second)
          finalists.push_back(*r);
    };
    const auto add = [&](const std::string& order, size_t most) {
      add_all(missing_at_steps(records, points, order, seen, most), most);
      add_all(best_by_turns(records, points, order), most);
    };
    // A few of other orders tell what the chosen one costs, and win where the rounds were wrong.
    if (const std::string order = order_of_finals(records, points, weights); !order.empty())
      add(order, places - kOfOtherOrders);
    add("", places);
    return finalists;
  }
  for (const Ranked& r : ranked(records))
    if (finalists.size() < kFinalists + has_default && seen.insert(r.record->record.sha256).second)
      finalists.push_back(*r.record);
  return finalists;
}

} // namespace deepgen
