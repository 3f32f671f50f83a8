#include "base/search/search_options.h"

#include "base/files/files.h"
#include "base/json/json.h"
#include "base/kernel/regime.h"
#include "base/text/pattern.h"

#include <algorithm>
#include <cctype>
#include <cstdio>
#include <functional>
#include <set>

namespace deepgen {
namespace {

constexpr const char* kSearchSchema = "deepgen.search/1";
constexpr const char* kSpaceSchema = "deepgen.space/1";
constexpr const char* kRemedy = "see \"Search files\" in docs/search.md";
constexpr size_t kMostValues = 1000; ///< of a parameter
constexpr size_t kLongestPattern = 500;

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

/// One object of the file. Every field is asked for by its name; what nobody asked for is an error.
class Fields {
public:
  Fields(const Json& json, std::string path, const std::string& where)
      : json_(json), path_(std::move(path)), where_(where) {
    if (!json.is_object()) throw Error("'" + path_ + "' is not an object", where_, excerpt(json), kRemedy);
  }

  const Json* find(const std::string& key) {
    known_.push_back(key);
    auto it = json_.find(key);
    return it == json_.end() ? nullptr : &*it;
  }

  [[noreturn]] void fail(const std::string& key, const Json& value, const std::string& allowed) const {
    throw Error("bad value of '" + name(key) + "': " + excerpt(value), where_, "allowed: " + allowed,
                kRemedy);
  }

  void whole(const std::string& key, int64_t least, int64_t most, const std::function<void(int64_t)>& set) {
    const Json* value = find(key);
    if (!value) return;
    // An unsigned number beyond int64_t would wrap.
    if (!value->is_number_integer() ||
        (value->is_number_unsigned() && value->get<uint64_t>() > uint64_t(INT64_MAX)) ||
        value->get<int64_t>() < least || value->get<int64_t>() > most)
      fail(key, *value, "a whole number from " + std::to_string(least) + " to " + std::to_string(most));
    set(value->get<int64_t>());
  }

  void seconds(const std::string& key, double least, double most, std::optional<double>& result) {
    const Json* value = find(key);
    if (!value) return;
    if (!value->is_number() || !(value->get<double>() >= least && value->get<double>() <= most)) {
      char text[64];
      std::snprintf(text, sizeof text, "seconds from %g to %g", least, most);
      fail(key, *value, text);
    }
    result = value->get<double>();
  }

  void text(const std::string& key, std::string& result, const std::vector<std::string>& allowed = {}) {
    const Json* value = find(key);
    if (!value) return;
    if (!value->is_string()) fail(key, *value, allowed.empty() ? "a string" : joined(allowed));
    result = value->get<std::string>();
    if (!allowed.empty() && std::find(allowed.begin(), allowed.end(), result) == allowed.end())
      fail(key, *value, joined(allowed));
  }

  void pattern(const std::string& key, std::string& result) {
    text(key, result);
    if (result.size() > kLongestPattern)
      fail(key, result, "up to " + std::to_string(kLongestPattern) + " characters");
    const Pattern checked(result, where_ + ", " + name(key));
  }

  /// Throws when the object has a field that nobody asked for.
  void finish() const {
    for (const auto& [key, value] : json_.items())
      if (std::find(known_.begin(), known_.end(), key) == known_.end())
        throw Error("unknown key '" + name(key) + "'", where_, "known here: " + joined(known_), kRemedy);
  }

