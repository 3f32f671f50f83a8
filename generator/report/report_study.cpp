#include "generator/report/report_study.h"

#include "base/json/json.h"
#include "base/search/ranged_decision.h"
#include "base/text/error.h"
#include "generator/lock/evidence.h"
#include "templates/core/template.h"

#include <algorithm>
#include <cmath>
#include <tuple>

namespace deepgen {
namespace {

/// Rounds by number ("r10" after "r9"), others behind them.
int64_t round_of(const Record& r) {
  const bool round = r.stage.size() > 1 && r.stage[0] == 'r' &&
                     r.stage.find_first_not_of("0123456789", 1) == std::string::npos;
  return round ? std::strtoll(r.stage.c_str() + 1, nullptr, 10) : INT64_MAX;
}

Device device_of(const RecordLog& log, const std::string& arch) {
  if (log.environment.is_object() && log.environment.contains("device")) try {
      return Device::from_json(log.environment["device"]);
    } catch (const Error&) { // a log of something else than deepgen-measure
    }
  if (is_gpu(arch)) try { // estimates divide by its cores
      Device typical = generic_gpu(arch);
      typical.name.clear();
      return typical;
    } catch (const Error&) { // an arch of another version: it has no estimates
    }
  Device device;
  device.arch = arch, device.isa = 0, device.cores = 0, device.l1d = device.l2 = device.l3 = 0;
  return device;
}

/// A field of an environment, which may be anything else than deepgen-measure's.
std::string text_of(const Json& environment, const char* field, const std::string& absent = "") {
  if (!environment.is_object() || !environment.contains(field) || !environment[field].is_string())
    return absent;
  return environment[field].get<std::string>();
}

void estimate(StudyTrial& trial, const Study& study) {
  const Record& r = trial.record;
  try {
    const Template& source = find_template(r.choice.template_name);
    trial.no_estimate = source.why_not(study.problem, study.arch);
    if (trial.no_estimate.empty() && r.revision != source.revision_for(study.problem, r.choice.config))
      trial.no_estimate = "the template has another revision now";
    if (trial.no_estimate.empty())
      trial.no_estimate = source.why_illegal(study.problem, study.device, r.choice.config);
    if (trial.no_estimate.empty()) trial.estimate = source.cost(study.problem, study.device, r.choice.config);
  } catch (const Error& e) {
    trial.no_estimate = first_line(e.what());
  }
}

/// Verdicts of the hold-out know of clocks and power limits, too. They are about what the finals chose.
const Json& holdout_of(const RecordLog& final, const Record& winner) {
  static const Json none = Json::object();
  const auto holdout = final.environment.find("holdout");
  return holdout != final.environment.end() && holdout->value("sha256", "") == winner.sha256 ? *holdout
                                                                                             : none;
}

/// Of the lower bound, median and upper bound of a ratio of times.
Speed speed_of(const Json& ratio) {
  return {1 / ratio.at(1).get<double>(), 1 / ratio.at(2).get<double>(), 1 / ratio.at(0).get<double>()};
}

/// What the hold-out says of the winner in each regime.
std::map<std::string, RegimeSpeed> regimes_of(const RecordLog& final, const Record& winner) {
  std::map<std::string, RegimeSpeed> out;
  const Json holdout = final.environment.value("holdout", Json::object());
  const Json regimes = holdout.value("regimes", Json::object());
  for (const auto& [name, regime] : regimes.items())
    for (const Json& arm : regime.value("arms", Json::array())) {
      if (arm.value("sha256", "") != winner.sha256 || !arm.contains("seconds")) continue;
      RegimeSpeed& speed = out[name];
      if (arm.contains("default")) speed.against_default = speed_of(arm["default"]);
      if (arm.contains("vendor"))
        speed.against_vendor = speed_of(arm["vendor"]), speed.verdict = arm.value("verdict", "");
    }
  return out;
}

/// The winner's speed against the vendor: paired where the measurement has that pair, else from both ratios
/// to the default, which widens the interval.
Speed speed_against(const Record& vendor, const Record& winner, const RecordLog& final) {
  if (const Json& holdout = holdout_of(final, winner); holdout.contains("vendor")) {
    const Json both = holdout.value("balanced", Json::object());
    return speed_of(both.contains("vendor_ratio") ? both["vendor_ratio"] : holdout["vendor"].at("ratio"));
  }
  if (winner.stage == "final" && !winner.bursts && final.environment.contains("vendor"))
    for (const Json& pair : final.environment["vendor"].value("ratios", Json::array()))
      if (pair.value("sha256", "") == winner.sha256)
        return {pair.value("ratio", 1.0), pair.value("low", 1.0), pair.value("high", 1.0)};
  const Timing v = over_regimes(*vendor.timing, vendor.bursts),
               w = over_regimes(*winner.timing, winner.bursts);
  return {v.ratio / w.ratio, v.low / w.high, v.high / w.low};
}

std::string verdict_of(const Speed& speed, double threshold) {
  return verdict(1 / speed.high, 1 / speed.low, threshold);
}

void compare(Study& study) {
  const RecordLog& final = *study.final;
  const Record& winner = study.decision.winner;
  const Json& holdout = holdout_of(final, winner);
  const Json both = holdout.value("balanced", Json::object());
  const bool has_default = std::any_of(final.records.begin(), final.records.end(), [&](const Record& r) {
    return r.stage == winner.stage && r.origin == "default" && r.ok() && r.timing;
  });
  if (has_default && !study.decision.improved) {
    study.against_default = Speed{};
    study.default_verdict = "unchanged";
  } else if (has_default) {
    const Timing& t = study.decision.timing;
    study.against_default = Speed{1 / t.ratio, 1 / t.high, 1 / t.low};
    study.default_verdict = both.value(
        "verdict", holdout.value("verdict", verdict_of(*study.against_default, study.decision.threshold)));
  }
  if (!study.vendor) return;
  study.against_vendor = speed_against(*study.vendor, winner, final);
  study.vendor_verdict = holdout.contains("vendor")
                             ? both.value("vendor_verdict", holdout["vendor"].value("verdict", ""))
                             : verdict_of(*study.against_vendor, study.decision.threshold);
}

void conclude(Study& study, const ReportInput& input) {
  if (!study.final) return;
  study.decision = study.problem.ranged() ? mean_decision(study.problem, *study.final) : decide(*study.final);
  if (const Record* vendor = vendor_record(*study.final)) study.vendor = *vendor;
  if (!study.decision.found || !study.decision.winner.timing) return;
  study.regime = text_of(study.final->environment, "regime");
  study.regimes = regimes_of(*study.final, study.decision.winner);
  compare(study);
  if (input.evidence)
    study.evidence = evidence_of(study.decision, *study.final, input.logs,
                                 {study.problem.key(), study.arch, study.device});
}

using Key = std::tuple<std::string, std::string, std::string>; // arch, device, problem

class Studies {
public:
  explicit Studies(const ReportInput& input) : input(input) {}

