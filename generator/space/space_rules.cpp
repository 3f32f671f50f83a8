#include "generator/space/space_rules.h"

#include "base/text/error.h"
#include "base/text/pattern.h"
#include "generator/space/space.h"

#include <algorithm>

namespace deepgen {
namespace {

bool contains(const std::vector<int64_t>& values, int64_t value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

std::string list(const std::vector<int64_t>& values) {
  std::string text;
  for (int64_t value : values) text += (text.empty() ? "" : ", ") + std::to_string(value);
  return text;
}

/// The offered ones in their order, and the others where they belong when that order is by size, else behind.
std::vector<int64_t> in_order(const std::vector<int64_t>& offered, std::vector<int64_t> values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  if (std::is_sorted(offered.begin(), offered.end())) return values;
  std::vector<int64_t> ordered;
  for (int64_t value : offered)
    if (contains(values, value)) ordered.push_back(value);
  for (int64_t value : values)
    if (!contains(offered, value)) ordered.push_back(value);
  return ordered;
}

bool exists(const std::string& name) {
  return std::any_of(templates().begin(), templates().end(),
                     [&](const Template* t) { return t->name() == name; });
}

int64_t value_of(const Choice& choice, const std::string& parameter) { return choice.config[parameter]; }

} // namespace

struct SpaceRules::Patterns {
  std::optional<Pattern> include, exclude;
};

SpaceRules::SpaceRules(const SearchOptions& options, const Problem& problem, const std::string& arch,
                       const Device& device)
    : options_(options), problem_(problem), device_(device), patterns_(new Patterns) {
  for (const auto& [name, rule] : options.templates)
    if (!exists(name)) {
      std::string known;
      for (const Template* t : templates()) known += (known.empty() ? "" : ", ") + t->name();
      throw Error("unknown template '" + name + "'", where("templates." + name), "this version has: " + known,
                  "correct the name, or leave it out");
    }
  if (!options.include.empty()) patterns_->include.emplace(options.include, where("include"));
  if (!options.exclude.empty()) patterns_->exclude.emplace(options.exclude, where("exclude"));
  size_t illegal = 0;
  for (const Choice& choice : options.configs)
    if (exists(choice.template_name) && why_illegal(problem, arch, device, choice).empty())
      configs_.push_back(choice);
    else
      ++illegal;
  if (illegal)
    notes_.push_back(std::to_string(illegal) + " of " + std::to_string(options.configs.size()) +
                     " configs of the saved space are not legal here");
}

SpaceRules::~SpaceRules() = default;

std::string SpaceRules::where(const std::string& key) const {
  return (options_.file.empty() ? "search options" : options_.file) + ", " + key;
}

std::string SpaceRules::restrictions() const {
  const std::pair<bool, const char*> keys[] = {{!options_.templates.empty(), "templates"},
                                               {!options_.include.empty(), "include"},
                                               {!options_.exclude.empty(), "exclude"},
                                               {options_.workspace != SearchOptions().workspace, "workspace"},
                                               {!options_.configs.empty(), "space"}};
  std::string text;
  for (const auto& [given, key] : keys)
    if (given) text += (text.empty() ? "" : ", ") + std::string(key);
  return text;
}

bool SpaceRules::allows(const Template& t) const {
  return options_.templates.empty() || options_.templates.count(t.name());
}

bool SpaceRules::passes(const Template& t, const Config& config) const {
  if (t.workspace(problem_, config) > options_.workspace) return false;
  if (const auto& only = options_.sum_order;
      only && t.sum_order(only->of, device_.arch, config) != only->order)
    return false;
  if (!patterns_->include && !patterns_->exclude) return true;
  const std::string text = Choice{t.name(), config}.text();
  return (!patterns_->include || patterns_->include->is_found_in(text)) &&
         (!patterns_->exclude || !patterns_->exclude->is_found_in(text));
}

bool SpaceRules::allows(const Choice& choice) const {
  if (!exists(choice.template_name)) return false;
  const Template& t = find_template(choice.template_name);
  if (!allows(t) || !passes(t, choice.config)) return false;
  if (auto rule = options_.templates.find(choice.template_name); rule != options_.templates.end())
    for (const auto& [parameter, values] : rule->second.values)
      if (!contains(values, value_of(choice, parameter))) return false;
  return true;
}

/// What an enumeration visits of one parameter.
std::vector<int64_t> SpaceRules::wanted(const Template& t, const Parameter& p) {
  std::vector<int64_t> asked = p.values;
  if (auto rule = options_.templates.find(t.name()); rule != options_.templates.end()) {
    const auto &values = rule->second.values, &added = rule->second.added;
    if (auto it = values.find(p.name); it != values.end()) asked = it->second;
    if (auto it = added.find(p.name); it != added.end())
      asked.insert(asked.end(), it->second.begin(), it->second.end());
  }
  std::vector<int64_t> possible, others;
  for (int64_t value : asked)
    (contains(p.values, value) || p.more.holds(value) ? possible : others).push_back(value);
  if (!others.empty())
    notes_.push_back(t.name() + " cannot have " + p.name + "=" + list(others) + " here, but " +
                     values_text(p));
  return possible;
}

std::vector<RuledParameter> SpaceRules::parameters(const Template& t, const std::optional<Choice>& also) {
  std::vector<RuledParameter> ruled;
  const std::vector<Parameter> offered = t.parameters(problem_, device_);
  if (auto rule = options_.templates.find(t.name()); rule != options_.templates.end())
    for (const auto* rules : {&rule->second.values, &rule->second.added})
      for (const auto& [name, values] : *rules)
        if (std::none_of(offered.begin(), offered.end(),
                         [&](const Parameter& p) { return p.name == name; })) {
          std::string known;
          for (const Parameter& p : offered) known += (known.empty() ? "" : ", ") + p.name;
          throw Error("template " + t.name() + " has no parameter '" + name + "'",
                      where("templates." + t.name() + "." + name), "it has: " + known,
                      "`deepgen space explain --problem ...` says what they mean");
        }
  for (const Parameter& p : offered) {
    const std::vector<int64_t> visited = wanted(t, p);
    std::vector<int64_t> all = visited;
    for (const Choice& choice : configs_)
      if (choice.template_name == t.name()) all.push_back(value_of(choice, p.name));
    if (also && also->template_name == t.name()) all.push_back(value_of(*also, p.name));
    RuledParameter r{p, {}};
    r.parameter.values = in_order(p.values, std::move(all));
    for (int64_t value : r.parameter.values) r.visited.push_back(contains(visited, value));
    ruled.push_back(std::move(r));
  }
  return ruled;
}

std::string values_text(const Parameter& p) {
  std::string text = list(p.values);
  if (p.more.most < p.more.least) return text;
  text += "; beside them ";
  if (p.more.powers)
    text += "powers of two ";
  else if (p.more.step > 1)
    text += "multiples of " + std::to_string(p.more.step) + " ";
  return text + "from " + std::to_string(p.more.least) + " to " + std::to_string(p.more.most);
}

} // namespace deepgen
