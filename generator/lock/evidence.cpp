#include "generator/lock/evidence.h"

#include "base/json/json.h"
#include "base/kernel/regime.h"
#include "base/search/vendor_choice.h"
#include "base/text/error.h"
#include "generator/space/space.h"

#include <algorithm>
#include <cmath>
#include <set>

namespace deepgen {
namespace {

Json rounded_all(const Json& list) {
  Json out = Json::array();
  for (const Json& x : list) out.push_back(four_places(x.get<double>()));
  return out;
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
  if (const int64_t threads = e.value("threads", int64_t(1)); threads > 1) evidence["threads"] = threads;
  if (const double watts = e.value("power_limit_watts", 0.0); watts > 0)
    evidence["power_limit_watts"] = std::round(watts);
  for (const char* key : {"clock_mhz", "power_capped"})
    if (holdout.contains(key))
      evidence[key] = holdout[key].is_array() ? holdout[key] : Json(four_places(holdout[key].get<double>()));
}

/// Of one regime of the hold-out, what it says of the locked kernel. Null: nothing.
Json regime_of(const Json& regime, const std::string& sha256) {
  for (const Json& arm : regime.value("arms", Json::array())) {
    if (arm.value("sha256", "") != sha256 || !arm.contains("seconds")) continue;
    Json facts = Json::object();
    if (arm.contains("default")) facts["ratio"] = rounded_all(arm["default"]);
    if (arm.contains("vendor"))
      facts["vendor_ratio"] = rounded_all(arm["vendor"]), facts["vendor_verdict"] = arm.value("verdict", "");
    if (arm.contains("clock_mhz")) facts["clock_mhz"] = arm["clock_mhz"];
    if (regime.contains("noise_floor"))
      facts["noise_floor"] = four_places(regime["noise_floor"].get<double>());
    if (regime.contains("unstable")) facts["unstable"] = regime["unstable"];
    return facts;
  }
  return nullptr;
}

/// How calls followed each other, and all regimes that were measured.
void add_regimes(Json& evidence, const RecordLog& final, const Json& holdout, const std::string& sha256) {
  const TunedFor regime = tuned_for(final.environment);
  if (regime != TunedFor::sustained) evidence["regime"] = to_string(regime);
  const Json regimes = holdout.value("regimes", Json::object());
  for (const auto& [name, facts] : regimes.items())
    if (Json one = regime_of(facts, sha256); !one.is_null()) evidence["regimes"][name] = std::move(one);
}

/// Over both regimes, of a search for balanced calls.
void balance_vendor(Json& evidence, const Json& holdout, bool chosen) {
  const Json both = holdout.value("balanced", Json::object());
  const char *ratio = chosen ? "vendor_ratio" : "default_ratio",
             *what = chosen ? "vendor_verdict" : "default_verdict";
  if (!both.contains(ratio)) return;
  evidence["vendor_ratio"] = rounded_all(both[ratio]), evidence["vendor_verdict"] = both.value(what, "");
}

} // namespace

Json evidence_of(const Decision& decision, const RecordLog& final, const std::vector<RecordLog>& logs,
                 const Tuned& tuned) {
  const Timing& t = decision.timing;
  const Json holdout = final.environment.value("holdout", Json::object());
  // What the hold-out did not confirm is not what is locked.
  const bool chosen = holdout.value("sha256", "") == decision.winner.sha256;
  const double floor = std::max(noise_of(final), holdout.value("noise_floor", 0.0));
  Json evidence = {{"ratio", {four_places(t.low), four_places(t.ratio), four_places(t.high)}},
                   {"noise_floor", four_places(floor)}};
  if (!holdout.empty()) {
    const Json both = holdout.value("balanced", Json::object());
    evidence["verdict"] = decision.improved ? both.value("verdict", holdout.value("verdict", "")) : "default";
    evidence["rounds"] = holdout.value("rounds", int64_t(0));
    evidence["dropped_rounds"] = four_places(holdout.value("dropped", 0.0));
  }
  add_surroundings(evidence, final, chosen ? holdout : Json::object());
  if (const Record* vendor = vendor_record(final))
    evidence["vendor"] = {vendor_name(*vendor),
                          four_places(t.ratio / over_regimes(*vendor->timing, vendor->bursts).ratio)};
  if (const Json vendor = chosen ? holdout.value("vendor", Json::object()) : Json::object();
      !vendor.empty()) {
    evidence["vendor_ratio"] = rounded_all(vendor.at("ratio"));
    evidence["vendor_verdict"] = vendor.at("verdict");
    if (const std::string algorithm = vendor.value("algorithm", ""); !algorithm.empty())
      evidence["vendor_algorithm"] = algorithm;
  }
  balance_vendor(evidence, holdout, chosen);
  add_regimes(evidence, final, holdout, decision.winner.sha256);
  const VendorChoice choice = vendor_choice(final, decision, "");
  if (choice.call) evidence["fallback"] = "vendor";
  if (!choice.why_not.empty()) evidence["no_fallback"] = choice.why_not;
  add_coverage(evidence, logs, tuned);
  return evidence;
}

} // namespace deepgen
