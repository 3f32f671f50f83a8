#include "base/search/record.h"

#include "base/files/files.h"
#include "base/json/json_text.h"
#include "base/search/log_environment.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iostream>

namespace deepgen {
namespace {

constexpr const char* kRecordSchema = "deepgen.record/1";
constexpr const char* kEnvironmentSchema = "deepgen.env/1";
constexpr size_t kLongest = 4096; ///< bytes of a problem's key, and of a path

Json timing_json(const Timing& t) {
  return {{"seconds", finite(t.seconds)},
          {"quartile1", finite(t.quartile1)},
          {"quartile3", finite(t.quartile3)},
          {"ratio", finite(t.ratio)},
          {"low", finite(t.low)},
          {"high", finite(t.high)},
          {"samples", t.samples},
          {"clean", finite(t.clean)}};
}

/// Decisions look for the least of these, and for what is near it.
double get_amount(const Json& json, const char* name, const std::string& where) {
  const auto value = get<double>(json, name, where);
  if (value < 0) throw Error("field '" + std::string(name) + "' is below 0: " + excerpt(json[name]), where);
  return value;
}

Timing timing_from_json(const Json& json, const std::string& where) {
  Timing t;
  t.seconds = get_amount(json, "seconds", where);
  t.ratio = get_amount(json, "ratio", where);
  for (auto [name, value] : {std::pair{"quartile1", &t.quartile1},
                             {"quartile3", &t.quartile3},
                             {"low", &t.low},
                             {"high", &t.high},
                             {"clean", &t.clean}})
    *value = get<double>(json, name, where);
  t.samples = get<int64_t>(json, "samples", where);
  return t;
}

std::optional<Timing> timing_in(const Json& json, const char* regime, const std::string& where) {
  if (!json.contains(regime)) return std::nullopt;
  return timing_from_json(get<Json>(json, regime, where), where + ", " + regime);
}

PointTiming point_from_json(const Json& json, const std::string& where) {
  const auto at = get<std::array<int64_t, size_count>>(json, "at", where);
  check_counts("at", where, at.data(), at.data() + at.size());
  return {{at[0], at[1], at[2], at[3]}, timing_from_json(json, where), 1, timing_in(json, "bursts", where)};
}

Json point_json(const PointTiming& p) {
  Json json = timing_json(p.timing);
  json["at"] = {p.at.m, p.at.n, p.at.k, p.at.batch};
  if (p.bursts) json["bursts"] = timing_json(*p.bursts);
  return json;
}

} // namespace

const Timing* Record::at(const Sizes& sizes) const {
  for (const PointTiming& p : points)
    if (p.at == sizes) return &p.timing;
  return nullptr;
}

Timing mean_timing(const std::vector<Timing>& timings) {
  const auto mean = [&](double Timing::* field) {
    double sum = 0;
    for (const Timing& one : timings) sum += std::log(one.*field);
    return std::exp(sum / double(timings.size()));
  };
  Timing t;
  for (double Timing::* field : {&Timing::seconds, &Timing::quartile1, &Timing::quartile3, &Timing::ratio,
                                 &Timing::low, &Timing::high, &Timing::clean})
    t.*field = mean(field);
  t.samples = timings.front().samples;
  for (const Timing& one : timings) t.samples = std::min(t.samples, one.samples);
  return t;
}

Timing mean_timing(const std::vector<PointTiming>& points) {
  std::vector<Timing> timings;
  for (const PointTiming& p : points) timings.push_back(p.timing);
  return mean_timing(timings);
}

Timing over_regimes(const Timing& timing, const std::optional<Timing>& bursts) {
  return bursts ? mean_timing(std::vector{timing, *bursts}) : timing;
}

Json Record::to_json() const {
  Json json = {{"schema", kRecordSchema},
               {"stage", stage},
               {"slot", slot},
               {"status", status},
               {"detail", detail},
               {"problem", problem},
               {"arch", arch},
               {"template", choice.template_name},
               {"revision", revision},
               {"config", choice.config.to_json()},
               {"origin", origin},
               {"sha256", sha256},
               {"code_bytes", code_bytes},
               {"workspace", workspace},
               {"kernel_file", kernel_file},
               {"error", finite(error)}};
  if (!sum_order.empty()) json["sum_order"] = sum_order;
  if (!row_bits.empty()) json["row_bits"] = row_bits;
  if (timing) json["timing"] = timing_json(*timing);
  if (bursts) json["bursts"] = timing_json(*bursts);
  if (serial) json["serial"] = timing_json(*serial);
  for (const PointTiming& p : points) json["points"].push_back(point_json(p));
  for (const PointTiming& p : between) json["between"].push_back(point_json(p));
  if (!grids.empty()) json["grids"] = deepgen::to_json(grids);
  if (cached) json["cached"] = true;
  return json;
}

Record Record::from_json(const Json& json, const std::string& where) {
  check_schema(json, kRecordSchema, where);
  Record r;
  for (auto [name, value] : {std::pair{"stage", &r.stage},
                             {"status", &r.status},
                             {"arch", &r.arch},
                             {"template", &r.choice.template_name}})
    *value = get_word(json, name, where);
  for (auto [name, value] : {std::pair{"origin", &r.origin}, {"sha256", &r.sha256}})
    *value = get_name(json, name, where);
  for (auto [name, value] : {std::pair{"problem", &r.problem}, {"kernel_file", &r.kernel_file}})
    *value = get_name(json, name, where, kLongest);
  r.detail = get_text(json, "detail", where);
  for (auto [name, value] : {std::pair{"slot", &r.slot},
                             {"revision", &r.revision},
                             {"code_bytes", &r.code_bytes},
                             {"workspace", &r.workspace}})
    *value = get<int64_t>(json, name, where);
  r.choice.config = Config::from_json(get<Json>(json, "config", where));
  r.error = get<double>(json, "error", where);
  if (json.contains("sum_order")) r.sum_order = get_name(json, "sum_order", where);
  if (json.contains("row_bits")) r.row_bits = get_word(json, "row_bits", where);
  if (json.contains("timing")) r.timing = timing_from_json(json["timing"], where);
  r.bursts = timing_in(json, "bursts", where), r.serial = timing_in(json, "serial", where);
  for (const auto& [name, list] : {std::pair{"points", &r.points}, {"between", &r.between}})
    if (json.contains(name))
      for (const Json& point : get<std::vector<Json>>(json, name, where))
        list->push_back(point_from_json(point, where));
  if (json.contains("grids")) r.grids = grids_from(json["grids"], where);
  if (json.contains("cached")) r.cached = get<bool>(json, "cached", where);
  return r;
}

std::string RecordLog::serialize() const {
  Json head = {{"schema", kEnvironmentSchema},
               {"environment", environment},
               {"noise_floor", finite(noise_floor)},
               {"stable", stable}};
  for (const Record& r : again) head["again"].push_back(r.to_json());
  std::string out = dump_json(head) + "\n";
  for (const Record& r : records) out += dump_json(r.to_json()) + "\n";
  return out;
}

RecordLog RecordLog::parse(const std::string& text, const std::string& where) {
  RecordLog log;
  size_t number = 0;
  for (size_t at = 0; at < text.size(); ++number) {
    size_t end = text.find('\n', at);
    if (end == std::string::npos) { // the writer ends every line
      log.torn = true;
      break;
    }
    const std::string place = where + ":" + std::to_string(number + 1);
    Json json = parse_json(text.substr(at, end - at), place);
    if (number == 0) {
      check_schema(json, kEnvironmentSchema, place);
      log.environment = get<Json>(json, "environment", place);
      check_environment(log.environment, place);
      log.noise_floor = get_amount(json, "noise_floor", place);
      log.stable = get<bool>(json, "stable", place);
      if (json.contains("again"))
        for (const Json& r : get<Json::array_t>(json, "again", place))
          log.again.push_back(Record::from_json(r, place));
    } else {
      log.records.push_back(Record::from_json(json, place));
    }
    at = end + 1;
  }
  return log;
}

RecordLog RecordLog::read(const std::string& path) {
  RecordLog log = parse(read_file(path, kMostOfLogs), path);
  if (log.torn)
    std::cerr << path << ": the last line is torn and left out; " << log.records.size()
              << " records are whole\n";
  return log;
}

} // namespace deepgen
