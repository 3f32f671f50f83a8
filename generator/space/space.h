// Space: all legal configs of all templates for one problem on one arch, ranked by estimated cost.
#pragma once

#include "base/search/search_options.h"
#include "templates/core/template.h"

#include <optional>
#include <unordered_map>

namespace deepgen {

class SpaceRules;
struct RuledParameter;

/// One template's share of a space.
struct Family {
  const Template* source;
  std::vector<Parameter> parameters;
  uint64_t raw = 1; ///< points of the cartesian grid
  size_t legal = 0; ///< of which no constraint is broken
};

/// A point is kept as its position in the grid (mixed radix over the parameters' values), so that a space of
/// 200k points costs a few megabytes and neighbours are arithmetic. Rank 0 is the cheapest; equal costs go by
/// text.
class Space {
public:
  /// Throws Error with every template's reason when none serves the problem on the arch, and when the options
  /// name what no template has. `also` is a legal config, such as the lock's, that is in the space even if it
  /// has values which its template does not offer, unless the options leave it out.
  Space(const Problem&, const std::string& arch, const Device&, const SearchOptions& = {},
        const std::optional<Choice>& also = {});

  const std::vector<Family>& families() const { return families_; }
  size_t size() const { return points_.size(); }
  /// What the options ask for and cannot be, a line each: a value that the template cannot have for this
  /// problem.
  const std::vector<std::string>& notes() const { return notes_; }
  size_t family(size_t rank) const { return points_[rank].family; } ///< index into families()
  double cost(size_t rank) const { return points_[rank].cost; }
  Choice choice(size_t rank) const;
  /// The default config: rank 0. Throws Error when no config is legal.
  Choice default_choice() const;
  /// Accepts the parameters in any order; nothing when the choice is not in the space.
  std::optional<size_t> rank(const Choice&) const;
  /// Identifies template and the values of its first parameters: configs that are alike in the large. Never
  /// all of them: configs that differ in the last one alone are near-identical, and so are those with a stage
  /// more.
  std::vector<uint64_t> stratum(size_t rank, size_t parameters) const;
  /// Which of its family's values each parameter has.
  std::vector<uint32_t> positions(size_t rank) const { return digits(points_[rank]); }
  /// The config of these positions; nothing when it is not in the space.
  std::optional<size_t> find(size_t family, const std::vector<uint32_t>& positions) const {
    return at(uint32_t(family), positions);
  }
  /// How many parameters differ; configs of two templates differ in all.
  size_t distance(size_t rank, size_t other) const;

  /// Legal configs that differ in one parameter, moved to the nearest legal value up or down; best first.
  std::vector<size_t> neighbours(size_t rank) const;
  /// Legal configs that differ in two parameters, each moved by one value; best first.
  std::vector<size_t> second_neighbours(size_t rank) const;

private:
  void add_family(const Template&, SpaceRules&, const Problem&, const Device&,
                  const std::optional<Choice>& also);
  static std::vector<uint64_t> outside(const Family&, const std::vector<RuledParameter>&, const SpaceRules&,
                                       const std::optional<Choice>& also);
  /// Position of a config in a family's grid; nothing when a value is not of the grid.
  static std::optional<uint64_t> grid_of(const Family&, const Config&);
  struct Point {
    double cost;
    uint64_t grid;
    uint32_t family;
  };
  void sort_points();
  std::vector<uint32_t> digits(const Point&) const;
  std::optional<size_t> at(uint32_t family, const std::vector<uint32_t>& digits) const;

  std::vector<Family> families_;
  std::vector<Point> points_;
  std::vector<std::unordered_map<uint64_t, uint32_t>> ranks_; ///< per family: grid position to rank
  std::vector<std::string> notes_;
  uint64_t left_out_ = 0;                    ///< legal ones, by patterns or workspace
  std::string restrictions_, restricted_in_; ///< of an empty space: keys, with their file
};

/// Why the choice is in no space of (problem, arch, device): unknown parameter, a value that the template
/// neither offers nor can make, or the constraint that it breaks. Empty when it is legal. Throws Error when
/// the template does not exist.
std::string why_illegal(const Problem&, const std::string& arch, const Device&, const Choice&);

} // namespace deepgen
