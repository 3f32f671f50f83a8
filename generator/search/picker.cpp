#include "generator/search/picker.h"

#include <algorithm>
#include <numeric>

namespace deepgen {

Picker::Picker(const Space& space, const SearchInput& in, const History& history, size_t room)
    : space_(space), taken_(space.size(), false), room_(room),
      random_(fnv1a(in.problem.key() + "|" + in.arch + "|" + std::to_string(in.round)) ^ in.options.seed) {
  plan_.problem = in.problem;
  plan_.arch = in.arch;
  plan_.round = in.round;
  for (const Trial& t : history.trials()) {
    taken_[t.rank] = true;
    ++taken_count_;
  }
}

bool Picker::pick(size_t rank, const std::string& origin) {
  if (size() >= room_ || taken_[rank]) return false;
  taken_[rank] = true;
  ++taken_count_;
  picked_.push_back(rank);
  plan_.slots.push_back({space_.choice(rank), origin});
  return true;
}

void Picker::pick_random(const std::vector<size_t>& candidates, size_t size, const std::string& origin) {
  std::vector<size_t> free;
  for (size_t rank : candidates)
    if (!taken_[rank]) free.push_back(rank);
  while (this->size() < std::min(size, room_) && !free.empty()) {
    const size_t i = random_.below(free.size());
    pick(free[i], origin);
    free[i] = free.back();
    free.pop_back();
  }
}

void Picker::pick_random(size_t size, const std::string& origin) {
  std::vector<size_t> all(taken_.size());
  std::iota(all.begin(), all.end(), size_t(0));
  pick_random(all, size, origin);
}

void Picker::pick_highest(const std::vector<size_t>& candidates, const std::vector<double>& scores,
                          size_t size, const std::string& origin) {
  std::vector<size_t> order(candidates.size());
  std::iota(order.begin(), order.end(), size_t(0));
  std::sort(order.begin(), order.end(), [&](size_t x, size_t y) {
    return scores[x] != scores[y] ? scores[x] > scores[y] : candidates[x] < candidates[y];
  });
  for (size_t i : order) {
    if (this->size() >= std::min(size, room_)) return;
    pick(candidates[i], origin);
  }
}

} // namespace deepgen
