#include "generator/replay/recorded_space.h"

#include "base/files/files.h"
#include "base/json/json.h"
#include "base/text/error.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <iterator>
#include <map>
#include <optional>
#include <set>
#include <sstream>
#include <zstd.h>

namespace deepgen {
namespace {

constexpr const char* kSpaceSchema = "deepgen.recorded-space/1";

/// The names of a template's parameters, said once for all its configs.
using Names = std::vector<std::string>;

Names names_of(const Config& config) {
  Names names;
  for (const auto& [name, value] : config.values) names.push_back(name);
  return names;
}

std::string line_of(const RecordedConfig& c, size_t template_index) {
  std::string line = std::to_string(template_index);
  for (const auto& [name, value] : c.choice.config.values) line += " " + std::to_string(value);
  line += " " + c.status;
  if (c.timed()) {
    char ratio[32];
    std::snprintf(ratio, sizeof ratio, " %.5g ", c.ratio);
    line += ratio + std::to_string(c.samples);
  }
  return line + "\n";
}

/// All of the word; nothing when it is no such number.
template <typename T>
std::optional<T> number_of(const std::string& word) {
  T value{};
  const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
  return error == std::errc() && end == word.data() + word.size() ? std::optional<T>(value) : std::nullopt;
}

RecordedConfig parse_line(const std::string& line,
                          const std::vector<std::pair<std::string, Names>>& templates,
                          const std::string& where) {
  std::istringstream in(line);
  const std::vector<std::string> words{std::istream_iterator<std::string>(in), {}};
  const auto refuse = [&](const std::string& why) -> Error {
    return {"bad line of a recorded space", where, why + ": " + line,
            "make the file anew with `deepgen sweep pack`"};
  };
  const auto index = words.empty() ? std::nullopt : number_of<size_t>(words[0]);
  if (!index || *index >= templates.size()) throw refuse("no such template in the header");
  const auto& [name, names] = templates[*index];
  RecordedConfig c;
  c.choice.template_name = name;
  if (words.size() != names.size() + 2 && words.size() != names.size() + 4)
    throw refuse("not the template's number, a value for each parameter, a status, and a ratio with its "
                 "samples or neither");
  for (size_t i = 0; i < names.size(); ++i) {
    const auto value = number_of<int64_t>(words[i + 1]);
    if (!value) throw refuse("'" + words[i + 1] + "' is no value of " + names[i]);
    c.choice.config.values.emplace_back(names[i], *value);
  }
  c.status = words[names.size() + 1];
  if (words.size() == names.size() + 2) return c;
  const auto ratio = number_of<double>(words[names.size() + 2]);
  const auto samples = number_of<int64_t>(words[names.size() + 3]);
  if (!ratio || !std::isfinite(*ratio) || *ratio <= 0) throw refuse("the ratio is not a number above 0");
  if (!samples || *samples < 1) throw refuse("the samples are not a whole number from 1");
  c.ratio = *ratio, c.samples = *samples;
  return c;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const size_t n = values.size();
  return n == 0 ? 0 : n % 2 ? values[n / 2] : (values[n / 2 - 1] + values[n / 2]) / 2;
}

/// What the logs say about one config.
struct Findings {
  RecordedConfig config;
  std::string code;
};

/// Times of one piece of code, whatever configs made it.
struct Times {
  std::vector<std::pair<double, int64_t>> ratios; ///< with the samples of each
  int64_t samples = 0;