  std::vector<Study> collect() {
    for (const RecordLog& log : input.logs) add(log);
    for (const Lock& lock : input.locks)
      for (const LockEntry& entry : lock.entries())
        at(entry.problem, entry.arch, entry.device).locked.push_back(entry);
    std::vector<Study> studies;
    for (auto& [key, study] : found) {
      auto order = [](const StudyTrial& t) { return std::tuple(round_of(t.record), t.record.slot); };
      std::stable_sort(study.trials.begin(), study.trials.end(),
                       [&](const StudyTrial& x, const StudyTrial& y) { return order(x) < order(y); });
      for (StudyTrial& trial : study.trials) estimate(trial, study);
      conclude(study, input);
      studies.push_back(std::move(study));
    }
    return studies;
  }

private:
  void add(const RecordLog& log) {
    std::map<std::string, bool> finals; // of one problem; a later log replaces an earlier one's
    const std::string anchor = text_of(log.environment, "anchor", "default");
    for (const Record& r : log.records) {
      Study& study = at(r.problem, r.arch, device_of(log, r.arch));
      if (anchor != "default") study.anchor = anchor;
      if (r.stage != "final" && r.stage != "holdout") {
        study.trials.push_back({r, {}, text_of(log.environment, "ended"), ""});
        continue;
      }
      if (!finals[r.problem + " " + r.arch]) {
        finals[r.problem + " " + r.arch] = true;
        study.final = RecordLog{log.environment, {}, log.noise_floor, log.stable};
      }
      study.final->records.push_back(r);
    }
  }

  Study& at(const std::string& problem, const std::string& arch, const Device& device) {
    const Key key{arch, device.name, problem};
    auto it = found.find(key);
    if (it == found.end()) {
      it = found.try_emplace(key).first;
      it->second.problem = Problem::parse(problem);
      it->second.arch = arch;
      it->second.device = device;
      if (auto label = input.labels.find(problem); label != input.labels.end())
        it->second.label = label->second;
      if (auto weight = input.weights.find(problem); weight != input.weights.end())
        it->second.weight = weight->second;
    }
    return it->second;
  }

  const ReportInput& input;
  std::map<Key, Study> found;
};

} // namespace

std::string Study::outcome() const {
  const bool known =
      std::any_of(locked.begin(), locked.end(), [](const LockEntry& e) { return !e.evidence.empty(); });
  if (!final) return !trials.empty() ? "unfinished" : known ? "locked" : "not searched";
  if (!decision.found) return "no winner";
  return !against_default ? "default failed" : decision.improved ? "improved" : "unchanged";
}

std::vector<Study> studies_of(const ReportInput& input) {
  std::vector<Study> studies = Studies(input).collect();
  if (input.only_labelled)
    std::erase_if(studies, [&](const Study& s) { return !input.labels.count(s.problem.key()); });
  return studies;
}

} // namespace deepgen
