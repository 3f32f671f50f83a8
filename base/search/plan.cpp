#include "base/search/plan.h"

#include "base/files/files.h"
#include "base/json/json_text.h"
#include "base/search/tune_points_json.h"
#include "base/text/error.h"

#include <algorithm>
#include <array>

namespace deepgen {
namespace {
constexpr const char* kPlanSchema = "deepgen.plan/1";
constexpr size_t kMostSizes = 256; ///< of a slot

Json slot_json(const PlanSlot& slot) {
  Json json = {{"template", slot.choice.template_name},
               {"config", slot.choice.config.to_json()},
               {"origin", slot.origin}};
  for (const Sizes& at : slot.at) json["at"].push_back({at.m, at.n, at.k, at.batch});
  return json;
}

std::vector<Sizes> sizes_of_slot(const Json& slot, const Problem& problem, const std::string& where) {
  std::vector<Sizes> sizes;
  if (!slot.contains("at")) return sizes;
  if (!problem.ranged())
    throw Error("a slot has sizes, and the problem has no range", where, problem.key(), "plan again");
  for (const auto& at : get<std::vector<std::array<int64_t, size_count>>>(slot, "at", where)) {
    sizes.push_back({at[0], at[1], at[2], at[3]});
    if (sizes.size() > kMostSizes || *std::min_element(at.begin(), at.end()) < 1 ||
        !problem.takes(sizes.back()))
      throw Error("the sizes of a slot are not of the problem's ranges", where, problem.key(), "plan again");
  }
  return sizes;
}

PlanSlot slot_of(const Json& slot, const Problem& problem, const std::string& where) {
  return {{get_word(slot, "template", where), Config::from_json(get<Json>(slot, "config", where))},
          get_name(slot, "origin", where),
          sizes_of_slot(slot, problem, where)};
}

} // namespace

std::string Plan::serialize() const {
  std::string out =
      "{\"schema\":\"" + std::string(kPlanSchema) + "\",\"problem\":" + dump_json(problem.key()) +
      ",\"arch\":" + dump_json(arch) + ",\"round\":" + std::to_string(round) +
      (points.at.empty() ? "" : ",\"tune_at\":" + dump_json(tune_points_json(points))) + ",\"slots\":[";
  for (size_t i = 0; i < slots.size(); ++i) out += (i ? ",\n" : "\n") + dump_json(slot_json(slots[i]));
  return out + "\n]}\n";
}

Plan Plan::parse(const std::string& text, const std::string& where) {
  const Json json = parse_json(text, where);
  check_schema(json, kPlanSchema, where);
  Plan plan;
  plan.problem = Problem::parse(get<std::string>(json, "problem", where));
  plan.arch = get_word(json, "arch", where);
  plan.round = get<int>(json, "round", where);
  if (plan.problem.ranged()) plan.points = get_tune_points(json, "tune_at", plan.problem, where);
  for (const Json& slot : get<std::vector<Json>>(json, "slots", where))
    plan.slots.push_back(slot_of(slot, plan.problem, where));
  return plan;
}

Plan Plan::read(const std::string& path) { return parse(read_file(path), path); }

} // namespace deepgen
