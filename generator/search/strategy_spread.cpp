// What several strategies share: the model's estimates spread over the space, and neighbours.
#include "generator/search/strategy.h"

#include <algorithm>
#include <limits>
#include <map>

namespace deepgen {
namespace {

// How many of each template are tried at least, where several serve. Their estimates compare less well than
// those of one: what is close may be the fastest, what is far away hardly is.
constexpr size_t kFamilyFloor = 4; ///< of a template whose best estimate is not slower than the best one by
constexpr double kFar = 2;         ///< this factor; of others one
constexpr double kClose = 1.25;    ///< up to this factor half of all slots are shared out evenly
constexpr size_t kStratumParameters = 4; ///< leading parameters, such as (isa, form, mr, nv), name a stratum

class Spread {
public:
  Spread(const Space& space, Picker& picker, const std::string& origin)
      : space_(space), picker_(picker), origin_(origin) {
    for (size_t rank : picker.picked()) add(rank);
  }

  void give_each_family(size_t size) {
    const size_t families = space_.families().size();
    std::vector<double> slower(families,
                               std::numeric_limits<double>::infinity()); // the best estimate of each / of all
    for (size_t rank = space_.size(); rank-- > 0;)
      slower[space_.family(rank)] = space_.cost(rank) / space_.cost(0);
    const auto close =
        size_t(std::count_if(slower.begin(), slower.end(), [](double x) { return x <= kClose; }));
    const size_t most = size / families;
    for (size_t family = 0; family < families; ++family) {
      const size_t share = slower[family] <= kClose ? std::max(kFamilyFloor, size / (2 * close))
                           : slower[family] <= kFar ? kFamilyFloor
                                                    : 1;
      auto mine = [&](size_t rank) { return space_.family(rank) == family; };
      const auto& picked = picker_.picked();
      const size_t have = size_t(std::count_if(picked.begin(), picked.end(), mine)),
                   floor = std::min(share, most);
      if (have < floor) fill(picker_.size() + floor - have, 1, mine);
    }
  }

  void fill(size_t size) {
    fill(size, std::max<size_t>(1, size / 10), [](size_t) { return true; });
  }

private:
  void add(size_t rank) { strata_[space_.stratum(rank, kStratumParameters)].push_back(rank); }

  bool is_spread(size_t rank, size_t limit) {
    const auto& mates = strata_[space_.stratum(rank, kStratumParameters)];
    return mates.size() < limit &&
           std::none_of(
               mates.begin(), mates.end(), [&](size_t mate) { return space_.distance(rank, mate) < 2; });
  }

  /// The limits are relaxed until it is full.
  template <typename Wanted>
  void fill(size_t size, size_t first_limit, Wanted wanted) {
    for (size_t limit = first_limit; picker_.size() < size && !picker_.full(); limit *= 2) {
      const bool last = limit >= space_.size();
      for (size_t rank = 0; rank < space_.size() && picker_.size() < size; ++rank)
        if (!picker_.taken(rank) && wanted(rank) && (last || is_spread(rank, limit)))
          if (picker_.pick(rank, origin_)) add(rank);
      if (last) break;
    }
  }

  const Space& space_;
  Picker& picker_;
  const std::string origin_;
  std::map<std::vector<uint64_t>, std::vector<size_t>> strata_;
};

/// Takes turns between the lists.
void pick_in_turns(const std::vector<std::vector<size_t>>& lists, Picker& picker, size_t size,
                   const std::string& origin) {
  std::vector<size_t> next(lists.size(), 0);
  for (bool progress = true; progress && picker.size() < size;) {
    progress = false;
    for (size_t i = 0; i < lists.size() && picker.size() < size; ++i)
      while (next[i] < lists[i].size())
        if (picker.pick(lists[i][next[i]++], origin)) {
          progress = true;
          break;
        }
  }
}

} // namespace

void pick_spread(const SearchState& state, Picker& picker, size_t size, const std::string& origin) {
  size = std::min(size, picker.room());
  Spread spread(state.space, picker, origin);
  if (state.space.families().size() > 1) spread.give_each_family(size);
  spread.fill(size);
}

void pick_neighbours(const SearchState& state, Picker& picker, const std::vector<size_t>& parents,
                     size_t size, const std::string& origin) {
  std::vector<std::vector<size_t>> near, far;
  for (size_t rank : parents) {
    near.push_back(state.space.neighbours(rank));
    far.push_back(state.space.second_neighbours(rank));
  }
  pick_in_turns(near, picker, size, origin);
  pick_in_turns(far, picker, size, origin);
}

} // namespace deepgen
