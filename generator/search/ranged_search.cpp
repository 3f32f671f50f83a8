#include "generator/search/ranged_search.h"

#include "base/problem/points.h"
#include "base/search/sum_orders.h"
#include "generator/search/between.h"
#include "generator/search/overlap.h"
#include "generator/space/order_estimate.h"
#include "generator/space/ranged_default.h"
#include "generator/space/space_rules.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace deepgen {
namespace {

/// What the search of one point knows: the failed candidates as they are, the others with their time there.
std::vector<Record> records_at(const SearchInput& in, const std::string& key, const Sizes& at) {
  std::vector<Record> out;
  for (const Record& r : in.records) {
    if (r.problem != in.problem.key()) continue;
    Record mine = r;
    mine.problem = key, mine.points.clear();
    if (const Timing* t = r.at(at))
      mine.timing = *t;
    else if (mine.ok())
      continue; // not timed here
    out.push_back(std::move(mine));
  }
  return out;
}

/// `order`: of sums, of a batch invariant problem.
std::vector<PlanSlot> proposals_at(const SearchInput& in, const Sizes& at, const std::string& order) {
  SearchInput one = in;
  const Problem& p = in.problem;
  one.problem = problem_at(p, in.arch, at);
  if (!order.empty()) one.options.sum_order = {p, order};
  one.incumbent.reset();
  one.records = records_at(in, one.problem.key(), at);
  const Space space(one.problem, one.arch, one.device, one.options);
  if (!order.empty() && space.size() == 0) return {}; // what another point likes of the order serves this one
  std::vector<PlanSlot> slots = next_plan(one, space).slots;
  for (PlanSlot& slot : slots)
    if (slot.origin == "default") slot.origin = "model"; // of this size alone
  return slots;
}

/// Estimates that are closer are of candidates which differ in what the estimate does not tell, as in stages.
constexpr double kAlike = 1.003;

/// On a GPU a candidate is timed where the estimate has it behind the round's best by no more than so much.
constexpr double kWorthATry = 1.35;

class RangedPlan {
public:
  explicit RangedPlan(const SearchInput& in) : in_(in) {
    plan_.problem = in.problem, plan_.arch = in.arch, plan_.round = in.round;
    plan_.points = in.points.at.empty() ? default_tune_points(in.problem) : in.points;
    sizes_ = wants_dense_points(in.problem, in.arch, plan_.points) ? dense_points(plan_.points).at
                                                                   : plan_.points.at;
    for (const Record& r : in.records)
      if (r.problem == in.problem.key()) taken_.insert(r.choice.text());
  }

  const TunePoints& points() const { return plan_.points; }
  /// For which candidates are proposed.
  const std::vector<Sizes>& sizes() const { return sizes_; }
  bool dense() const { return sizes_.size() > plan_.points.at.size(); } ///< beside the points
  const std::vector<PlanSlot>& slots() const { return plan_.slots; }
  bool full() const { return plan_.slots.size() >= in_.slots; }
  void add(const Choice& choice, const std::string& origin) {
    if (!full() && why_illegal(in_.problem, in_.arch, in_.device, choice).empty() &&
        taken_.insert(choice.text()).second)
      plan_.slots.push_back({choice, origin, {}});
  }
  Plan finish() {
    if (dense())
      for (const Sizes& at : sizes_) try_at(at);
    return std::move(plan_);
  }

private:
  const SearchInput& in_;
  Plan plan_;
  std::vector<Sizes> sizes_;
  std::set<std::string> taken_;

