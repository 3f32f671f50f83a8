#include "base/search/plan.h"

#include "base/files/files.h"
#include "base/json/json_text.h"
#include "base/search/tune_points_json.h"

namespace deepgen {
namespace {
constexpr const char* kPlanSchema = "deepgen.plan/1";
}

std::string Plan::serialize() const {
  std::string out =
      "{\"schema\":\"" + std::string(kPlanSchema) + "\",\"problem\":" + dump_json(problem.key()) +
      ",\"arch\":" + dump_json(arch) + ",\"round\":" + std::to_string(round) +
      (points.at.empty() ? "" : ",\"tune_at\":" + dump_json(tune_points_json(points))) + ",\"slots\":[";
  for (size_t i = 0; i < slots.size(); ++i)
    out += (i ? ",\n" : "\n") + dump_json({{"template", slots[i].choice.template_name},
                                           {"config", slots[i].choice.config.to_json()},
                                           {"origin", slots[i].origin}});
  return out + "\n]}\n";
}

Plan Plan::parse(const std::string& text, const std::string& where) {
  const Json json = parse_json(text, where);
  check_schema(json, kPlanSchema, where);
  Plan plan;
  plan.problem = Problem::parse(get<std::string>(json, "problem", where));
  plan.arch = get_word(json, "arch", where);
  plan.round = get<int>(json, "round", where);
  if (plan.problem.ranged()) plan.points = get_tune_points(json, "tune_at", plan.problem.gemm(), where);
  for (const Json& slot : get<std::vector<Json>>(json, "slots", where))
    plan.slots.push_back(
        {{get_word(slot, "template", where), Config::from_json(get<Json>(slot, "config", where))},
         get_name(slot, "origin", where)});
  return plan;
}

Plan Plan::read(const std::string& path) { return parse(read_file(path), path); }

} // namespace deepgen
