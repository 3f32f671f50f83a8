#include "base/search/log_environment.h"

#include "base/json/json_text.h"
#include "base/kernel/regime.h"
#include "base/search/vendor_call.h"

namespace deepgen {
namespace {

using Names = std::initializer_list<const char*>;

void check_object(const Json& json, const std::string& what, const std::string& where) {
  if (!json.is_object()) throw Error(what + " is no object: " + excerpt(json), where);
}

/// `check(json, name, where)` of each of the fields that is there.
template <typename Check>
void each(const Json& json, Names names, const std::string& where, const Check& check) {
  for (const char* name : names)
    if (json.contains(name)) check(json, name, where);
}

void check_texts(const Json& json, Names names, const std::string& where) {
  each(json, names, where, get_text);
}
void check_numbers(const Json& json, Names names, const std::string& where) {
  each(json, names, where, get<double>);
}
void check_numbers_of(const Json& json, Names names, const std::string& where) {
  each(json, names, where, [](const Json& j, const std::string& name, const std::string& place) {
    if (!is_a<double>(j[name])) get<std::vector<double>>(j, name, place);
  });
}
void check_whole(const Json& json, Names names, const std::string& where) {
  each(json, names, where,
       [](const Json& j, const std::string& name, const std::string& place) { get_count(j, name, place); });
}

/// Of one of the chosen ones in a regime.
void check_arm(const Json& arm, const std::string& where) {
  check_object(arm, "an arm of a regime", where);
  check_texts(arm, {"sha256", "verdict", "failed"}, where);
  check_numbers(arm, {"seconds", "clock_mhz", "power_capped"}, where);
  each(arm, {"default", "vendor"}, where, get<std::array<double, 3>>);
}

void check_regimes(const Json& regimes, const std::string& where) {
  check_object(regimes, "the hold-out's regimes", where);
  for (const auto& [name, regime] : regimes.items()) {
    check_object(regime, "a regime", where);
    check_texts(regime, {"unstable"}, where);
    check_numbers(regime, {"noise_floor", "dropped", "clean", "vendor_seconds"}, where);
    for (const Json& arm : get<Json::array_t>(regime, "arms", where)) check_arm(arm, where);
  }
}

/// Of the geometric means over the regimes that were tuned for.
void check_balanced(const Json& balanced, const std::string& where) {
  check_object(balanced, "the hold-out's means", where);
  check_texts(balanced, {"verdict", "vendor_verdict", "default_verdict"}, where);
  each(balanced, {"ratio", "vendor_ratio", "default_ratio"}, where, get<std::array<double, 3>>);
}

void check_finals(const Json& finals, const std::string& where) {
  check_object(finals, "the finals", where);
  if (!finals.contains("bursts")) return;
  check_object(finals["bursts"], "the finals in bursts", where);
  if (const auto floor = get<double>(finals["bursts"], "noise_floor", where); !(floor >= 0))
    throw Error("the noise in bursts is below 0: " + excerpt(finals["bursts"]), where);
}

void check_holdout(const Json& holdout, const std::string& where) {
  check_object(holdout, "the hold-out", where);
  check_texts(holdout, {"sha256", "verdict", "clocks"}, where);
  check_numbers(holdout, {"noise_floor", "dropped"}, where);
  check_whole(holdout, {"rounds"}, where);
  check_numbers_of(holdout, {"clock_mhz", "power_capped"}, where);
  if (holdout.contains("regimes")) check_regimes(holdout["regimes"], where);
  if (holdout.contains("balanced")) check_balanced(holdout["balanced"], where);
  if (!holdout.contains("vendor")) return;
  const Json& vendor = holdout["vendor"];
  check_object(vendor, "the hold-out's vendor", where);
  get<std::array<double, 3>>(vendor, "ratio", where);
  get_text(vendor, "verdict", where);
  check_texts(vendor, {"algorithm", "default_verdict", "no_call"}, where);
  each(vendor, {"default_ratio"}, where, get<std::array<double, 3>>);
  get_vendor_call(vendor, "call", where);
}

void check_vendor(const Json& vendor, const std::string& where) {
  check_object(vendor, "the finals' vendor", where);
  if (!vendor.contains("ratios")) return;
  for (const Json& pair : get<Json::array_t>(vendor, "ratios", where)) {
    check_object(pair, "a ratio to the vendor", where);
    check_texts(pair, {"sha256"}, where);
    check_numbers(pair, {"ratio", "low", "high"}, where);
  }
}

} // namespace

void check_environment(const Json& environment, const std::string& where) {
  check_object(environment, "the environment", where);
  check_texts(environment,
              {"anchor", "driver", "ended", "out_of_time", "profile", "tool", "unstable", "unwatched"},
              where);
  check_numbers(environment, {"least_noise", "power_limit_watts"}, where);
  check_whole(environment, {"cut"}, where);
  if (environment.contains("regime")) regime_from(get_word(environment, "regime", where), where);
  if (environment.contains("finals")) check_finals(environment["finals"], where);
  if (environment.contains("holdout")) check_holdout(environment["holdout"], where);
  if (environment.contains("vendor")) check_vendor(environment["vendor"], where);
}

} // namespace deepgen
