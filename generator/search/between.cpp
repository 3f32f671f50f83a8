#include "generator/search/between.h"

#include "base/problem/points.h"
#include "generator/space/order_estimate.h"
#include "generator/space/space.h"
#include "generator/space/space_rules.h"

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

/// What the options leave of the configs that serve the whole range. The space of one size lacks some: tiles
/// that end with M are offered for that M alone, and with `swap` for few rows.
class Offered {
public:
  explicit Offered(const SearchInput& in)
      : in_(in), largest_(problem_at(in.problem.gemm(), in.arch, all_calls(in.problem.gemm()).most)),
        rules_(in.options, largest_, in.arch, in.device) {}

  bool has(const Choice& c) const {
    return !rules_.has_configs() && rules_.allows(c) &&
           why_illegal(in_.problem, in_.arch, in_.device, c).empty();
  }
  std::vector<Parameter> parameters(const Choice& c) const {
    return find_template(c.template_name).parameters(largest_, in_.device);
  }

private:
  const SearchInput& in_;
  const Problem largest_;
  const SpaceRules rules_;
};

/// With the multiples that a search file may ask for.
std::vector<int64_t> all_values(const Parameter& p) {
  std::set<int64_t> all(p.values.begin(), p.values.end());
  for (int64_t value = p.more.step; p.more.step > 1 && value <= p.more.most; value += p.more.step)
    if (p.more.holds(value)) all.insert(value);
  return {all.begin(), all.end()};
}

/// Who is as one of `chosen` but for the tile.
std::vector<Choice> with_any_tile(const Offered& offered, const std::vector<Choice>& chosen) {
  std::set<std::string> seen;
  std::vector<Choice> out;
  for (const Choice& c : chosen) {
    std::vector<Choice> tiles = {c};
    const std::vector<Parameter> parameters = offered.parameters(c);
    for (size_t i = 0; i < std::min(kTile, parameters.size()); ++i) {
      std::vector<Choice> more;
      for (const Choice& tile : tiles)
        for (const int64_t value : all_values(parameters[i])) {
          more.push_back(tile);
          more.back().config.set(parameters[i].name, value);
        }
      tiles = std::move(more);
    }
    for (Choice& tile : tiles)
      if (seen.insert(tile.text()).second && offered.has(tile)) out.push_back(std::move(tile));
  }
  return out;
}

/// What differs from `c` in one parameter beside the tile.
std::vector<Choice> with_this_tile(const Offered& offered, const Choice& c) {
  std::vector<Choice> out;
  const std::vector<Parameter> parameters = offered.parameters(c);
  for (size_t i = kTile; i < parameters.size(); ++i)
    for (const int64_t value : parameters[i].values) {
      Choice one = c;
      one.config.set(parameters[i].name, value);
      if (offered.has(one)) out.push_back(std::move(one));
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

std::vector<Choice> best_between(const SearchInput& in, const std::vector<Choice>& chosen, size_t most) {
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
  const Offered offered(in);
  const std::vector<Choice> list = with_any_tile(offered, chosen);
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
    for (const Choice& one : with_this_tile(offered, list[first]))
      if (const double g = gain(best, costs_of(one)); g > most_gain) most_gain = g, c = one;
    take(costs[first]), take(costs_of(c));
    out.push_back(std::move(c));
  }
  return out;
}

} // namespace deepgen
