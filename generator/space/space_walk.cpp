#include "generator/space/space_walk.h"

#include "base/text/error.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <functional>
#include <limits>
#include <system_error>
#include <thread>

namespace deepgen {
namespace {

/// Beyond these an enumeration takes minutes and gigabytes: the options extend too much.
constexpr uint64_t kMostVisits = 200'000'000, kMostPoints = 2'000'000;
constexpr uint64_t kTold = 4096; ///< visits after which a thread tells the others
constexpr size_t kMostThreads = 16;

/// Of all threads, as far as they told.
struct WalkTotals {
  std::atomic<uint64_t> visits = 0, points = 0;
};

/// Depth first, changing one Config in place: no string is copied per point.
class Walk {
public:
  Walk(const Ground& ground, WalkTotals& totals) : ground_(ground), totals_(totals) {
    for (const Parameter& p : ground.family.parameters) config_.values.emplace_back(p.name, 0);
  }

  /// The part of the grid in which the first `depth` parameters have the values of `part`.
  Walked visit_part(size_t depth, uint64_t part) {
    const std::vector<size_t> digits = digits_of(part, depth);
    for (size_t i = 0; i < depth; ++i)
      if (!assign(i, digits[i])) return {};
    visit(depth, part);
    return std::move(found_);
  }

  Walked visit_points(const std::vector<uint64_t>& grid) {
    for (uint64_t point : grid) {
      const std::vector<size_t> digits = digits_of(point, config_.values.size());
      for (size_t i = 0; i < digits.size(); ++i) config_.values[i].second = values(i)[digits[i]];
      leaf(point);
    }
    return std::move(found_);
  }

private:
  const std::vector<int64_t>& values(size_t i) const { return ground_.family.parameters[i].values; }

  /// Of the first `depth` parameters.
  std::vector<size_t> digits_of(uint64_t place, size_t depth) const {
    std::vector<size_t> digits(depth);
    for (size_t i = depth; i-- > 0; place /= values(i).size()) digits[i] = size_t(place % values(i).size());
    return digits;
  }

  /// Whether there is a reason to look at what follows.
  bool assign(size_t i, size_t digit) {
    if (!ground_.parameters[i].visited[digit]) return false;
    if (++visits_ % kTold == 0) tell();
    config_.values[i].second = values(i)[digit];
    return !ground_.family.source->dead_end(ground_.problem, ground_.device, config_, i + 1);
  }

  void visit(size_t assigned, uint64_t grid) {
    if (assigned == config_.values.size()) return leaf(grid);
    for (size_t i = 0; i < values(assigned).size(); ++i)
      if (assign(assigned, i)) visit(assigned + 1, grid * values(assigned).size() + i);
  }

  void leaf(uint64_t grid) {
    const Template& t = *ground_.family.source;
    if (!t.why_illegal(ground_.problem, ground_.device, config_).empty()) return;
    if (!ground_.rules.passes(t, config_)) {
      ++found_.left_out;
      return;
    }
    const double cost = t.cost(ground_.problem, ground_.device, config_);
    found_.points.push_back({std::isnan(cost) ? std::numeric_limits<double>::infinity() : cost, grid});
  }

  void tell() {
    const uint64_t visits = totals_.visits += kTold,
                   points = totals_.points += found_.points.size() - told_points_;
    told_points_ = found_.points.size();
    if (visits > kMostVisits || points > kMostPoints)
      throw Error("the space is too large to enumerate", ground_.family.source->name(),
                  std::to_string(visits) + " points visited, " + std::to_string(points) + " of them legal",
                  "give its parameters fewer values in the search file");
  }

  const Ground& ground_;
  WalkTotals& totals_;
  Config config_;
  Walked found_;
  uint64_t visits_ = 0, told_points_ = 0;
};

/// Runs action(0) .. action(count - 1), whichever thread is free; then throws what the first of them threw
/// that failed.
void on_all_cores(size_t count, const std::function<void(size_t)>& action) {
  std::atomic<size_t> next = 0;
  std::vector<std::exception_ptr> failures(count);
  const auto work = [&] {
    for (size_t i; (i = next++) < count;) try {
        action(i);
      } catch (...) {
        failures[i] = std::current_exception();
        next = count;
      }
  };
  {
    std::vector<std::jthread> others;
    const size_t threads =
        std::min({count, size_t(std::max(1u, std::thread::hardware_concurrency())), kMostThreads});
    try {
      for (size_t i = 1; i < threads; ++i) others.emplace_back(work);
    } catch (const std::system_error&) { // no more threads to be had: those that there are do it all
    }
    work();
  }
  for (const std::exception_ptr& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

} // namespace

Walked walk_grid(const Ground& ground, size_t found) {
  const size_t depth = std::min<size_t>(2, ground.family.parameters.size());
  size_t count = 1;
  for (size_t i = 0; i < depth; ++i) count *= ground.family.parameters[i].values.size();
  WalkTotals totals;
  totals.points = found;
  std::vector<Walked> parts(count);
  on_all_cores(count, [&](size_t part) { parts[part] = Walk(ground, totals).visit_part(depth, part); });
  Walked all;
  for (const Walked& part : parts) {
    all.points.insert(all.points.end(), part.points.begin(), part.points.end());
    all.left_out += part.left_out;
  }
  return all;
}

Walked walk_points(const Ground& ground, const std::vector<uint64_t>& grid) {
  WalkTotals totals;
  return Walk(ground, totals).visit_points(grid);
}

} // namespace deepgen