  /// All of them in one race would take longer than the search; the default is timed at each size.
  void try_at(const Sizes& at) {
    const Problem problem = problem_at(in_.problem, in_.arch, at);
    std::vector<double> costs;
    for (const PlanSlot& slot : plan_.slots)
      costs.push_back(find_template(slot.choice.template_name).cost(problem, in_.device, slot.choice.config));
    const double best = costs.empty() ? 0 : *std::min_element(costs.begin(), costs.end());
    for (size_t i = 0; i < costs.size(); ++i)
      if (plan_.slots[i].origin != "default" && costs[i] <= kWorthATry * best)
        plan_.slots[i].at.push_back(at);
  }
};

/// In round 0 of a batch invariant problem so many orders of sums are tried, as far as the estimate has none
/// of them behind the best by more than so much.
constexpr size_t kOrders = 2;
constexpr double kBehind = 1.3;

double mean_seconds(const OrderEstimate& e, const std::vector<double>& weights) {
  double sum = 0, total = 0;
  for (size_t i = 0; i < weights.size(); ++i)
    if (weights[i] > 0) sum += weights[i] * std::log(e.seconds[i]), total += weights[i];
  return std::exp(sum / total);
}

/// What a round's candidates may be: {""}, anything; of a batch invariant problem, these orders. After round
/// 0 the one that was the fastest.
std::vector<std::string> orders_of(const SearchInput& in, const TunePoints& points) {
  const Problem& p = in.problem;
  if (!p.batch_invariant()) return {""};
  if (in.round > 0) {
    std::vector<const Record*> records;
    for (const Record& r : in.records)
      if (r.problem == in.problem.key()) records.push_back(&r);
    const std::vector<std::string> measured = orders_by_time(records, points.at, points.weights);
    if (!measured.empty()) return {measured.front()};
  }
  const std::vector<OrderEstimate> estimates =
      estimated_orders(p, in.arch, in.device, points.at, points.weights, in.options);
  const double best = mean_seconds(estimates.front(), points.weights);
  std::vector<std::string> orders;
  for (const OrderEstimate& e : estimates)
    if (orders.size() < kOrders && mean_seconds(e, points.weights) <= kBehind * best)
      orders.push_back(e.order);
  return orders;
}

/// Of whoever is the best at a size.
std::optional<Choice> other_overlap_of_best(const SearchInput& in, const Sizes& at,
                                            const std::string& order) {
  const Record* best = nullptr;
  for (const Record& r : in.records)
    if (r.ok() && r.problem == in.problem.key() && r.at(at) && (order.empty() || r.sum_order == order) &&
        (!best || r.at(at)->ratio < best->at(at)->ratio))
      best = &r;
  return best ? other_overlap(best->choice) : std::nullopt;
}

void add_other_overlaps(const SearchInput& in, const std::vector<std::string>& orders, RangedPlan& plan) {
  const Problem largest = problem_at(in.problem, in.arch, plan.sizes().back());
  const SpaceRules rules(in.options, largest, in.arch, in.device);
  if (rules.has_configs()) return;
  for (const std::string& order : orders)
    for (const Sizes& at : plan.sizes())
      if (const auto twin = other_overlap_of_best(in, at, order); twin && rules.allows(*twin))
        plan.add(*twin, "neighbour");
}

/// Behind the best of each size: what is better at others, in a third of the round.
void add_between(const SearchInput& in, RangedPlan& plan) {
  if (in.problem.batch_invariant()) return; // others may have another order of sums
  std::vector<Choice> chosen;
  for (const PlanSlot& slot : plan.slots()) chosen.push_back(slot.choice);
  for (const Choice& c : best_between(in, chosen, in.slots / 3)) plan.add(c, "model");
}

} // namespace

void put_different_first(const Problem& problem, const Device& device, std::vector<PlanSlot>& list) {
  std::vector<double> seen;
  std::stable_partition(list.begin(), list.end(), [&](const PlanSlot& slot) {
    const double cost = find_template(slot.choice.template_name).cost(problem, device, slot.choice.config);
    const bool alike = std::any_of(seen.begin(), seen.end(),
                                   [&](double x) { return cost <= kAlike * x && x <= kAlike * cost; });
    if (!alike) seen.push_back(cost);
    return !alike;
  });
}

Plan next_ranged_plan(const SearchInput& in, const std::vector<Choice>& incumbents) {
  RangedPlan plan(in);
  const Problem& p = in.problem;
  if (in.round == 0) {
    const std::vector<RangedChoice> estimates = ranged_default(p, in.arch, in.device, plan.points());
    plan.add(estimates.back().choice, "default");
    for (const Choice& c : incumbents) plan.add(c, "incumbent");
    for (const RangedChoice& c : estimates) plan.add(c.choice, "model");
  }
  std::vector<std::vector<PlanSlot>> proposals;
  size_t longest = 0;
  const std::vector<std::string> orders = orders_of(in, plan.points());
  if (in.round > 0 && plan.dense()) add_other_overlaps(in, orders, plan);
  for (const std::string& order : orders)
    for (const Sizes& at : plan.sizes()) {
      proposals.push_back(proposals_at(in, at, order));
      if (in.round == 0 && plan.dense())
        put_different_first(problem_at(p, in.arch, at), in.device, proposals.back());
      longest = std::max(longest, proposals.back().size());
    }
  for (size_t i = 0; i < longest && !plan.full(); ++i) {
    for (const auto& list : proposals)
      if (i < list.size()) plan.add(list[i].choice, list[i].origin);
    if (i == 0 && in.round == 0 && plan.dense()) add_between(in, plan);
  }
  return plan.finish();
}

} // namespace deepgen
