#include "generator/report/export.h"

#include "base/json/json.h"
#include "base/text/error.h"

namespace deepgen {
namespace {

constexpr const char* kT4Version = "1.0.0";

/// T4's word for a status; "" for one of a candidate that ran.
std::string invalidity(const std::string& status) {
  if (status == "ok" || status == "dropped" || status == "duplicate") return "correct";
  if (status == "compile_error") return "compile";
  if (status == "wrong" || status == "out_of_bounds" || status == "varies") return "correctness";
  if (status == "unsupported") return "constraints";
  return status == "timeout" ? "timeout" : "runtime";
}

Json measurement(const char* name, double value, const char* unit) {
  return {{"name", name}, {"value", value}, {"unit", unit}};
}

Json measurements(const Problem& problem, const Record& r, const Timing& t) {
  const Rate rate = problem.rate();
  return {measurement("time", t.seconds * 1e3, "ms"),
          measurement("time_quartile1", t.quartile1 * 1e3, "ms"),
          measurement("time_quartile3", t.quartile3 * 1e3, "ms"),
          measurement("ratio", t.ratio, ""),
          measurement("ratio_low", t.low, ""),
          measurement("ratio_high", t.high, ""),
          measurement(rate.unit, rate.of(t.seconds), rate.unit),
          measurement("samples", double(t.samples), ""),
          measurement("code", double(r.code_bytes), "B"),
          measurement("workspace", double(r.workspace), "B"),
          measurement("error", r.error, "tolerances")};
}

/// A duplicate has the bytes of another candidate, and so its time.
const std::optional<Timing>& timing_of(const Record& r, const Study& study) {
  if (r.status == "duplicate" && !r.timing && !r.sha256.empty())
    for (const StudyTrial& other : study.trials)
      if (other.record.timing && other.record.sha256 == r.sha256) return other.record.timing;
  return r.timing;
}

Json result(const StudyTrial& trial, const Study& study) {
  const Record& r = trial.record;
  const std::string kind = invalidity(r.status);
  const std::optional<Timing>& timing = timing_of(r, study);
  Json configuration = {{"template", r.choice.template_name}};
  for (const auto& [name, value] : r.choice.config.values) configuration[name] = value;
  Json json = {{"configuration", configuration},
               {"times", {{"runtimes", Json::array()}}},
               {"invalidity", kind},
               {"correctness", kind == "correct" ? 1 : 0},
               {"measurements", Json::array()},
               {"objectives", {"time"}}};
  if (!trial.ended.empty()) json["timestamp"] = trial.ended;
  if (timing) {
    json["times"]["runtimes"] = {timing->seconds * 1e3};
    json["measurements"] = measurements(study.problem, r, *timing);
  }
  return json;
}

Json metadata(const Study& study) {
  Json environment = Json::object();
  if (study.final && study.final->environment.is_object()) environment = study.final->environment;
  const std::string tool = environment.value("tool", "deepgen");
  return {{"timeunit", "milliseconds"},
          {"problem", study.problem.key()},
          {"arch", study.arch},
          {"hardware", {{"hardware_description", {study.device.to_json()}}}},
          {"environment", {{"device_query", environment}, {"requirements", {tool}}}}};
}

/// "(a, b) in {(1, 2), ...}": Python makes a frozenset of it once, so that a look-up does not walk over the
/// list.
Json condition(const Family& family, const Space& space) {
  Json names = Json::array();
  std::string text = "(";
  for (const Parameter& p : family.parameters) {
    names.push_back(p.name);
    text += p.name + ", ";
  }
  text += ") in {";
  for (size_t rank = 0; rank < space.size(); ++rank) {
    text += rank ? ", (" : "(";
    for (const auto& [name, value] : space.choice(rank).config.values) text += std::to_string(value) + ",";
    text += ")";
  }
  return {{"Parameters", names}, {"Expression", text + "}"}};
}

Json parameters(const Family& family, const Config& standard) {
  Json list = Json::array();
  for (const Parameter& p : family.parameters)
    list.push_back({{"Name", p.name},
                    {"Type", "int"},
                    {"Values", Json(p.values).dump()},
                    {"Default", standard[p.name]}});
  return list;
}

} // namespace

Json t4_json(const Study& study) {
  Json json = {{"schema_version", kT4Version}, {"metadata", metadata(study)}, {"results", Json::array()}};
  for (const StudyTrial& trial : study.trials) json["results"].push_back(result(trial, study));
  return json;
}

Json t1_json(const Problem& problem, const std::string& arch, const Space& space, int64_t trials) {
  if (space.families().size() != 1) {
    std::string names;
    for (const Family& f : space.families()) names += (names.empty() ? "" : ", ") + f.source->name();
    throw Error("T1 describes the space of one template", problem.key(), "there are several: " + names,
                "choose one with --template");
  }
  const Family& family = space.families().front();
  const Choice standard = space.default_choice();
  const std::string language = arch == "cpu" ? "C" : compute_capability(arch) ? "CUDA" : "HIP";
  Json sizes = Json::array();
  for (const auto& [name, value] : problem.fields())
    if (name == "m" || name == "n" || name == "k") sizes.push_back(std::stoll(value));
  const auto size = [&](const char* wanted) -> std::string {
    for (const auto& [name, value] : problem.fields())
      if (name == wanted) return value;
    return "1";
  };
  return {{"General",
           {{"BenchmarkName", problem.key()},
            {"FormatVersion", 1},
            {"TimeUnit", "Milliseconds"},
            {"OutputFormat", "JSON"}}},
          {"ConfigurationSpace",
           {{"TuningParameters", parameters(family, standard.config)},
            {"Conditions", {condition(family, space)}}}},
          {"Budget", {{{"Type", "ConfigurationCount"}, {"BudgetValue", trials}}}},
          {"KernelSpecification",
           {{"Language", language},
            {"KernelName", family.source->name()},
            {"KernelFile", ""},
            {"GlobalSize", {{"X", size("m")}, {"Y", size("n")}, {"Z", size("batch")}}},
            {"LocalSize", {{"X", "1"}}},
            {"ProblemSize", sizes}}}};
}

} // namespace deepgen
