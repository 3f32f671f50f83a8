#include "generator/lock/exchange.h"

#include "base/files/files.h"
#include "base/json/json_text.h"
#include "base/kernel/span_json.h"
#include "base/text/text.h"

namespace deepgen {
namespace {

constexpr const char* kProblemSchema = "deepgen.problem/1";
constexpr const char* kChoiceSchema = "deepgen.choice/2";
constexpr size_t kLongestName = 1000; ///< of a target or a function, which people choose

Problem problem_of(const Json& json, const std::string& path) {
  const std::string key = get<std::string>(json, "problem", path);
  try {
    return Problem::parse(key);
  } catch (const Error& e) {
    throw Error(std::string("bad problem key: ") + e.what(), path);
  }
}

/// "tune_at": words as the user wrote them, "weights", "kernels"; each may be absent.
void read_points(const Json& json, const std::string& where, ProblemFile& file) {
  std::vector<std::string> words;
  std::vector<double> weights;
  size_t kernels = TunePoints().kernels;
  if (json.contains("tune_at")) words = get<std::vector<std::string>>(json, "tune_at", where);
  if (json.contains("weights")) weights = get<std::vector<double>>(json, "weights", where);
  if (json.contains("kernels")) kernels = size_t(get_count(json, "kernels", where, 1));
  file.own_points = !words.empty();
  if (file.problem.ranged())
    file.points = tune_points(file.problem, words, weights, kernels, where);
  else if (json.contains("tune_at") || json.contains("weights") || json.contains("kernels"))
    throw Error(
        "a problem without ranges has points", where, file.problem.key(),
        "leave TUNE_AT, WEIGHTS and KERNELS out, or give a size a range, such as 1..8192; an attention has "
        "several calls in its key");
}

void add_choice(const LockedChoice& c, Json& json) {
  json["template"] = c.choice.template_name;
  json["revision"] = c.revision;
  json["config"] = c.choice.config.to_json();
  json["expect_sha256"] = c.expect_sha256;
  json["toolchain"] = c.toolchain;
  if (c.taken) json["taken"] = span_json(*c.taken);
  if (!c.vendor) return;
  json["vendor"] = to_json(*c.vendor);
  json["vendor"]["device"] = c.vendor->device;
}

LockedChoice choice_from_json(const Json& json, const std::string& path) {
  LockedChoice c;
  c.choice = {get_word(json, "template", path), Config::from_json(get<Json>(json, "config", path))};
  c.revision = get<int64_t>(json, "revision", path);
  c.expect_sha256 = get_word(json, "expect_sha256", path);
  c.toolchain = get_name(json, "toolchain", path);
  c.taken = get_span(json, "taken", path);
  c.vendor = get_vendor_call(json, "vendor", path);
  if (c.vendor) c.vendor->device = get_name(json["vendor"], "device", path);
  return c;
}

/// What comes from the lock has its hash: without one nothing would say that the code is the locked one.
void check_is_locked(const ChoiceFile& file, const LockedChoice& c, const std::string& path) {
  if (file.origin == "lock" ? !is_sha256(c.expect_sha256) : !c.expect_sha256.empty())
    throw Error("field 'expect_sha256' is not that of a choice from " + file.origin, path,
                "'" + c.expect_sha256 + "'", "delete the file and build again");
}

} // namespace

ProblemFile ProblemFile::parse(const std::string& text, const std::string& where) {
  const Json json = parse_json(text, where);
  check_schema(json, kProblemSchema, where);
  ProblemFile file;
  file.target = get_name(json, "target", where, kLongestName);
  file.name = get_name(json, "name", where, kLongestName);
  file.ns = get_name(json, "namespace", where, kLongestName);
  file.problem = problem_of(json, where);
  file.untuned = get<bool>(json, "untuned", where);
  if (json.contains("fallback")) {
    const std::string fallback = get_word(json, "fallback", where);
    if (fallback != "vendor")
      throw Error("unknown fallback '" + fallback + "'", where, "", "use vendor, or leave it out");
    file.fallback = true;
    if (file.problem.batch_invariant())
      throw Error("a vendor's library promises no order of sums", where,
                  "fallback with " + file.problem.key(), "leave FALLBACK or BATCH_INVARIANT out");
  }
  read_points(json, where, file);
  return file;
}

ProblemFile ProblemFile::read(const std::string& path) { return parse(read_file(path), path); }

std::vector<LinkedCall> ChoiceFile::calls() const {
  std::vector<LinkedCall> list;
  if (main.vendor) list.push_back({arch, "", *main.vendor});
  for (const LockedChoice& c : devices)
    if (c.vendor) list.push_back({arch, c.device, *c.vendor});
  return list;
}

std::string ChoiceFile::serialize() const {
  Json json = {{"schema", kChoiceSchema}, {"function", function}, {"problem", problem.key()}, {"arch", arch}};
  add_choice(main, json);
  json["origin"] = origin;
  for (const LockedChoice& c : ranges) {
    json["ranges"].push_back(Json::object());
    add_choice(c, json["ranges"].back());
  }
  if (arch != "cpu") {
    Json others = Json::array(), spare = Json::array();
    for (const LockedChoice& c : devices) {
      others.push_back({{"device", c.device}});
      add_choice(c, others.back());
    }
    for (const Choice& c : instead)
      spare.push_back({{"template", c.template_name}, {"config", c.config.to_json()}});
    json["devices"] = others;
    json["instead"] = spare;
  }
  return dump_json(json) + "\n";
}

ChoiceFile ChoiceFile::parse(const std::string& text, const std::string& where) {
  const Json json = parse_json(text, where);
  check_schema(json, kChoiceSchema, where);
  ChoiceFile file;
  file.function = get_name(json, "function", where, 2 * kLongestName + 1);
  file.problem = problem_of(json, where);
  file.arch = get_word(json, "arch", where);
  file.main = choice_from_json(json, where);
  file.origin = get_word(json, "origin", where);
  check_is_locked(file, file.main, where);
  if (json.contains("ranges"))
    for (const Json& item : get<std::vector<Json>>(json, "ranges", where)) {
      file.ranges.push_back(choice_from_json(item, where));
      if (!file.ranges.back().taken) throw Error("a choice for some sizes does not say which", where);
      check_is_locked(file, file.ranges.back(), where);
    }
  if (file.arch == "cpu") return file;
  for (const Json& item : get<std::vector<Json>>(json, "devices", where)) {
    file.devices.push_back(choice_from_json(item, where));
    file.devices.back().device = get_name(item, "device", where);
    check_is_locked(file, file.devices.back(), where);
  }
  for (const Json& item : get<std::vector<Json>>(json, "instead", where))
    file.instead.push_back(
        {get_word(item, "template", where), Config::from_json(get<Json>(item, "config", where))});
  return file;
}

ChoiceFile ChoiceFile::read(const std::string& path) { return parse(read_file(path), path); }

} // namespace deepgen
