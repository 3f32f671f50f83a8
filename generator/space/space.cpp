#include "generator/space/space.h"

#include "base/problem/points.h"
#include "base/text/error.h"
#include "generator/space/space_rules.h"
#include "generator/space/space_walk.h"

#include <algorithm>
#include <map>

namespace deepgen {
namespace {

constexpr uint64_t kMostRaw = 10'000'000'000; ///< beyond it a walk takes minutes, however much of it is dead
constexpr const char* kFewer = "give its parameters fewer values in the search file";

std::optional<uint32_t> position(const std::vector<int64_t>& values, int64_t value) {
  auto it = std::find(values.begin(), values.end(), value);
  if (it == values.end()) return std::nullopt;
  return uint32_t(it - values.begin());
}

uint64_t grid_size(const Family& family) {
  uint64_t raw = 1;
  for (const Parameter& p : family.parameters)
    if (__builtin_mul_overflow(raw, uint64_t(p.values.size()), &raw) || raw > kMostRaw)
      throw Error("the space is too large to enumerate", family.source->name(),
                  "its grid has more than " + std::to_string(kMostRaw) + " points", kFewer);
  return raw;
}

/// The order of a family's choices by their texts.
class TextOrder {
public:
  using Key = std::pair<std::string_view, uint64_t>;

