#include "base/plan.h"

#include "base/files.h"
#include "base/json.h"

namespace deepgen {
namespace {
constexpr const char* kSchema = "deepgen.plan/1";
}

std::string Plan::serialize() const {
  std::string out = "{\"schema\":\"" + std::string(kSchema) + "\",\"problem\":" + Json(problem.key()).dump() +
                    ",\"arch\":" + Json(arch).dump() + ",\"round\":" + std::to_string(round) + ",\"slots\":[";
  for (size_t i = 0; i < slots.size(); ++i)
    out += (i ? ",\n" : "\n") + Json{{"template", slots[i].choice.template_name},
                                     {"config", slots[i].choice.config.to_json()},
                                     {"origin", slots[i].origin}}
                                    .dump();
  return out + "\n]}\n";
}

Plan Plan::read(const std::string& path) {
  Json json = read_json(path, kSchema);
  Plan plan;
  plan.problem = Problem::parse(get<std::string>(json, "problem", path));
  plan.arch = get<std::string>(json, "arch", path);
  plan.round = get<int>(json, "round", path);
  for (const Json& slot : get<Json>(json, "slots", path))
    plan.slots.push_back({{get<std::string>(slot, "template", path), Config::from_json(get<Json>(slot, "config", path))},
                          get<std::string>(slot, "origin", path)});
  return plan;
}

} // namespace deepgen
