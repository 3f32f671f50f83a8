#include "generator/search.h"

#include "generator/space.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <random>

namespace deepgen {
namespace {

constexpr double kRandomShareFirst = 0.15; ///< of round 0
constexpr double kNeighbourShare = 0.75;   ///< of later rounds
constexpr size_t kFamilyFloor = 4; ///< slots of round 0 for the best of each template, where several serve
constexpr size_t kStratumParameters = 4; ///< leading parameters, such as (isa, form, mr, nv), name a stratum

/// FNV-1a: std::hash may differ between standard libraries.
uint64_t hash(const std::string& text) {
  uint64_t h = 0xcbf29ce484222325u;
  for (unsigned char c : text)
    h = (h ^ c) * 0x100000001b3u;
  return h;
}

/// Nothing for a record of another problem, of a vendor's library, or of a config that is no longer legal.
std::optional<size_t> rank_of(const Space& space, const SearchInput& in, const Record& r) {
  if (r.problem != in.problem.key() || r.arch != in.arch || r.is_vendor())
    return std::nullopt;
  return space.rank(r.choice);
}

/// A plan under construction: which ranks are taken, measured before or picked now.
class Picker {
public:
  Picker(const Space& space, const SearchInput& in)
      : space_(space), taken_(space.size(), false),
        random_(hash(in.problem.key() + "|" + in.arch + "|" + std::to_string(in.round)) ^ in.options.seed) {
    plan_.problem = in.problem;
    plan_.arch = in.arch;
    plan_.round = in.round;
    for (const Record& r : in.records)
      if (auto rank = rank_of(space, in, r))
        taken_[*rank] = true;
  }

  size_t size() const { return plan_.slots.size(); }
  bool taken(size_t rank) const { return taken_[rank]; }
  const std::vector<size_t>& picked() const { return picked_; }
  Plan finish() { return std::move(plan_); }

  bool pick(size_t rank, const char* origin) {
    if (taken_[rank])
      return false;
    taken_[rank] = true;
    picked_.push_back(rank);
    plan_.slots.push_back({space_.choice(rank), origin});
    return true;
  }

  /// Fills up to `count` slots with free ranks below `limit`, each equally likely.
  void pick_random(size_t limit, size_t count) {
    std::vector<size_t> free;
    for (size_t rank = 0; rank < limit; ++rank)
      if (!taken_[rank])
        free.push_back(rank);
    while (size() < count && !free.empty()) {
      const size_t i = size_t(random_() % free.size());
      pick(free[i], "random");
      free[i] = free.back();
      free.pop_back();
    }
  }

private:
  const Space& space_;
  std::vector<bool> taken_;
  std::vector<size_t> picked_;
  Plan plan_;
  std::mt19937_64 random_;
};

/// The model's best, but few of each stratum and, within it, not two that differ in one parameter only: the
/// model ranks whole regions wrongly, so its first hundred are often one region. The limits are relaxed until
/// full.
class ModelPicks {
public:
  ModelPicks(const Space& space, Picker& picker) : space_(space), picker_(picker) {
    for (size_t rank : picker.picked())
      add(rank);
  }

  /// The costs of two templates compare less well than those of one: none is left out for what its model says.
  void give_each_family(size_t floor) {
    for (size_t family = 0; family < space_.families().size(); ++family) {
      auto mine = [&](size_t rank) { return space_.family(rank) == family; };
      const auto& picked = picker_.picked();
      const size_t have = size_t(std::count_if(picked.begin(), picked.end(), mine));
      if (have < floor)
        fill(picker_.size() + floor - have, 1, mine);
    }
  }

  void fill(size_t count) {
    fill(count, std::max<size_t>(1, count / 10), [](size_t) { return true; });
  }

private:
  void add(size_t rank) { strata_[space_.stratum(rank, kStratumParameters)].push_back(rank); }

