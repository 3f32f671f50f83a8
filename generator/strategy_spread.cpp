// What several strategies share: the model's estimates spread over the space, and neighbours.
#include "generator/strategy.h"

#include <algorithm>
#include <map>

namespace deepgen {
namespace {

constexpr size_t kFamilyFloor = 4;       ///< for the best of each template, where several serve
constexpr size_t kStratumParameters = 4; ///< leading parameters, such as (isa, form, mr, nv), name a stratum

class Spread {
public:
  Spread(const Space& space, Picker& picker, const std::string& origin)
      : space_(space), picker_(picker), origin_(origin) {
    for (size_t rank : picker.picked()) add(rank);
  }

  /// The costs of two templates compare less well than those of one: none is left out for what its model
  /// says.
  void give_each_family(size_t floor) {
    for (size_t family = 0; family < space_.families().size(); ++family) {
      auto mine = [&](size_t rank) { return space_.family(rank) == family; };
      const auto& picked = picker_.picked();
      const size_t have = size_t(std::count_if(picked.begin(), picked.end(), mine));
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
    return mates.size() < limit && std::none_of(mates.begin(), mates.end(),
                                                [&](size_t mate) { return space_.distance(rank, mate) < 2; });
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
  if (const size_t families = state.space.families().size(); families > 1)
    spread.give_each_family(std::min(kFamilyFloor, size / families));
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