  void add(const Timing& t) {
    ratios.emplace_back(t.ratio, std::max<int64_t>(t.samples, 1));
    samples += ratios.back().second;
  }
  /// The median over all samples; between two where these are equally many.
  double ratio() {
    std::sort(ratios.begin(), ratios.end());
    int64_t below = 0;
    for (size_t i = 0; i < ratios.size(); ++i) {
      below += ratios[i].second;
      if (2 * below == samples) return (ratios[i].first + ratios[i + 1].first) / 2;
      if (2 * below > samples) return ratios[i].first;
    }
    return 0;
  }
};

} // namespace

std::string RecordedSpace::serialize() const {
  std::vector<std::pair<std::string, Names>> templates;
  std::string lines;
  for (const RecordedConfig& c : configs) {
    const std::pair<std::string, Names> key{c.choice.template_name, names_of(c.choice.config)};
    auto it = std::find(templates.begin(), templates.end(), key);
    if (it == templates.end()) it = templates.insert(templates.end(), key);
    lines += line_of(c, size_t(it - templates.begin()));
  }
  Json list = Json::array();
  for (const auto& [name, parameters] : templates)
    list.push_back({{"name", name}, {"parameters", parameters}});
  Json head = {{"schema", kSpaceSchema},     {"problem", problem.key()},   {"arch", arch},
               {"device", device.to_json()}, {"environment", environment}, {"anchor_seconds", anchor_seconds},
               {"configs", configs.size()}};
  if (planned) head.update({{"planned", planned}, {"measured", measured}, {"complete", !cut_off()}});
  head["templates"] = list;
  return dump_json(head) + "\n" + lines;
}

RecordedSpace RecordedSpace::parse(const std::string& text, const std::string& where) {
  std::istringstream in(text);
  std::string line;
  std::getline(in, line);
  const Json head = parse_json(line, where + ":1");
  check_schema(head, kSpaceSchema, where);
  RecordedSpace space;
  space.problem = Problem::parse(get<std::string>(head, "problem", where));
  space.arch = get<std::string>(head, "arch", where);
  space.device = Device::from_json(get<Json>(head, "device", where));
  space.environment = get<Json>(head, "environment", where);
  space.anchor_seconds = get<double>(head, "anchor_seconds", where);
  if (head.contains("planned")) {
    space.planned = get_count(head, "planned", where, 1);
    space.measured = get_count(head, "measured", where);
    if (get<bool>(head, "complete", where) == space.cut_off())
      throw Error("a recorded space contradicts itself", where,
                  "complete, planned and measured do not agree");
  }
  std::vector<std::pair<std::string, Names>> templates;
  for (const Json& t : get<Json>(head, "templates", where))
    templates.emplace_back(get<std::string>(t, "name", where), get<Names>(t, "parameters", where));
  std::set<std::string> seen;
  for (size_t number = 2; std::getline(in, line); ++number) {
    const std::string place = where + ":" + std::to_string(number);
    space.configs.push_back(parse_line(line, templates, place));
    if (!seen.insert(space.configs.back().choice.text()).second)
      throw Error("a recorded space has a config twice", place, line,
                  "make the file anew with `deepgen sweep pack`");
  }
  if (const size_t count = get<size_t>(head, "configs", where); count != space.configs.size())
    throw Error("a recorded space is cut off", where,
                std::to_string(space.configs.size()) + " of " + std::to_string(count) + " configs");
  return space;
}

void RecordedSpace::write(const std::string& path) const {
  constexpr int kLevel = 19;
  const std::string text = serialize();
  std::string bytes(ZSTD_compressBound(text.size()), '\0');
  const size_t size = ZSTD_compress(bytes.data(), bytes.size(), text.data(), text.size(), kLevel);
  if (ZSTD_isError(size)) throw Error("cannot compress a recorded space", path, ZSTD_getErrorName(size));
  bytes.resize(size);
  write_if_changed(path, bytes);
}

RecordedSpace RecordedSpace::read(const std::string& path) {
  constexpr unsigned long long kMost = 1 << 30;
  const std::string bytes = read_file(path, kMostOfLogs);
  const auto size = ZSTD_getFrameContentSize(bytes.data(), bytes.size());
  if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN || size > kMost)
    throw Error("not a recorded space", path, "it is no zstd frame with its size",
                "make it with `deepgen sweep pack`");
  std::string text(size_t(size), '\0');
  const size_t got = ZSTD_decompress(text.data(), text.size(), bytes.data(), bytes.size());
  if (ZSTD_isError(got)) throw Error("cannot decompress a recorded space", path, ZSTD_getErrorName(got));
  return parse(text, path);
}

RecordedSpace pack(const Problem& problem, const Device& device, const std::vector<RecordLog>& logs,
                   int64_t planned) {
  RecordedSpace space;
  std::set<std::string> seen;
  space.problem = problem, space.arch = device.arch, space.device = device;
  std::map<std::string, Findings> found;
  std::map<std::string, Times> times;
  std::vector<double> anchors;
  for (const RecordLog& log : logs) {
    std::vector<double> seconds;
    for (const Record& r : log.records) {
      if (r.problem != problem.key() || r.arch != space.arch || r.is_vendor()) continue;
      seen.insert(r.choice.text());
      if (r.status == "dropped" && !r.timing) continue; // not reached
      const std::string code = r.sha256.empty() ? r.choice.text() : r.sha256;
      Findings& f =
          found.try_emplace(r.choice.text(), Findings{{r.choice, r.status, 0, 0}, code}).first->second;
      if (r.timing && r.timing->ratio > 0 && (r.ok() || r.status == "dropped")) {
        times[code].add(*r.timing);
        seconds.push_back(r.timing->seconds / r.timing->ratio);
        f.config.status = r.status;
      }
    }
    if (!seconds.empty()) anchors.push_back(median(seconds));
  }
  for (auto& [text, f] : found) {
    if (const auto it = times.find(f.code); it != times.end()) {
      f.config.ratio = it->second.ratio();
      f.config.samples = it->second.samples;
      if (f.config.status == "duplicate") f.config.status = "ok";
    }
    if (f.config.timed() || f.config.status != "duplicate") space.configs.push_back(f.config);
  }
  if (space.configs.empty())
    throw Error("no log has a record of this problem", problem.key(), std::to_string(logs.size()) + " logs",
                "pass the logs of its sweep");
  space.environment = logs.front().environment;
  space.planned = planned, space.measured = int64_t(seen.size());
  space.anchor_seconds = median(anchors);
  return space;
}

} // namespace deepgen