  explicit TextOrder(const Family& family) : name_(family.source->name()) {
    for (const Parameter& p : family.parameters) {
      std::map<std::string, uint32_t>
          sorted; // a space follows in the text, which is less than digits and signs
      for (size_t i = 0; i < p.values.size(); ++i)
        sorted.emplace(std::to_string(p.values[i]) + " ", uint32_t(i));
      ranks_.emplace_back(p.values.size());
      for (uint32_t rank = 0; const auto& [text, digit] : sorted) ranks_.back()[digit] = rank++;
    }
  }
  Key key(const std::vector<uint32_t>& digits) const {
    uint64_t key = 0;
    for (size_t i = 0; i < digits.size(); ++i) key = key * ranks_[i].size() + ranks_[i][digits[i]];
    return {name_, key};
  }

private:
  std::string name_;
  std::vector<std::vector<uint32_t>> ranks_; ///< of each parameter's values
};

} // namespace

Space::Space(const Problem& problem, const std::string& arch, const Device& device,
             const SearchOptions& options, const std::optional<Choice>& also) {
  SpaceRules rules(options, problem, arch, device);
  std::optional<Choice> welcome = also;
  if (also &&
      (rules.has_configs() || !why_illegal(problem, arch, device, *also).empty() || !rules.allows(*also)))
    welcome.reset();
  std::string reasons;
  for (const Template* t : templates()) {
    std::string why = t->why_not(problem, arch);
    if (why.empty() && !rules.allows(*t)) why = "the search options leave it out";
    if (why.empty())
      add_family(*t, rules, problem, device, welcome);
    else
      reasons += (reasons.empty() ? "" : "; ") + t->name() + ": " + why;
  }
  notes_ = rules.notes();
  if (families_.empty())
    throw Error("no template serves this problem on " + arch,
                rules.allows_all() ? problem.key() : rules.where("templates"), reasons,
                rules.allows_all() ? "change the problem, or add a template under templates/"
                                   : "name one that the search options alone leave out");
  if (points_.empty()) {
    restrictions_ = rules.restrictions();
    restricted_in_ = rules.where(restrictions_);
  }
  sort_points();
}

void Space::add_family(const Template& t, SpaceRules& rules, const Problem& problem, const Device& device,
                       const std::optional<Choice>& also) {
  const std::vector<RuledParameter> ruled = rules.parameters(t, also);
  Family family{&t, {}};
  for (const RuledParameter& r : ruled) family.parameters.push_back(r.parameter);
  family.raw = grid_size(family);
  families_.push_back(std::move(family));
  Family& added = families_.back();
  const Ground ground{added, ruled, rules, problem, device};
  const auto take = [&](const Walked& walked) {
    for (const Walked::Point& point : walked.points)
      points_.push_back({point.cost, point.grid, uint32_t(families_.size() - 1)});
    left_out_ += walked.left_out, added.legal += walked.points.size();
  };
  if (!rules.has_configs()) take(walk_grid(ground, points_.size()));
  take(walk_points(ground, outside(added, ruled, rules, also)));
}

/// What the walk over the grid does not meet: the configs of an explicit list, and `also` where it has other
/// values.
std::vector<uint64_t> Space::outside(const Family& family, const std::vector<RuledParameter>& ruled,
                                     const SpaceRules& rules, const std::optional<Choice>& also) {
  std::vector<uint64_t> all;
  const auto add = [&](const Config& config) {
    const auto grid = grid_of(family, config);
    if (grid && std::find(all.begin(), all.end(), *grid) == all.end()) all.push_back(*grid);
  };
  for (const Choice& choice : rules.configs())
    if (choice.template_name == family.source->name() && rules.allows(choice)) add(choice.config);
  if (also && also->template_name == family.source->name() &&
      std::any_of(ruled.begin(), ruled.end(), [&](const RuledParameter& r) {
        const auto digit = position(r.parameter.values, also->config[r.parameter.name]);
        return digit && !r.visited[*digit];
      }))
    add(also->config);
  return all;
}

std::optional<uint64_t> Space::grid_of(const Family& family, const Config& config) {
  uint64_t grid = 0;
  if (family.parameters.size() != config.values.size()) return std::nullopt;
  for (const Parameter& p : family.parameters) {
    auto& values = config.values;
    auto it = std::find_if(values.begin(), values.end(), [&](const auto& v) { return v.first == p.name; });
    const auto digit = it == values.end() ? std::nullopt : position(p.values, it->second);
    if (!digit) return std::nullopt;
    grid = grid * p.values.size() + *digit;
  }
  return grid;
}

/// Equal costs by family and by their configs' texts, which are not made: of each parameter the values' texts
/// are ranked.
void Space::sort_points() {
  std::sort(points_.begin(), points_.end(), [](const Point& x, const Point& y) { return x.cost < y.cost; });
  std::vector<TextOrder> orders;
  for (const Family& f : families_) orders.emplace_back(f);
  std::vector<std::pair<TextOrder::Key, Point>> run;
  for (size_t first = 0, last; first < points_.size(); first = last) {
    run.clear();
    for (last = first; last < points_.size() && points_[last].cost == points_[first].cost; ++last)
      run.emplace_back(orders[points_[last].family].key(digits(points_[last])), points_[last]);
    if (last - first == 1) continue;
    std::sort(run.begin(), run.end(), [](const auto& x, const auto& y) { return x.first < y.first; });
    for (size_t i = first; i < last; ++i) points_[i] = run[i - first].second;
  }
  ranks_.assign(families_.size(), {});
  for (size_t f = 0; f < families_.size(); ++f) ranks_[f].reserve(families_[f].legal);
  for (size_t i = 0; i < points_.size(); ++i) ranks_[points_[i].family].emplace(points_[i].grid, uint32_t(i));
}

std::vector<uint32_t> Space::digits(const Point& point) const {
  const auto& parameters = families_[point.family].parameters;
  std::vector<uint32_t> digits(parameters.size());
  uint64_t rest = point.grid;
  for (size_t i = parameters.size(); i-- > 0; rest /= parameters[i].values.size())
    digits[i] = uint32_t(rest % parameters[i].values.size());
  return digits;
}

std::optional<size_t> Space::at(uint32_t family, const std::vector<uint32_t>& digits) const {
  uint64_t grid = 0;
  for (size_t i = 0; i < digits.size(); ++i)
    grid = grid * families_[family].parameters[i].values.size() + digits[i];
  auto it = ranks_[family].find(grid);
  if (it == ranks_[family].end()) return std::nullopt;
  return it->second;
}

Choice Space::choice(size_t rank) const {
  const Point& point = points_[rank];
  const Family& family = families_[point.family];
  const std::vector<uint32_t> d = digits(point);
  Choice choice{family.source->name(), {}};
  for (size_t i = 0; i < d.size(); ++i)
    choice.config.values.emplace_back(family.parameters[i].name, family.parameters[i].values[d[i]]);
  return choice;
}

Choice Space::default_choice() const {
  if (points_.empty()) {
    std::string names;
    for (const Family& f : families_) names += (names.empty() ? "" : ", ") + f.source->name();
    if (restrictions_.empty())
      throw Error("no legal config", names, "every point of the space breaks a constraint",
                  "see `deepgen space explain --help`");
    std::string why = "of " + names + " every point breaks a constraint or is left out";
    if (left_out_) why = std::to_string(left_out_) + " configs are legal, and all are left out";
    for (const std::string& note : notes_) why += "; " + note;
    throw Error(
        "the search options leave no config", restricted_in_, why,
        "allow more there; `deepgen space list --problem ...` prints the names of all, without --search");
  }
  return choice(0);
}

std::optional<size_t> Space::rank(const Choice& choice) const {
  for (uint32_t f = 0; f < families_.size(); ++f) {
    if (families_[f].source->name() != choice.template_name) continue;
    const auto grid = grid_of(families_[f], choice.config);
    const auto it = grid ? ranks_[f].find(*grid) : ranks_[f].end();
    return it == ranks_[f].end() ? std::nullopt : std::optional<size_t>(it->second);
  }
  return std::nullopt;
}

std::vector<uint64_t> Space::stratum(size_t rank, size_t parameters) const {
  const std::vector<uint32_t> d = digits(points_[rank]);
  const auto& names = families_[points_[rank].family].parameters;
  const auto depth =
      std::find_if(names.begin(), names.end(), [](const Parameter& p) { return p.name == "stages"; });
  const ptrdiff_t most = std::min(ptrdiff_t(parameters), ptrdiff_t(d.size()) - !d.empty());
  std::vector<uint64_t> key{points_[rank].family};
  key.insert(key.end(), d.begin(), d.begin() + std::min(most, depth - names.begin()));
  return key;
}

size_t Space::distance(size_t rank, size_t other) const {
  const std::vector<uint32_t> x = digits(points_[rank]), y = digits(points_[other]);
  if (points_[rank].family != points_[other].family) return std::max(x.size(), y.size());
  size_t count = 0;
  for (size_t i = 0; i < x.size(); ++i) count += x[i] != y[i];
  return count;
}

std::vector<size_t> Space::neighbours(size_t rank) const {
  const Point& point = points_[rank];
  const std::vector<uint32_t> origin = digits(point);
  std::vector<size_t> found;
  for (size_t i = 0; i < origin.size(); ++i)
    for (int step : {-1, 1}) {
      const int64_t end = int64_t(families_[point.family].parameters[i].values.size());
      std::vector<uint32_t> d = origin;
      for (int64_t v = int64_t(origin[i]) + step; v >= 0 && v < end; v += step) {
        d[i] = uint32_t(v);
        if (auto hit = at(point.family, d)) {
          found.push_back(*hit);
          break;
        }
      }
    }
  std::sort(found.begin(), found.end());
  return found;
}

std::vector<size_t> Space::second_neighbours(size_t rank) const {
  const Point& point = points_[rank];
  const std::vector<uint32_t> origin = digits(point);
  const auto& parameters = families_[point.family].parameters;
  auto moved = [&](std::vector<uint32_t>& d, size_t i, int step) {
    if (step < 0 ? d[i] == 0 : d[i] + 1 == parameters[i].values.size()) return false;
    d[i] = uint32_t(int64_t(d[i]) + step);
    return true;
  };
  std::vector<size_t> found;
  for (size_t i = 0; i < origin.size(); ++i)
    for (size_t j = i + 1; j < origin.size(); ++j)
      for (int signs = 0; signs < 4; ++signs) {
        std::vector<uint32_t> d = origin;
        if (!moved(d, i, signs & 1 ? 1 : -1) || !moved(d, j, signs & 2 ? 1 : -1)) continue;
        if (auto hit = at(point.family, d)) found.push_back(*hit);
      }
  std::sort(found.begin(), found.end());
  return found;
}

namespace {

/// Of a problem with ranges a config may be for smaller calls than the largest, and runs at all. Sizes are as
/// near to each other as tiles are.
bool is_legal_below(const Template& t, const Problem& problem, const Device& device, const Config& config) {
  if (!problem.ranged()) return false;
  if (problem.op() != "gemm") {
    const std::vector<Sizes> calls = default_points(problem);
    return std::any_of(calls.begin(), calls.end(), [&](const Sizes& call) {
      return t.why_illegal(problem.at(call), device, config).empty();
    });
  }
  const Gemm& p = problem.gemm();
  const auto legal = [&](const Sizes& sizes) {
    return t.why_illegal(p.up_to(sizes), device, config).empty();
  };
  const std::vector<Sizes> points = default_points(p);
  if (std::any_of(points.begin(), points.end(), legal)) return true;
  constexpr int64_t kTile = 16;
  for (size_t i = 0; i < size_count; ++i) {
    if (!p.least[i]) continue;
    Sizes sizes = p.sizes();
    const int64_t least = std::max<int64_t>(1, *p.least[i]);
    for (int64_t& x = sizes[Size(i)]; x > least; x = std::max(least, x - std::max(kTile, x / 8)))
      if (legal(sizes)) return true;
  }
  return false;
}

} // namespace

std::string why_illegal(const Problem& problem, const std::string& arch, const Device& device,
                        const Choice& choice) {
  const Template& t = find_template(choice.template_name);
  if (std::string why = t.why_not(problem, arch); !why.empty())
    return t.name() + " does not serve it: " + why;
  const std::vector<Parameter> parameters = t.parameters(problem, device);
  std::string names;
  for (const Parameter& p : parameters) names += (names.empty() ? "" : ", ") + p.name;
  // First: a name that is spelled wrong leaves another without a value.
  for (const auto& [name, value] : choice.config.values)
    if (std::none_of(parameters.begin(), parameters.end(),
                     [&](const Parameter& p) { return p.name == name; }))
      return t.name() + " has no parameter '" + name + "', but " + names;
  Config ordered;
  for (const Parameter& p : parameters) {
    auto& values = choice.config.values;
    auto it = std::find_if(values.begin(), values.end(), [&](const auto& v) { return v.first == p.name; });
    if (it == values.end() && p.absent) {
      ordered.values.emplace_back(p.name, *p.absent);
      continue;
    }
    if (it == values.end()) return "parameter '" + p.name + "' has no value";
    if (!position(p.values, it->second) && !p.more.holds(it->second))
      return p.name + "=" + std::to_string(it->second) + " is not one of " + values_text(p);
    ordered.values.push_back(*it);
  }
  const std::string why = t.why_illegal(problem, device, ordered);
  return why.empty() || is_legal_below(t, problem, device, ordered) ? "" : why;
}

} // namespace deepgen