  bool is_spread(size_t rank, size_t limit) {
    const auto& mates = strata_[space_.stratum(rank, kStratumParameters)];
    return mates.size() < limit && std::none_of(mates.begin(), mates.end(), [&](size_t mate) {
             return space_.distance(rank, mate) < 2;
           });
  }

  template <typename Wanted>
  void fill(size_t count, size_t first_limit, Wanted wanted) {
    for (size_t limit = first_limit; picker_.size() < count; limit *= 2) {
      const bool last = limit >= space_.size();
      for (size_t rank = 0; rank < space_.size() && picker_.size() < count; ++rank)
        if (!picker_.taken(rank) && wanted(rank) && (last || is_spread(rank, limit))) {
          picker_.pick(rank, "model");
          add(rank);
        }
      if (last)
        break;
    }
  }

  const Space& space_;
  Picker& picker_;
  std::map<std::vector<uint64_t>, std::vector<size_t>> strata_;
};

void first_round(const Space& space, const SearchInput& in, Picker& picker) {
  picker.pick(0, "default");
  if (in.incumbent && in.slots > 1)
    if (auto rank = space.rank(*in.incumbent))
      picker.pick(*rank, "incumbent");
  const size_t random = in.slots > 4 ? size_t(std::lround(kRandomShareFirst * double(in.slots))) : 0;
  ModelPicks picks(space, picker);
  if (const size_t families = space.families().size(); families > 1)
    picks.give_each_family(std::min(kFamilyFloor, (in.slots - random) / families));
  picks.fill(in.slots - random);
  picker.pick_random(space.size(), in.slots);
}

/// Ranks of the best measured configs, best first. Ratios to the default compare across rounds; times do not.
std::vector<size_t> best_measured(const Space& space, const SearchInput& in, size_t count) {
  std::vector<std::pair<double, size_t>> measured;
  for (const Record& r : in.records)
    if (r.ok() && r.timing)
      if (auto rank = rank_of(space, in, r))
        measured.emplace_back(r.timing->ratio, *rank);
  std::sort(measured.begin(), measured.end());
  std::vector<size_t> best;
  for (auto [ratio, rank] : measured)
    if (best.size() < count && std::find(best.begin(), best.end(), rank) == best.end())
      best.push_back(rank);
  return best;
}

/// Takes turns between the parents, so that the very best does not use up the round.
void pick_neighbours(const std::vector<std::vector<size_t>>& lists, Picker& picker, size_t count) {
  std::vector<size_t> next(lists.size(), 0);
  for (bool progress = true; progress && picker.size() < count;) {
    progress = false;
    for (size_t i = 0; i < lists.size() && picker.size() < count; ++i)
      while (next[i] < lists[i].size())
        if (picker.pick(lists[i][next[i]++], "neighbour")) {
          progress = true;
          break;
        }
  }
}

void later_round(const Space& space, const SearchInput& in, Picker& picker) {
  const size_t parents = std::clamp<size_t>(in.slots / 3, 2, 4);
  const size_t share = size_t(std::ceil(kNeighbourShare * double(in.slots)));
  std::vector<std::vector<size_t>> near, far;
  for (size_t rank : best_measured(space, in, parents)) {
    near.push_back(space.neighbours(rank));
    far.push_back(space.second_neighbours(rank));
  }
  pick_neighbours(near, picker, share);
  pick_neighbours(far, picker, share);
  picker.pick_random((space.size() + 1) / 2, in.slots);
  picker.pick_random(space.size(), in.slots);
}

} // namespace

Plan next_plan(const SearchInput& in) {
  const Space space(in.problem, in.arch, in.device, in.options, in.incumbent);
  Picker picker(space, in);
  space.default_choice(); // throws when no config is legal
  if (in.slots == 0)
    return picker.finish();
  if (in.round == 0)
    first_round(space, in, picker);
  else
    later_round(space, in, picker);
  return picker.finish();
}

} // namespace deepgen
