// The T1 and T4 exports against what their published schemas ask for (Kernel Tuner's schema/T1/1.0.0 and
// schema/T4/1.0.0).
#include "base/json/json.h"
#include "generator/report/export.h"

#include "generator/report/report.h"
#include "tests/unit/generator/fake_template.h"

#include <algorithm>
#include <cstdio>
#include <gtest/gtest.h>

namespace deepgen::export_test {
namespace {

/// What a schema asks for: the name of a type; an object's members, `?` behind those that may be absent, and
/// others may be there; ["list of", shape]; or a list of the words that are allowed.
const Json kT1 = Json::parse(R"json({
  "ConfigurationSpace": {
    "TuningParameters": ["list of", {"Name": "string", "Type": ["int", "uint", "float", "bool", "string"], "Values": "string"}],
    "Conditions?": ["list of", {"Parameters": ["list of", "string"], "Expression": "string"}]},
  "KernelSpecification": {
    "Language": ["OpenCL", "CUDA", "Vulkan"], "KernelName": "string", "KernelFile": "string",
    "GlobalSize": {"X": "string", "Y?": "string", "Z?": "string"}, "LocalSize": {"X": "string", "Y?": "string", "Z?": "string"}},
  "Budget?": ["list of", {"Type": ["TuningDuration", "ConfigurationCount", "ConfigurationFraction"], "BudgetValue": "number"}],
  "General?": {"FormatVersion?": "integer", "TimeUnit?": ["Nanoseconds", "Microseconds", "Milliseconds", "Seconds"],
               "OutputFile?": "string", "OutputFormat?": ["JSON", "XML"]},
  "Search?": {"Name": "string"}})json");

const Json kT4 = Json::parse(R"json({
  "schema_version": "version",
  "metadata?": {"timeunit?": ["nanoseconds", "microseconds", "milliseconds", "seconds"],
                "hardware?": {"hardware_description?": ["list of", "object"]},
                "environment?": {"device_query?": "object", "requirements?": ["list of", "string"]}},
  "results": ["list of", {
    "configuration": "object", "times": {"runtimes?": ["list of", "number"]}, "correctness": "number",
    "invalidity": ["timeout", "compile", "runtime", "correctness", "constraints", "correct"],
    "timestamp?": "string", "objectives?": ["list of", "string"],
    "measurements?": ["list of", {"name?": "string", "value?": "number", "unit?": "string"}]}]})json");

bool is(const std::string& type, const Json& json) {
  if (type == "integer") return json.is_number_integer();
  if (type == "number") return json.is_number();
  if (type == "object") return json.is_object();
  if (type == "string") return json.is_string();
  int major, minor, patch, end = 0; // a version
  return json.is_string() &&
         std::sscanf(json.get<std::string>().c_str(), "%d.%d.%d%n", &major, &minor, &patch, &end) == 3 &&
         size_t(end) == json.get<std::string>().size();
}

/// Where it departs from the shape; empty: nowhere.
std::string departure(const Json& json, const Json& shape, const std::string& path = "") {
  if (shape.is_string()) return is(shape, json) ? "" : path + " is no " + shape.get<std::string>();
  if (shape.is_object()) {
    if (!json.is_object()) return path + " is no object";
    for (const auto& [member, inner] : shape.items()) {
      const bool optional = member.back() == '?';
      const std::string name = member.substr(0, member.size() - optional);
      if (!json.contains(name) && !optional) return path + "/" + name + " is missing";
      if (!json.contains(name)) continue;
      if (std::string found = departure(json[name], inner, path + "/" + name); !found.empty()) return found;
    }
    return "";
  }
  if (shape[0] != "list of")
    return std::find(shape.begin(), shape.end(), json) == shape.end() ? path + " is " + json.dump() : "";
  if (!json.is_array()) return path + " is no list";
  for (size_t i = 0; i < json.size(); ++i)
    if (std::string found = departure(json[i], shape[1], path + "/" + std::to_string(i)); !found.empty())
      return found;
  return "";
}

/// The check itself: each value that is taken out or replaced, where the schema says something of it, is
/// found.
void expect_no_less(const Json& json, const Json& shape, const Json& whole, const Json& whole_shape,
                    const Json::json_pointer& at) {
  Json broken = whole;
  broken[at] = nullptr;
  EXPECT_NE(departure(broken, whole_shape), "") << at.to_string();
  if (shape.is_object())
    for (const auto& [member, inner] : shape.items()) {
      const bool optional = member.back() == '?';
      const std::string name = member.substr(0, member.size() - optional);
      if (!json.contains(name)) continue;
      expect_no_less(json[name], inner, whole, whole_shape, at / name);
    }
  else if (shape.is_array() && shape[0] == "list of" && !json.empty())
    expect_no_less(json[0], shape[1], whole, whole_shape, at / 0);
}

const Gemm kProblem =
    Gemm::parse("gemm m=64 n=64 k=64 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nn epilogue=none align=4");

Json t1_of(const std::string& arch, const Device& device) {
  SearchOptions options;
  options.templates[arch == "cpu" ? "cpu_tile" : "simt"] = {};
  return t1_json(kProblem, arch, Space(kProblem, arch, device, options), 64);
}

TEST(Schemas, T1) {
  const Json cuda = t1_of("sm_90a", generic_gpu("sm_90a"));
  EXPECT_EQ(departure(cuda, kT1), "");
  expect_no_less(cuda, kT1, cuda, kT1, Json::json_pointer());
  Json renamed = cuda;
  renamed["KernelSpecification"].erase("LocalSize");
  EXPECT_EQ(departure(renamed, kT1), "/KernelSpecification/LocalSize is missing");
  Device cpu;
  cpu.arch = "cpu", cpu.isa = 4, cpu.cores = 2, cpu.l1d = 32768, cpu.l2 = 1 << 20, cpu.l3 = 1 << 25;
  // What the schema has no word for: nothing else departs from it.
  for (auto& [json, language] :
       {std::pair{t1_of("cpu", cpu), "C"}, {t1_of("gfx942", generic_gpu("gfx942")), "HIP"}}) {
    Json other = json;
    EXPECT_EQ(other["KernelSpecification"]["Language"], language);
    other["KernelSpecification"]["Language"] = "CUDA";
    EXPECT_EQ(departure(other, kT1), "");
  }
}

TEST(Schemas, T4) {
  register_fake_template();
  ReportInput in;
  RecordLog log;
  log.environment = {
      {"device", fake_device().to_json()}, {"tool", "deepgen-measure"}, {"ended", "2026-01-05T10:11:12Z"}};
  int64_t slot = 0;
  for (const char* status : {"ok", "wrong", "out_of_bounds", "crash", "timeout", "compile_error",
                             "unsupported", "dropped", "duplicate"}) {
    Record r;
    r.stage = "r0", r.slot = slot++, r.problem = kProblem.key(), r.arch = "fake", r.status = status,
    r.origin = "model";
    r.choice = fake_choice(4, slot % 8 + 1, 8, 0), r.sha256 = std::to_string(slot);
    if (r.ok()) r.timing = Timing{1e-3, 1e-3, 1e-3, 1, 1, 1, 40, 1};
    log.records.push_back(r);
  }
  in.logs = {log};
  const Json t4 = t4_json(studies_of(in).at(0));
  ASSERT_EQ(t4["results"].size(), 9u);
  EXPECT_EQ(departure(t4, kT4), "");
  expect_no_less(t4, kT4, t4, kT4, Json::json_pointer());
}

} // namespace
} // namespace deepgen::export_test
