// A genetic algorithm: the fastest of all rounds are the population, children are crossed and mutated in
// their parameters' positions, and an illegal child becomes the nearest legal config.
#include "generator/search/strategy.h"

#include <algorithm>
#include <cmath>

namespace deepgen {
namespace {

constexpr size_t kPopulation = 20;
constexpr size_t kTournament = 3;

using Genes = std::vector<uint32_t>;

class Breeder {
public:
  Breeder(const SearchState& state, Picker& picker)
      : space_(state.space), picker_(picker), population_(state.history.best(kPopulation)) {}

  bool empty() const { return population_.empty(); }

  /// The free legal config nearest to a child; nothing when the family has none left.
  std::optional<size_t> child() {
    const size_t mother = choose(), father = choose();
    const size_t family = space_.family(mother);
    Genes genes = space_.positions(mother);
    if (space_.family(father) == family) {
      const Genes other = space_.positions(father);
      for (size_t i = 0; i < genes.size(); ++i)
        if (random().below(2)) genes[i] = other[i];
    }
    mutate(family, genes);
    return nearest(family, genes);
  }

private:
  Random& random() { return picker_.random(); }

  /// The fastest of a few; population_ is sorted.
  size_t choose() {
    size_t best = population_.size();
    for (size_t i = 0; i < kTournament; ++i) best = std::min(best, random().below(population_.size()));
    return population_[best];
  }

  /// On average one gene: mostly to the next value, as parameters are ordered.
  void mutate(size_t family, Genes& genes) {
    const auto& parameters = space_.families()[family].parameters;
    for (size_t i = 0; i < genes.size(); ++i) {
      if (random().below(genes.size())) continue;
      const uint32_t count = uint32_t(parameters[i].values.size());
      if (random().below(3) == 0)
        genes[i] = uint32_t(random().below(count));
      else if (random().below(2))
        genes[i] += genes[i] + 1 < count;
      else
        genes[i] -= genes[i] > 0;
    }
  }

  std::optional<size_t> nearest(size_t family, const Genes& genes) {
    if (auto rank = space_.find(family, genes); rank && !picker_.taken(*rank)) return rank;
    std::optional<size_t> found;
    std::pair<size_t, uint64_t> least;
    for (size_t rank = 0; rank < space_.size(); ++rank) {
      if (space_.family(rank) != family || picker_.taken(rank)) continue;
      if (const auto distance = distance_between(genes_of(rank), genes); !found || distance < least)
        found = rank, least = distance;
    }
    return found;
  }

  /// Parameters that differ, then by how many values in all.
  static std::pair<size_t, uint64_t> distance_between(const Genes& x, const Genes& y) {
    std::pair<size_t, uint64_t> d{0, 0};
    for (size_t i = 0; i < x.size(); ++i) {
      d.first += x[i] != y[i];
      d.second += x[i] > y[i] ? x[i] - y[i] : y[i] - x[i];
    }
    return d;
  }

  const Genes& genes_of(size_t rank) {
    if (genes_.empty())
      for (size_t i = 0; i < space_.size(); ++i) genes_.push_back(space_.positions(i));
    return genes_[rank];
  }

  const Space& space_;
  Picker& picker_;
  const std::vector<size_t> population_;
  std::vector<Genes> genes_;
};

} // namespace

void propose_genetic(const SearchState& state, Picker& picker) {
  if (state.in.round == 0) return picker.pick_random(picker.room());
  Breeder breeder(state, picker);
  while (!picker.full()) {
    const auto child = breeder.empty() ? std::nullopt : breeder.child();
    if (child)
      picker.pick(*child, "genetic");
    else
      picker.pick_random(picker.size() + 1); // nothing was timed yet, or the parents' family is used up
  }
}

} // namespace deepgen
