#include "generator/replay/sweep.h"

#include "generator/replay/recorded_space.h"
#include "generator/search/seeded.h"
#include "generator/space/space.h"

#include <algorithm>

namespace deepgen {
namespace {

std::vector<Choice> all_of(const Space& space) {
  space.default_choice(); // throws when no config is legal
  std::vector<Choice> choices;
  for (size_t rank = 0; rank < space.size(); ++rank) choices.push_back(space.choice(rank));
  return choices;
}

std::vector<Choice> fastest(const RecordedSpace& recorded, double within) {
  double best = 0;
  for (const RecordedConfig& c : recorded.configs)
    if (c.timed() && (best == 0 || c.ratio < best)) best = c.ratio;
  std::vector<Choice> choices;
  for (const RecordedConfig& c : recorded.configs)
    if (c.timed() && c.ratio <= best * (1 + within)) choices.push_back(c.choice);
  return choices;
}

/// All but the first `fixed`.
void shuffle(std::vector<Choice>& choices, size_t fixed, uint64_t seed) {
  Random random(seed);
  for (size_t i = choices.size(); i > fixed + 1; --i)
    std::swap(choices[i - 1], choices[fixed + random.below(i - fixed)]);
}

} // namespace

std::vector<Plan> sweep_plans(const Problem& problem, const std::string& arch, const Device& device,
                              const SweepOptions& o, const std::vector<RecordLog>& logs) {
  const bool again = !logs.empty();
  std::vector<Choice> choices =
      again ? fastest(pack(problem, device, logs), o.within) : all_of(Space(problem, arch, device, o.search));
  shuffle(choices, again ? 0 : 1, o.seed + uint64_t(o.first_round));
  std::vector<Plan> plans;
  for (size_t i = 0; i < choices.size(); ++i) {
    if (i % o.chunk == 0) {
      plans.emplace_back();
      plans.back().problem = problem;
      plans.back().arch = arch;
      plans.back().round = o.first_round + int(plans.size()) - 1;
    }
    plans.back().slots.push_back({choices[i], "sweep"});
  }
  return plans;
}

} // namespace deepgen
