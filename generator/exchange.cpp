#include "generator/exchange.h"

#include "base/json.h"

namespace deepgen {
namespace {

constexpr const char* kProblemSchema = "deepgen.problem/1";
constexpr const char* kChoiceSchema = "deepgen.choice/1";

Problem problem_of(const Json& json, const std::string& path) {
  const std::string key = get<std::string>(json, "problem", path);
  try {
    return Problem::parse(key);
  } catch (const Error& e) {
    throw Error(std::string("bad problem key: ") + e.what(), path);
  }
}

void add_choice(const LockedChoice& c, Json& json) {
  json["template"] = c.choice.template_name;
  json["revision"] = c.revision;
  json["config"] = c.choice.config.to_json();
  json["expect_sha256"] = c.expect_sha256;
  json["toolchain"] = c.toolchain;
}

LockedChoice choice_from_json(const Json& json, const std::string& path) {
  LockedChoice c;
  c.choice = {get<std::string>(json, "template", path), Config::from_json(get<Json>(json, "config", path))};
  c.revision = get<int64_t>(json, "revision", path);
  c.expect_sha256 = get<std::string>(json, "expect_sha256", path);
  c.toolchain = get<std::string>(json, "toolchain", path);
  return c;
}

} // namespace

ProblemFile ProblemFile::read(const std::string& path) {
  const Json json = read_json(path, kProblemSchema);
  ProblemFile file;
  file.target = get<std::string>(json, "target", path);
  file.name = get<std::string>(json, "name", path);
  file.ns = get<std::string>(json, "namespace", path);
  file.problem = problem_of(json, path);
  file.untuned = get<bool>(json, "untuned", path);
  return file;
}

std::string ChoiceFile::serialize() const {
  Json json = {{"schema", kChoiceSchema}, {"problem", problem.key()}, {"arch", arch}};
  add_choice(main, json);
  json["origin"] = origin;
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
  return json.dump() + "\n";
}

ChoiceFile ChoiceFile::read(const std::string& path) {
  const Json json = read_json(path, kChoiceSchema);
  ChoiceFile file;
  file.problem = problem_of(json, path);
  file.arch = get<std::string>(json, "arch", path);
  file.main = choice_from_json(json, path);
  file.origin = get<std::string>(json, "origin", path);
  if (file.arch == "cpu")
    return file;
  for (const Json& item : get<Json>(json, "devices", path)) {
    file.devices.push_back(choice_from_json(item, path));
    file.devices.back().device = get<std::string>(item, "device", path);
  }
  for (const Json& item : get<Json>(json, "instead", path))
    file.instead.push_back(
        {get<std::string>(item, "template", path), Config::from_json(get<Json>(item, "config", path))});
  return file;
}

} // namespace deepgen
