#include "workload/mlir/scheduler.h"

#include "base/text/error.h"
#include "base/text/text.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <sstream>

namespace deepgen::tensors {
namespace {

const std::map<std::string, std::vector<std::string>>& known_keys() {
  static const std::map<std::string, std::vector<std::string>> keys = {
      {"Env", {"iree_bin", "input_file", "output_file"}},
      {"SearchSpace",
       {"tile_m", "tile_n", "tile_k", "block_dim_x", "block_dim_y", "block_dim_z", "pipeline_depth"}},
      {"SearchStrategy", {"tuner", "n_trial"}}};
  return keys;
}

std::string joined(const std::vector<std::string>& words) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : ", ") + word;
  return text;
}

std::string stripped(const std::string& text) {
  const size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string::npos) return "";
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::optional<int64_t> whole_number(const std::string& text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return {};
  return value;
}

/// "[64,128]"; a number alone is a list of one.
std::vector<int64_t> list_of(const std::string& key, std::string text, const std::string& where) {
  if (text.size() >= 2 && text.front() == '[' && text.back() == ']') text = text.substr(1, text.size() - 2);
  std::vector<int64_t> values;
  std::istringstream parts(text);
  for (std::string part; std::getline(parts, part, ',');) {
    const std::optional<int64_t> value = whole_number(stripped(part));
    if (!value || *value < 1 || *value > 1'000'000 || std::count(values.begin(), values.end(), *value) ||
        values.size() == 1000)
      throw Error("bad value of '" + key + "': " + visible(text.substr(0, 200)), where, "",
                  "a list of different whole numbers from 1 to 1000000, as [64,128]");
    values.push_back(*value);
  }
  if (values.empty())
    throw Error("'" + key + "' is empty", where, "", "a list, as [64,128], or no such line");
  return values;
}

class IniReader {
public:
  IniReader(const std::string& text, const std::string& file) : text_(text), file_(file) {}

  std::map<std::string, std::pair<std::string, int64_t>> read() {
    std::istringstream lines(text_);
    for (std::string line; std::getline(lines, line);) {
      ++number_;
      if (number_ == 1 && line.rfind("\xef\xbb\xbf", 0) == 0) line = line.substr(3);
      line = stripped(line);
      if (line.empty() || line[0] == '#' || line[0] == ';') continue;
      line[0] == '[' && line.back() == ']' ? open(line.substr(1, line.size() - 2)) : add(line);
    }
    return values_;
  }

  std::string where() const { return file_ + ":" + std::to_string(number_); }

private:
  void open(const std::string& name) {
    const auto& known = known_keys();
    if (!known.count(name))
      throw Error("unknown section [" + visible(name.substr(0, 100)) + "]", where(), "",
                  "[Env], [SearchSpace], [SearchStrategy]");
    section_ = name;
  }

  void add(const std::string& line) {
    const size_t at = line.find_first_of("=:");
    if (section_.empty() || at == std::string::npos)
      throw Error("no section and no setting: " + visible(line.substr(0, 100)), where(), "",
                  "key = value, in a section");
    std::string key = stripped(line.substr(0, at));
    const std::string value = stripped(line.substr(at + 1));
    std::transform(key.begin(), key.end(), key.begin(),
                   [](unsigned char c) { return char(std::tolower(c)); });
    const std::vector<std::string>& keys = known_keys().at(section_);
    if (std::find(keys.begin(), keys.end(), key) == keys.end())
      throw Error("unknown key '" + visible(key.substr(0, 100)) + "' in [" + section_ + "]", where(), "",
                  joined(keys));
    const auto [there, is_new] = values_.try_emplace(key, value, number_);
    if (!is_new && there->second.first != value)
      throw Error("'" + key + "' has two values", where(),
                  "line " + std::to_string(there->second.second) + " has another one",
                  "delete one of the lines");
  }

  const std::string &text_, file_;
  std::string section_;
  int64_t number_ = 0;
  std::map<std::string, std::pair<std::string, int64_t>> values_;
};

/// A setting of the space as a parameter of a template, times `unit`.
struct Counterpart {
  const char *setting, *parameter;
  int64_t unit = 1, divisor = 1;
};

/// For problems of these types: f32 and f64 by simt, others by tensor cores. bk of mma_sync is in bytes.
std::vector<std::pair<std::string, std::vector<Counterpart>>>
counterparts(const std::vector<Gemm>& problems) {
  std::vector<std::pair<std::string, std::vector<Counterpart>>> list;
  const auto is_plain = [](const Gemm& g) { return g.a == Type::f32 || g.a == Type::f64; };
  if (std::any_of(problems.begin(), problems.end(), is_plain)) {
    list.push_back({"cpu_tile", {{"tile_m", "mc"}, {"tile_n", "nc"}, {"tile_k", "kc"}}});
    list.push_back(
        {"simt", {{"tile_m", "bm"}, {"tile_n", "bn"}, {"tile_k", "bk"}, {"pipeline_depth", "stages"}}});
  }
  for (const Gemm& g : problems)
    if (!is_plain(g)) {
      list.push_back({"mma_sync",
                      {{"tile_m", "bm"},
                       {"tile_n", "bn"},
                       {"tile_k", "bk", size_of(g.a)},
                       {"pipeline_depth", "stages"},
                       {"block_dim_y", "warps_m"},
                       {"block_dim_x", "warps_n", 1, 32}}});
      break;
    }
  return list;
}

