#include "generator/search/ranged_search.h"

#include "base/problem/points.h"
#include "generator/space/ranged_default.h"

#include <algorithm>
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

std::vector<PlanSlot> proposals_at(const SearchInput& in, const Sizes& at) {
  SearchInput one = in;
  const Gemm& p = in.problem.gemm();
  one.problem = in.arch == "cpu" ? p.at(at) : p.up_to(at); // spaces of GPUs know ranges
  one.incumbent.reset();
  one.records = records_at(in, one.problem.key(), at);
  std::vector<PlanSlot> slots = next_plan(one).slots;
  for (PlanSlot& slot : slots)
    if (slot.origin == "default") slot.origin = "model"; // of this size alone
  return slots;
}

class RangedPlan {
public:
  explicit RangedPlan(const SearchInput& in) : in_(in) {
    plan_.problem = in.problem, plan_.arch = in.arch, plan_.round = in.round;
    plan_.points = in.points.at.empty() ? default_tune_points(in.problem.gemm()) : in.points;
    for (const Record& r : in.records)
      if (r.problem == in.problem.key()) taken_.insert(r.choice.text());
  }

  const TunePoints& points() const { return plan_.points; }
  bool full() const { return plan_.slots.size() >= in_.slots; }
  void add(const Choice& choice, const std::string& origin) {
    if (!full() && why_illegal(in_.problem, in_.arch, in_.device, choice).empty() &&
        taken_.insert(choice.text()).second)
      plan_.slots.push_back({choice, origin});
  }
  Plan finish() { return std::move(plan_); }

private:
  const SearchInput& in_;
  Plan plan_;
  std::set<std::string> taken_;
};

} // namespace

Plan next_ranged_plan(const SearchInput& in, const std::vector<Choice>& incumbents) {
  RangedPlan plan(in);
  const Gemm& p = in.problem.gemm();
  if (in.round == 0) {
    const std::vector<RangedChoice> estimates = ranged_default(p, in.arch, in.device, plan.points());
    plan.add(estimates.back().choice, "default");
    for (const Choice& c : incumbents) plan.add(c, "incumbent");
    for (const RangedChoice& c : estimates) plan.add(c.choice, "model");
  }
  std::vector<std::vector<PlanSlot>> proposals;
  size_t longest = 0;
  for (const Sizes& at : plan.points().at) {
    proposals.push_back(proposals_at(in, at));
    longest = std::max(longest, proposals.back().size());
  }
  for (size_t i = 0; i < longest && !plan.full(); ++i)
    for (const auto& list : proposals)
      if (i < list.size()) plan.add(list[i].choice, list[i].origin);
  return plan.finish();
}

} // namespace deepgen
