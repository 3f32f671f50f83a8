// docs/reference/formats.md describes what comes out.
#include "base/json/json.h"
#include "base/search/names.h"
#include "generator/lock/evidence.h"
#include "generator/report/report_curve.h"
#include "generator/report/report_page.h"
#include "templates/core/template.h"

#include <charconv>

namespace deepgen {
namespace {

Json json_of(const Record& r) {
  Json json = {{"stage", r.stage},
               {"slot", r.slot},
               {"candidate", candidate_name(r)},
               {"status", r.status},
               {"template", r.choice.template_name},
               {"config", r.choice.config.to_json()},
               {"origin", r.origin}};
  if (!r.detail.empty()) json["detail"] = r.detail;
  if (r.code_bytes) json["code_bytes"] = r.code_bytes;
  if (r.workspace) json["workspace"] = r.workspace;
  json["error"] = r.error;
  if (r.cached) json["cached"] = true;
  if (r.timing) {
    const Timing& t = *r.timing;
    json["seconds"] = t.seconds, json["quartile1"] = t.quartile1, json["quartile3"] = t.quartile3;
    json["ratio"] = t.ratio, json["low"] = t.low, json["high"] = t.high;
    json["samples"] = t.samples, json["clean"] = t.clean;
  }
  return json;
}

Json json_of(const StudyTrial& trial) {
  Json json = json_of(trial.record);
  if (trial.estimate)
    json["estimate"] = *trial.estimate;
  else
    json["no_estimate"] = trial.no_estimate;
  return json;
}

Json json_of(const Speed& s) { return {s.value, s.low, s.high}; }

/// The operator and the fields of the key, numbers as such.
Json json_of(const Problem& p) {
  Json json = {{"op", p.op()}};
  for (const auto& [name, value] : p.fields()) {
    int64_t number = 0;
    const char* end = value.data() + value.size();
    if (std::from_chars(value.data(), end, number).ptr == end)
      json[name] = number;
    else
      json[name] = value;
  }
  return json;
}

Json finals_json(const Study& study) {
  Json json = {{"noise_floor", study.final->noise_floor},
               {"stable", study.final->stable},
               {"threshold", study.decision.threshold},
               {"reason", study.decision.reason},
               {"records", Json::array()}};
  for (const Record& r : study.final->records) json["records"].push_back(json_of(r));
  if (study.decision.found) json["winner"] = json_of(study.decision.winner);
  if (!study.evidence.empty()) {
    json["evidence"] = study.evidence;
    json["statement"] = statement(study.evidence, study.device);
  }
  return json;
}

/// What a log says of its environment beside the device.
Json environment_json(const Study& study) {
  Json json = Json::object();
  if (study.final && study.final->environment.is_object())
    for (const auto& [key, value] : study.final->environment.items())
      if (key != "device" && key != "vendor") json[key] = value;
  return json;
}

/// {template: {parameter: what it means}} of the templates that were tried.
Json parameters_json(const Study& study) {
  Json json = Json::object();
  for (const Template* t : templates())
    for (const StudyTrial& trial : study.trials)
      if (trial.record.choice.template_name == t->name() && trial.estimate) {
        for (const Parameter& p : t->parameters(study.problem, study.device)) json[t->name()][p.name] = p.doc;
        break;
      }
  return json;
}

Json json_of(const Study& study) {
  Json json = {{"key", study.problem.key()},
               {"problem", json_of(study.problem)},
               {"label", study.label},
               {"weight", study.weight},
               {"outcome", study.outcome()},
               {"anchor", study.anchor},
               {"flops", study.problem.flops()},
               {"bytes", study.problem.bytes()},
               {"rate", {{"per_call", study.problem.rate().per_call}, {"unit", study.problem.rate().unit}}},
               {"environment", environment_json(study)},
               {"parameters", parameters_json(study)},
               {"trials", Json::array()}};
  for (const StudyTrial& trial : study.trials) json["trials"].push_back(json_of(trial));
  if (study.final) json["finals"] = finals_json(study);
  if (Json curve = curve_json(study); !curve.is_null()) json["curve"] = std::move(curve);
  if (study.vendor) json["vendor"] = json_of(*study.vendor);
  if (study.against_default) json["against_default"] = json_of(*study.against_default);
  if (study.against_vendor) {
    json["against_vendor"] = json_of(*study.against_vendor);
    json["vendor_verdict"] = study.vendor_verdict;
  }
  for (const LockEntry& e : study.locked)
    json["locked"].push_back({{"config", e.choice.text()},
                              {"toolchain", e.toolchain},
                              {"evidence", e.evidence},
                              {"winner", study.decision.found && study.decision.winner.choice == e.choice},
                              {"stale", why_stale(e)}});
  return json;
}

Json json_of(const Totals& t) {
  return {{"count", t.count},      {"geomean", t.geomean}, {"weighted", t.weighted},
          {"worst", t.worst},      {"best", t.best},       {"worst_problem", t.worst_problem},
          {"verdicts", t.verdicts}};
}

Json device_json(const Device& d) {
  Json json = {
      {"arch", d.arch}, {"name", d.name}, {"cores", d.cores}, {"isa", d.isa}, {"clock_khz", d.clock_khz}};
  json["memory_bandwidth"] = d.memory_bandwidth;
  return json;
}

bool same_weights(const std::vector<const Study*>& studies) {
  for (const Study* study : studies)
    if (study->weight != studies.front()->weight) return false;
  return true;
}

} // namespace

Json report_json(const std::vector<Study>& studies) {
  Json json = {{"schema", "deepgen.report/1"}, {"devices", Json::array()}};
  for (const Summary& s : summaries_of(studies)) {
    Json device = {{"device", device_json(s.studies.front()->device)},
                   {"equal_weights", same_weights(s.studies)},
                   {"outcomes", s.outcomes},
                   {"against_default", json_of(s.against_default)},
                   {"against_vendor", json_of(s.against_vendor)},
                   {"studies", Json::array()}};
    for (const Study* study : s.studies) device["studies"].push_back(json_of(*study));
    json["devices"].push_back(std::move(device));
  }
  return json;
}

} // namespace deepgen
