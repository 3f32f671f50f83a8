// Picker: a plan under construction. It takes no config twice, none that was tried, and no more than there is
// room for.
#pragma once

#include "generator/search/history.h"
#include "generator/search/seeded.h"

namespace deepgen {

class Picker {
public:
  Picker(const Space&, const SearchInput&, const History&, size_t room);

  size_t size() const { return picked_.size(); }
  size_t room() const { return room_; }
  bool full() const { return size() >= room_ || taken_count_ >= taken_.size(); }
  bool taken(size_t rank) const { return taken_[rank]; }
  const std::vector<size_t>& picked() const { return picked_; }
  Random& random() { return random_; }

  /// False when it is taken, or there is no room.
  bool pick(size_t rank, const std::string& origin);
  /// Until `size` are picked: of `candidates` each equally likely.
  void pick_random(const std::vector<size_t>& candidates, size_t size, const std::string& origin = "random");
  void pick_random(size_t size, const std::string& origin = "random");
  /// Until `size` are picked: those of the highest scores, the lower rank first among equals.
  void pick_highest(const std::vector<size_t>& candidates, const std::vector<double>& scores, size_t size,
                    const std::string& origin);

  Plan finish() { return std::move(plan_); }

private:
  const Space& space_;
  std::vector<bool> taken_;
  size_t taken_count_ = 0, room_;
  std::vector<size_t> picked_;
  Plan plan_;
  Random random_;
};

} // namespace deepgen
