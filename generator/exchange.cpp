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
  const Json json = {{"schema", kChoiceSchema},
                     {"problem", problem.key()},
                     {"arch", arch},
                     {"template", choice.template_name},
                     {"revision", revision},
                     {"config", choice.config.to_json()},
                     {"origin", origin},
                     {"expect_sha256", expect_sha256}};
  return json.dump() + "\n";
}

ChoiceFile ChoiceFile::read(const std::string& path) {
  const Json json = read_json(path, kChoiceSchema);
  ChoiceFile file;
  file.problem = problem_of(json, path);
  file.arch = get<std::string>(json, "arch", path);
  file.choice = {get<std::string>(json, "template", path),
                 Config::from_json(get<Json>(json, "config", path))};
  file.revision = get<int64_t>(json, "revision", path);
  file.origin = get<std::string>(json, "origin", path);
  file.expect_sha256 = get<std::string>(json, "expect_sha256", path);
  return file;
}

} // namespace deepgen