  std::string name(const std::string& key) const { return path_.empty() ? key : path_ + "." + key; }
  const Json& json() const { return json_; }
  const std::string& where() const { return where_; }

private:
  const Json& json_;
  const std::string path_;
  const std::string& where_;
  std::vector<std::string> known_;
};

std::vector<int64_t> whole_list(const Fields& in, const std::string& key, const Json& list, int64_t least,
                                int64_t most, bool distinct) {
  const std::string allowed = "a list of " + std::string(distinct ? "different " : "") +
                              "whole numbers from " + std::to_string(least) + " to " + std::to_string(most);
  if (!list.is_array() || list.empty() || list.size() > kMostValues)
    in.fail(key, list, allowed + ", 1 to " + std::to_string(kMostValues) + " of them");
  std::vector<int64_t> values;
  for (const Json& value : list) {
    if (!value.is_number_integer() ||
        (value.is_number_unsigned() && value.get<uint64_t>() > uint64_t(INT64_MAX)))
      in.fail(key, value, allowed);
    const int64_t number = value.get<int64_t>();
    if (number < least || number > most ||
        (distinct && std::find(values.begin(), values.end(), number) != values.end()))
      in.fail(key, value, allowed);
    values.push_back(number);
  }
  return values;
}

/// Whether a value is any good is for the template to say.
constexpr int64_t kLargest = int64_t(1) << 40;

TemplateRule rule_of(const Json& json, const std::string& path, const std::string& where) {
  TemplateRule rule;
  Fields in(json, path, where);
  for (const auto& [parameter, value] : json.items()) {
    in.find(parameter);
    if (!value.is_object()) {
      rule.values[parameter] = whole_list(in, parameter, value, -kLargest, kLargest, true);
      continue;
    }
    Fields change(value, in.name(parameter), where);
    const Json* add = change.find("add");
    change.finish();
    if (!add) in.fail(parameter, value, "a list of values, or {\"add\": [...]}");
    rule.added[parameter] = whole_list(change, "add", *add, -kLargest, kLargest, true);
  }
  return rule;
}

void read_templates(Fields& in, SearchOptions& o) {
  const Json* templates = in.find("templates");
  if (!templates) return;
  if (!templates->is_object() || templates->empty())
    in.fail("templates", *templates,
            "an object with a member for each template to use, such as {\"cpu_tile\": {}}");
  for (const auto& [name, rule] : templates->items())
    o.templates[name] = rule_of(rule, "templates." + name, in.where());
}

void read_devices(Fields& in, MeasureRules& rules) {
  const Json* devices = in.find("devices");
  if (!devices) return;
  if (!devices->is_array() || devices->empty())
    in.fail("devices", *devices, "a list of GPUs: indices, UUIDs or names");
  for (const Json& device : *devices) {
    const bool index = device.is_number_unsigned() && device.get<uint64_t>() < 1024;
    // Words of a command line: nothing that a list in CMake or a shell would take apart.
    const bool word = device.is_string() && !device.get<std::string>().empty() &&
                      std::all_of(device.get_ref<const std::string&>().begin(),
                                  device.get_ref<const std::string&>().end(), [](unsigned char c) {
                                    return std::isalnum(c) || c == ' ' || c == '-' || c == '_' || c == '.';
                                  });
    if (!index && !word)
      in.fail("devices", device, "an index below 1024, a UUID as nvidia-smi prints it, or a name");
    rules.devices.push_back(index ? std::to_string(device.get<uint64_t>()) : device.get<std::string>());
  }
}

void read_measure(Fields& in, MeasureRules& rules) {
  const Json* measure = in.find("measure");
  if (!measure) return;
  Fields m(*measure, "measure", in.where());
  m.seconds("seconds", 0.1, 86400, rules.seconds);
  m.whole("warmup", 0, 10000, [&](int64_t v) { rules.warmup = v; });
  m.whole("samples", 11, 10000, [&](int64_t v) { rules.samples = v; });
  m.seconds("call_timeout", 0.05, 3600, rules.call_timeout);
  m.seconds("compile_timeout", 0.1, 3600, rules.compile_timeout);
  m.text("caches", rules.caches, {"cold", "weights-cold", "warm"});
  m.text("baseline", rules.baseline, {"vendor", "none"});
  read_devices(m, rules);
  m.finish();
}

Json measure_json(const MeasureRules& m) {
  Json json = Json::object();
  if (m.seconds) json["seconds"] = *m.seconds;
  if (m.warmup) json["warmup"] = *m.warmup;
  if (m.samples) json["samples"] = *m.samples;
  if (m.call_timeout) json["call_timeout"] = *m.call_timeout;
  if (m.compile_timeout) json["compile_timeout"] = *m.compile_timeout;
  if (!m.caches.empty()) json["caches"] = m.caches;
  if (!m.baseline.empty()) json["baseline"] = m.baseline;
  if (!m.devices.empty()) json["devices"] = m.devices;
  return json;
}

Json templates_json(const std::map<std::string, TemplateRule>& templates) {
  Json json = Json::object();
  for (const auto& [name, rule] : templates) {
    json[name] = Json::object();
    for (const auto& [parameter, values] : rule.values) json[name][parameter] = values;
    for (const auto& [parameter, values] : rule.added) json[name][parameter] = {{"add", values}};
  }
  return json;
}

} // namespace

const std::vector<std::string>& search_strategies() {
  static const std::vector<std::string> names = {"auto",    "grid", "random", "anneal",
                                                 "genetic", "gbt",  "xgboost"};
  return names;
}

SearchOptions SearchOptions::parse(const std::string& text, const std::string& where) {
  const Json json = parse_json(text, where);
  check_schema(json, kSearchSchema, where);
  SearchOptions o;
  Fields in(json, "", where);
  in.find("schema");
  in.text("budget", o.budget, {"quick", "default", "thorough"});
  if (const Json* slots = in.find("slots")) o.slots = whole_list(in, "slots", *slots, 1, 1000, false);
  in.text("regime", o.regime, regime_words());
  in.text("strategy", o.strategy, search_strategies());
  in.whole("seed", 0, INT64_MAX, [&](int64_t v) { o.seed = uint64_t(v); });
  in.whole("trials", 1, 100000, [&](int64_t v) { o.trials = v; });
  in.whole("patience", 0, 100000, [&](int64_t v) { o.patience = v; });
  read_templates(in, o);
  in.pattern("include", o.include);
  in.pattern("exclude", o.exclude);
  in.whole("workspace", 0, int64_t(1) << 50, [&](int64_t v) { o.workspace = v; });
  in.text("space", o.space);
  read_measure(in, o.measure);
  in.finish();
  return o;
}

SearchOptions SearchOptions::read(const std::string& path) {
  SearchOptions o = parse(read_file(path), path);
  o.file = path;
  return o;
}

std::string SearchOptions::serialize() const {
  const SearchOptions standard;
  Json json = {{"schema", kSearchSchema}};
  if (!budget.empty()) json["budget"] = budget;
  if (!slots.empty()) json["slots"] = slots;
  if (!regime.empty()) json["regime"] = regime;
  if (strategy != standard.strategy) json["strategy"] = strategy;
  if (seed != standard.seed) json["seed"] = seed;
  if (trials) json["trials"] = *trials;
  if (patience != standard.patience) json["patience"] = patience;
  if (!templates.empty()) json["templates"] = templates_json(templates);
  if (!include.empty()) json["include"] = include;
  if (!exclude.empty()) json["exclude"] = exclude;
  if (workspace != standard.workspace) json["workspace"] = workspace;
  if (!space.empty()) json["space"] = space;
  if (const Json rules = measure_json(measure); !rules.empty()) json["measure"] = rules;
  return json.dump(1) + "\n";
}

std::string SavedSpace::serialize() const {
  std::string out = "{\"schema\":\"" + std::string(kSpaceSchema) + "\",\"configs\":[";
  for (size_t i = 0; i < entries.size(); ++i) {
    const SpaceEntry& e = entries[i];
    Json json = Json::object();
    if (!e.problem.empty()) json["problem"] = e.problem;
    if (!e.arch.empty()) json["arch"] = e.arch;
    json["template"] = e.choice.template_name;
    json["config"] = e.choice.config.to_json();
    out += (i ? ",\n" : "\n") + json.dump();
  }
  return out + "\n]}\n";
}

SavedSpace SavedSpace::parse(const std::string& text, const std::string& where) {
  const Json json = parse_json(text, where);
  check_schema(json, kSpaceSchema, where);
  SavedSpace space;
  Fields in(json, "", where);
  in.find("schema");
  const Json* configs = in.find("configs");
  in.finish();
  if (!configs || !configs->is_array())
    throw Error("'configs' is missing or no list", where, "",
                "write the file with `deepgen space save` or `deepgen top`");
  size_t number = 0;
  for (const Json& item : *configs) {
    const std::string place = where + ", config " + std::to_string(++number);
    SpaceEntry e;
    Fields fields(item, "configs", place);
    fields.text("problem", e.problem);
    fields.text("arch", e.arch);
    e.choice.template_name = get<std::string>(item, "template", place);
    e.choice.config = Config::from_json(get<Json>(item, "config", place));
    fields.find("template"), fields.find("config");
    fields.finish();
    space.entries.push_back(std::move(e));
  }
  return space;
}

SavedSpace SavedSpace::read(const std::string& path) { return parse(read_file(path, kMostOfLogs), path); }

std::vector<Choice> SavedSpace::configs_for(const std::string& problem, const std::string& arch) const {
  std::vector<Choice> configs;
  std::set<std::string> seen;
  for (const SpaceEntry& e : entries)
    if ((e.problem.empty() || e.problem == problem) && (e.arch.empty() || e.arch == arch) &&
        seen.insert(e.choice.text()).second)
      configs.push_back(e.choice);
  return configs;
}

} // namespace deepgen
