#include "base/json/json.h"
#include "generator/lock/evidence.h"

#include <array>
#include <cstdio>
#include <optional>
#include <set>

namespace deepgen {
namespace {

template <typename... Values>
std::string text(const char* format, Values... values) {
  char buffer[200];
  std::snprintf(buffer, sizeof buffer, format, values...);
  return buffer;
}

using Interval = std::array<double, 3>;

/// The fields of evidence, which a lock may hold anything in: what has another type counts as absent, and is
/// named.
class Fields {
public:
  explicit Fields(const Json& json) : json_(json) {}

  template <typename T>
  std::optional<T> find(const std::string& key) {
    const Json* value = at(key);
    if (!value) return std::nullopt;
    if (is_a<T>(*value)) return value->get<T>();
    unreadable_.insert(key);
    return std::nullopt;
  }
  std::string text(const std::string& key) { return find<std::string>(key).value_or(""); }
  /// ["openblas 0.3.21", 0.75]
  std::optional<std::pair<std::string, double>> vendor() {
    const Json* value = at("vendor");
    if (!value) return std::nullopt;
    if (value->is_array() && value->size() == 2 && is_a<std::string>((*value)[0]) &&
        is_a<double>((*value)[1]))
      return std::pair((*value)[0].get<std::string>(), (*value)[1].get<double>());
    unreadable_.insert("vendor");
    return std::nullopt;
  }
  Json object(const std::string& key) {
    const Json* value = at(key);
    if (value && value->is_object()) return *value;
    if (value) unreadable_.insert(key);
    return Json::object();
  }
  std::string unreadable() const {
    if (!json_.is_object()) return "the evidence is no object";
    std::string names;
    for (const std::string& key : unreadable_) names += " " + key;
    return names.empty() ? "" : "unreadable:" + names;
  }

private:
  const Json* at(const std::string& key) const {
    const auto found = json_.is_object() ? json_.find(key) : json_.end();
    return json_.is_object() && found != json_.end() ? &*found : nullptr;
  }
  const Json& json_;
  std::set<std::string> unreadable_;
};

std::string percent(double x) { return text("%.2g %%", 100 * x); }
/// A ratio of times, as how much faster that is.
std::string speed(const Interval& ratio, const std::string& than) {
  return text("%.3fx vs %s [%.3f, %.3f]", 1 / ratio[1], than.c_str(), 1 / ratio[2], 1 / ratio[0]);
}

std::string about_vendor(Fields& e) {
  const auto vendor = e.vendor();
  const auto ratio = e.find<Interval>("vendor_ratio");
  const std::string algorithm = e.text("vendor_algorithm"), verdict = e.text("vendor_verdict");
  if (!vendor) return "";
  if (!ratio) return text("%.3fx vs %s", 1 / vendor->second, vendor->first.c_str());
  return speed(*ratio, algorithm.empty() ? vendor->first : algorithm) + ": " + verdict;
}

/// "sustained 1.083x vs default [...], ..., in bursts ...", for each regime that was measured.
std::string about_regimes(Fields& e) {
  const auto vendor = e.vendor();
  std::string out, tuned = e.text("regime");
  const Json regimes = e.object("regimes");
  for (const auto& [name, facts] : regimes.items()) {
    Fields of(facts);
    const auto ratio = of.find<Interval>("ratio"), against = of.find<Interval>("vendor_ratio");
    if (!ratio && !against) continue;
    out += "; " + name + ": " + (ratio ? speed(*ratio, "default") : "");
    if (against)
      out += (ratio ? ", " : "") + speed(*against, vendor ? vendor->first : "vendor") + ": " +
             of.text("vendor_verdict");
    if (of.find<std::string>("unstable")) out += ", unstable";
  }
  return (tuned.empty() ? "" : "tuned for " + tuned + " calls") + out;
}

std::string coverage(Fields& e) {
  std::string out = std::to_string(e.find<int64_t>("candidates").value_or(0));
  if (const auto legal = e.find<int64_t>("legal")) out += " of " + std::to_string(*legal) + " legal";
  return out + " candidates" +
         (e.find<bool>("complete").value_or(true) ? "" : ", INCOMPLETE: the time limit cut some off");
}

} // namespace

std::string statement(const Json& evidence, const Device& device) {
  Fields e(evidence);
  const auto ratio = e.find<Interval>("ratio");
  const std::string verdict = e.text("verdict");
  std::string out = verdict == "default" ? "the default config"
                    : ratio              ? speed(*ratio, "default")
                                         : "not verified: no evidence of a search";
  if (const auto rounds = e.find<int64_t>("rounds"))
    out += text(" (95 %% CI, %lld paired rounds)", (long long)*rounds);
  const auto add = [&](const std::string& part) { out += part.empty() ? "" : ", " + part; };
  if (verdict != "default" && verdict != "win") add(verdict);
  if (const auto floor = e.find<double>("noise_floor")) add("noise floor " + percent(*floor));
  if (const auto dropped = e.find<double>("dropped_rounds"); dropped && *dropped > 0)
    add(percent(*dropped) + " of the rounds dropped");
  add(e.text("profile"));
  add(device.name);
  if (const auto threads = e.find<int64_t>("threads"))
    add(text("%lld threads by wall time", (long long)*threads));
  if (const std::string driver = e.text("driver"); !driver.empty()) add("driver " + driver);
  if (const auto clocks = e.find<std::array<double, 2>>("clock_mhz"))
    add(text("SM clock %.2f/%.2f GHz", (*clocks)[0] / 1e3, (*clocks)[1] / 1e3));
  if (e.find<double>("power_capped").value_or(0) >= 0.5) add("at the power limit");
  add(coverage(e));
  add(about_vendor(e));
  add(about_regimes(e));
  if (e.text("fallback") == "vendor") add("called with FALLBACK vendor");
  if (const std::string why = e.text("no_fallback"); !why.empty()) add("no call to fall back on: " + why);
  add(e.unreadable());
  return out;
}

} // namespace deepgen