std::string values_text(const std::vector<int64_t>& values) {
  std::string text;
  for (int64_t v : values) text += (text.empty() ? "" : ", ") + std::to_string(v);
  return text;
}

/// What becomes of one setting.
std::string place_setting(const std::string& setting, const std::vector<int64_t>& values,
                          const std::vector<std::pair<std::string, std::vector<Counterpart>>>& all,
                          SearchOptions& options) {
  std::string text;
  for (const auto& [name, parts] : all)
    for (const Counterpart& c : parts) {
      if (setting != c.setting) continue;
      std::vector<int64_t> mapped;
      for (int64_t v : values)
        if (v % c.divisor == 0) mapped.push_back(v / c.divisor * c.unit);
      if (mapped.empty()) continue;
      options.templates[name].values[c.parameter] = mapped;
      text +=
          (text.empty() ? "" : ", ") + std::string(c.parameter) + " of " + name + ": " + values_text(mapped);
    }
  if (!text.empty()) return setting + " is " + text;
  return setting + " has no counterpart: " +
         (setting == "block_dim_z"      ? "blocks have no third dimension"
          : setting == "pipeline_depth" ? "kernels for CPUs have no stages"
                                        : "the threads of a block follow from its tile and that of a thread");
}

std::string strategy_for(const std::string& tuner, std::vector<std::string>& notes) {
  std::string lower = tuner;
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](unsigned char c) { return char(std::tolower(c)); });
  static const std::pair<const char*, const char*> known[] = {{"xgboosttuner", "gbt"},
                                                              {"gridtuner", "grid"},
                                                              {"gridsearchtuner", "grid"},
                                                              {"randomtuner", "random"},
                                                              {"gatuner", "genetic"}};
  for (const auto& [name, strategy] : known)
    if (lower == name) {
      notes.push_back("tuner " + tuner + " is strategy " + strategy +
                      (std::string(strategy) == "gbt"
                           ? ", boosted trees; xgboost where deepgen was built with libxgboost"
                           : ""));
      return strategy;
    }
  throw Error("unknown tuner '" + visible(tuner.substr(0, 100)) + "'", "[SearchStrategy]", "",
              "XGBoostTuner, GridTuner, RandomTuner, GATuner");
}

} // namespace

Scheduler Scheduler::parse(const std::string& text, const std::string& where) {
  IniReader reader(text, where);
  auto values = reader.read();
  const auto take = [&](const std::string& key, bool required) {
    const auto found = values.find(key);
    if (found == values.end() || found->second.first.empty()) {
      if (required) throw Error("'" + key + "' is missing", where, "", "a line: " + key + " = ...");
      return std::string();
    }
    if (const std::string why = why_no_name(found->second.first, 1000); !why.empty())
      throw Error("bad value of '" + key + "'", where + ":" + std::to_string(found->second.second), why);
    return found->second.first;
  };
  Scheduler s;
  s.input = take("input_file", true), s.output = take("output_file", false),
  s.toolchain = take("iree_bin", false);
  s.tuner = take("tuner", true);
  const std::string trials = take("n_trial", true);
  const std::optional<int64_t> number = whole_number(trials);
  if (!number || *number < 1 || *number > 100'000)
    throw Error("bad value of 'n_trial': " + visible(trials), where, "", "a whole number from 1 to 100000");
  s.trials = *number;
  for (const std::string& key : known_keys().at("SearchSpace"))
    if (const std::string list = take(key, false); !list.empty()) {
      s.space.emplace_back(key, list_of(key, list, where + ":" + std::to_string(values[key].second)));
      if (key == "block_dim_z" && s.space.back().second != std::vector<int64_t>{1})
        throw Error("block_dim_z is not [1]", where, "", "block_dim_z = [1], or no such line");
    }
  return s;
}

ScheduledSearch search_of(const Scheduler& s, const std::vector<Gemm>& problems) {
  ScheduledSearch result;
  result.options.strategy = strategy_for(s.tuner, result.notes);
  result.options.trials = s.trials;
  result.notes.push_back("n_trial is trials: " + std::to_string(s.trials));
  const auto all = counterparts(problems);
  for (const auto& [setting, values] : s.space)
    result.notes.push_back(place_setting(setting, values, all, result.options));
  if (!s.toolchain.empty()) result.notes.push_back("iree_bin has no counterpart: DeepGen compiles by itself");
  return result;
}

} // namespace deepgen::tensors
