#include "generator/search/between.h"

#include "base/problem/points.h"
#include "generator/space/order_estimate.h"
#include "generator/space/space.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace deepgen {
namespace {

constexpr double kNext = 1.06; ///< from size to size: an eighth of the way between those of a round
/// What is closer is not told apart by the estimate, nor worth a kernel.
constexpr double kGain = 0.005;
/// The first parameters of a template are the tile's rows and columns; of gemv, which has none, its form.
constexpr size_t kTile = 2;

std::vector<Sizes> all_sizes(const Gemm& p) {
  const std::optional<Size> which = split_size(p);
  for (size_t size = 0; size < size_count; ++size)
    if (p.ranged(Size(size)) && Size(size) != which) return {};
  std::vector<Sizes> out;
  if (!which) return out;
  const SizeSpan all = all_calls(p);
  for (double x = double(std::max(all.least[*which], dense_from)); x <= double(all.most[*which]);
       x *= kNext) {
    Sizes at = all.most;
    at[*which] = std::llround(x);
    if (out.empty() || out.back() != at) out.push_back(at);
  }
  return out;
}

/// Of the space, who is as one of `chosen` but for the tile.
std::vector<Choice> with_any_tile(const SearchInput& in, const Space& space,
                                  const std::vector<Choice>& chosen) {
  using Rest = std::pair<size_t, std::vector<uint32_t>>; // family, values behind the tile's
  const auto rest_of = [&](size_t rank) {
    const std::vector<uint32_t> all = space.positions(rank);
    return Rest(space.family(rank), {all.begin() + long(std::min(kTile, all.size())), all.end()});
  };
  std::set<Rest> rests;
  for (const Choice& c : chosen)
    if (const auto rank = space.rank(c)) rests.insert(rest_of(*rank));
  std::vector<Choice> out;
  for (size_t rank = 0; rank < space.size(); ++rank)
    if (rests.contains(rest_of(rank)))
      if (Choice c = space.choice(rank); why_illegal(in.problem, in.arch, in.device, c).empty())
        out.push_back(std::move(c));
  return out;
}

/// What differs from `c` in one parameter beside the tile.
std::vector<Choice> with_this_tile(const SearchInput& in, const Space& space, const Choice& c) {
  std::vector<Choice> out;
  for (const Family& family : space.families())
    if (family.source->name() == c.template_name)
      for (size_t i = kTile; i < family.parameters.size(); ++i)
        for (const int64_t value : family.parameters[i].values) {
          Choice one = c;
          one.config.set(family.parameters[i].name, value);
          if (space.rank(one) && why_illegal(in.problem, in.arch, in.device, one).empty())
            out.push_back(std::move(one));
        }
  return out;
}

/// Sum over sizes of what is gained there.
double gain(const std::vector<double>& best, const std::vector<double>& costs) {
  double sum = 0;
  for (size_t i = 0; i < best.size(); ++i)
    if (const double log = std::log(best[i] / costs[i]); log > kGain) sum += log;
  return sum;
}

} // namespace

std::vector<Choice> best_between(const SearchInput& in, const Space& space, const std::vector<Choice>& chosen,
                                 size_t most) {
  std::vector<Problem> problems;
  for (const Sizes& at : all_sizes(in.problem.gemm()))
    problems.push_back(problem_at(in.problem.gemm(), in.arch, at));
  const auto costs_of = [&](const Choice& c) {
    std::vector<double> costs;
    for (const Problem& p : problems)
      costs.push_back(find_template(c.template_name).cost(p, in.device, c.config));
    return costs;
  };
  std::vector<double> best(problems.size(), std::numeric_limits<double>::infinity());
  const auto take = [&](const std::vector<double>& costs) {
    for (size_t i = 0; i < best.size(); ++i) best[i] = std::min(best[i], costs[i]);
  };
  std::vector<Choice> out;
  if (problems.empty() || chosen.empty()) return out;
  for (const Choice& c : chosen) take(costs_of(c));
  const std::vector<Choice> list = with_any_tile(in, space, chosen);
  std::vector<std::vector<double>> costs;
  for (const Choice& c : list) costs.push_back(costs_of(c));
  while (out.size() < most) {
    size_t first = 0;
    double most_gain = 0;
    for (size_t i = 0; i < list.size(); ++i)
      if (const double g = gain(best, costs[i]); g > most_gain) most_gain = g, first = i;
    if (most_gain == 0) break;
    // A tile that is smaller than the others has room for more stages.
    Choice c = list[first];
    for (const Choice& one : with_this_tile(in, space, list[first]))
      if (const double g = gain(best, costs_of(one)); g > most_gain) most_gain = g, c = one;
    take(costs[first]), take(costs_of(c));
    out.push_back(std::move(c));
  }
  return out;
}

} // namespace deepgen
