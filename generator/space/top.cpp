#include "generator/space/top.h"

#include <algorithm>
#include <map>

namespace deepgen {
namespace {

struct Candidate {
  Choice choice;
  double ratio = 0;
  bool good = false, is_default = false, final = false;
};

/// Of one problem and arch, in the order of the logs.
using Candidates = std::vector<Candidate>;

/// Ratios of the finals are the better ones, and of two others the later.
void note(Candidates& candidates, const Record& r) {
  auto it = std::find_if(candidates.begin(), candidates.end(),
                         [&](const Candidate& c) { return c.choice == r.choice; });
  if (it == candidates.end()) it = candidates.insert(it, {r.choice, 0, false, false, false});
  const bool final = r.stage == "final";
  it->is_default |= r.origin == "default";
  if (it->final && !final) return;
  it->final = final;
  it->good = r.ok() && r.timing;
  if (it->good) it->ratio = r.timing->ratio;
}

} // namespace

SavedSpace top_of(const std::vector<RecordLog>& logs, size_t count) {
  std::map<std::pair<std::string, std::string>, Candidates> problems;
  for (const RecordLog& log : logs)
    for (const Record& r : log.records)
      if (!r.is_vendor()) note(problems[{r.problem, r.arch}], r);
  SavedSpace space;
  for (auto& [key, candidates] : problems) {
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate& x, const Candidate& y) { return x.ratio < y.ratio; });
    size_t taken = 0;
    for (const Candidate& c : candidates)
      if ((c.good && taken < count) || c.is_default) {
        space.entries.push_back({key.first, key.second, c.choice});
        ++taken;
      }
  }
  return space;
}

} // namespace deepgen
