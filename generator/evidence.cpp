#include "generator/evidence.h"

#include "base/error.h"
#include "base/json.h"
#include "generator/space.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <set>

namespace deepgen {
namespace {

/// Four digits: more would only make noise in diffs.
double rounded(double x) { return std::round(x * 1e4) / 1e4; }
Json rounded(const Json& list) {
  Json out = Json::array();
  for (const Json& x : list) out.push_back(rounded(x.get<double>()));
  return out;
}

template <typename... Values>
std::string text(const char* format, Values... values) {
  char buffer[200];
  std::snprintf(buffer, sizeof buffer, format, values...);
  return buffer;
}

/// How much of the space was tried, and whether time ran out on the way.
void add_coverage(Json& evidence, const std::vector<RecordLog>& logs, const Tuned& t) {
  std::set<std::string> candidates;
  int64_t cut = 0;
  for (const RecordLog& log : logs) {
    bool mine = false;
    for (const Record& r : log.records)
      if (r.problem == t.problem && r.arch == t.arch && !r.is_vendor())
        mine = candidates.insert(r.choice.text()).second || mine;
    if (mine) cut += log.environment.value("cut", int64_t(0));
  }
  evidence["candidates"] = candidates.size();
  try {
    evidence["legal"] = Space(Problem::parse(t.problem), t.arch, t.device).size();
  } catch (const Error&) { // of a device that this version does not know: the entry will be stale
  }
  evidence["complete"] = cut == 0;
}

/// What ran, and where; of what differs between two devices of one model, clocks alone.
void add_surroundings(Json& evidence, const RecordLog& final, const Json& holdout) {
  const Json& e = final.environment;
  for (const char* key : {"profile", "driver"})
    if (const std::string value = e.value(key, ""); !value.empty()) evidence[key] = value;
  if (const double watts = e.value("power_limit_watts", 0.0); watts > 0)
    evidence["power_limit_watts"] = std::round(watts);
  for (const char* key : {"clock_mhz", "power_capped"})
    if (holdout.contains(key))
      evidence[key] = holdout[key].is_array() ? holdout[key] : Json(rounded(holdout[key].get<double>()));
}

std::string percent(double x) { return text("%.2g %%", 100 * x); }
/// A ratio of times, as how much faster that is.
std::string speed(const Json& ratio, const std::string& than) {
  const double low = ratio.at(0).get<double>(), middle = ratio.at(1).get<double>(),
               high = ratio.at(2).get<double>();
  return text("%.3fx vs %s [%.3f, %.3f]", 1 / middle, than.c_str(), 1 / high, 1 / low);
}

std::string about_vendor(const Json& e) {
  if (!e.contains("vendor")) return "";
  const std::string name = e["vendor"].at(0).get<std::string>();
  if (!e.contains("vendor_ratio"))
    return text("%.3fx vs %s", 1 / e["vendor"].at(1).get<double>(), name.c_str());
  const std::string algorithm = e.value("vendor_algorithm", "");
  return speed(e["vendor_ratio"], algorithm.empty() ? name : algorithm) + ": " +
         e.value("vendor_verdict", "");
}

std::string coverage(const Json& e) {
  std::string out = std::to_string(e.value("candidates", int64_t(0)));
  if (e.contains("legal")) out += " of " + std::to_string(e["legal"].get<int64_t>()) + " legal";
  return out + " candidates" + (e.value("complete", true) ? "" : ", INCOMPLETE: the time limit cut some off");
}

} // namespace

Json evidence_of(const Decision& decision, const RecordLog& final, const std::vector<RecordLog>& logs,
                 const Tuned& tuned) {
  const Timing& t = *decision.winner.timing;
  const Json holdout = final.environment.value("holdout", Json::object());
  // What the hold-out did not confirm is not what is locked.
  const bool chosen = holdout.value("sha256", "") == decision.winner.sha256;
  const double floor = std::max(final.noise_floor, holdout.value("noise_floor", 0.0));
  Json evidence = {{"ratio", {rounded(t.low), rounded(t.ratio), rounded(t.high)}},
                   {"noise_floor", rounded(floor)}};
  if (!holdout.empty()) {
    evidence["verdict"] = decision.improved ? holdout.value("verdict", "") : "default";
    evidence["rounds"] = holdout.value("rounds", int64_t(0));
    evidence["dropped_rounds"] = rounded(holdout.value("dropped", 0.0));
  }
  add_surroundings(evidence, final, chosen ? holdout : Json::object());
  if (const Record* vendor = vendor_record(final))
    evidence["vendor"] = {vendor_name(*vendor), rounded(t.ratio / vendor->timing->ratio)};
  if (const Json vendor = chosen ? holdout.value("vendor", Json::object()) : Json::object();
      !vendor.empty()) {
    evidence["vendor_ratio"] = rounded(vendor.at("ratio"));
    evidence["vendor_verdict"] = vendor.at("verdict");
    if (const std::string algorithm = vendor.value("algorithm", ""); !algorithm.empty())
      evidence["vendor_algorithm"] = algorithm;
  }
  add_coverage(evidence, logs, tuned);
  return evidence;
}

std::string statement(const Json& e, const Device& device) {
  std::string out = e.contains("ratio") ? speed(e["ratio"], "default") : "not verified: no evidence of a search";
  if (e.value("verdict", "") == "default") out = "the default config";
  out += e.contains("rounds") ? text(" (95 %% CI, %lld paired rounds)", (long long)e["rounds"].get<int64_t>())
                              : "";
  const std::string verdict = e.value("verdict", "");
  const auto add = [&](const std::string& part) { out += part.empty() ? "" : ", " + part; };
  if (verdict != "default" && verdict != "win") add(verdict);
  if (e.contains("noise_floor")) add("noise floor " + percent(e["noise_floor"].get<double>()));
  if (e.value("dropped_rounds", 0.0) > 0)
    add(percent(e["dropped_rounds"].get<double>()) + " of the rounds dropped");
  add(e.value("profile", ""));
  add(device.name);
  if (e.contains("driver")) add("driver " + e["driver"].get<std::string>());
  if (e.contains("clock_mhz"))
    add(text("SM clock %.2f/%.2f GHz", e["clock_mhz"].at(0).get<double>() / 1e3,
             e["clock_mhz"].at(1).get<double>() / 1e3));
  if (e.value("power_capped", 0.0) >= 0.5) add("at the power limit");
  add(coverage(e));
  add(about_vendor(e));
  return out;
}

} // namespace deepgen
