#include "base/ranges/step_table.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace deepgen {
namespace {

constexpr double kNotKnown = std::numeric_limits<double>::infinity();
constexpr double kNearBest = 1.25; ///< times the best: no prediction is so far off
constexpr double kAsGood = 1.02;

double seconds_at(const StepTimes& kernel, int64_t size) {
  const auto time = kernel.time_at(size);
  return time ? time->seconds : kNotKnown;
}

/// Steps of those who may be near the best between two points.
void add_steps(const std::vector<StepTimes>& kernels, int64_t low, int64_t high, std::vector<int64_t>& out) {
  std::vector<double> least, most;
  for (const StepTimes& k : kernels) {
    const double a = seconds_at(k, low), b = seconds_at(k, high);
    least.push_back(std::min(a, b)), most.push_back(std::max(a, b));
  }
  const double best = *std::min_element(most.begin(), most.end());
  for (size_t k = 0; k < kernels.size(); ++k) {
    if (std::isinf(least[k]) || least[k] > kNearBest * best) continue;
    for (int64_t size : kernels[k].steps(low, high)) out.push_back(size);
  }
}

/// The two smallest costs at a place, and the kernel of the first.
struct Best {
  size_t kernel = 0;
  double cost = kNotKnown, second = kNotKnown;
};

Best best_at(const StepTable& table, size_t place) {
  Best best;
  for (size_t k = 0; k < table.times.size(); ++k) {
    const double cost = table.cost(k, place);
    if (cost < best.cost)
      best = {k, cost, best.cost};
    else
      best.second = std::min(best.second, cost);
  }
  return best;
}

struct Weighed {
  StepDemand demand;
  double margin; ///< of the second one over the best
};

/// Of the places between two points, first to end - 1; place `end` is a point.
void add_demands(const StepTable& table, size_t first, size_t end, std::vector<Weighed>& out) {
  const auto log_of = [&](size_t place) { return std::log(double(table.sizes[place])); };
  const double gap = log_of(end) - log_of(first - 1);
  size_t kernel = 0;
  bool running = false;
  for (size_t place = first; place < end; ++place) {
    const Best best = best_at(table, place);
    if (std::isinf(best.cost)) continue;
    if (!running || table.cost(kernel, place) > kAsGood * best.cost)
      kernel = best.kernel, running = true, out.push_back({{place, 0}, 0});
    Weighed& run = out.back();
    const double margin = std::isinf(best.second) ? 1 : best.second / best.cost - 1;
    if (margin > run.margin) run.margin = margin, run.demand.place = place;
    run.demand.share += (log_of(place + 1) - log_of(place)) / gap;
  }
}

} // namespace

StepTable step_table(const std::vector<StepTimes>& kernels, const std::vector<int64_t>& points) {
  StepTable table;
  if (kernels.empty() || points.empty()) return table;
  std::vector<int64_t> starts;
  table.sizes = points;
  for (size_t i = 1; i < points.size(); ++i) {
    if (double(points[i]) > StepTimes::kFarthest * double(points[i - 1])) continue;
    add_steps(kernels, points[i - 1], points[i], starts);
    for (const StepTimes& k : kernels)
      for (const StepTimes::Measured& m : k.measured())
        if (m.size > points[i - 1] && m.size < points[i]) table.sizes.push_back(m.size);
  }
  std::sort(starts.begin(), starts.end());
  table.sizes.insert(table.sizes.end(), starts.begin(), starts.end());
  std::sort(table.sizes.begin(), table.sizes.end());
  table.sizes.erase(std::unique(table.sizes.begin(), table.sizes.end()), table.sizes.end());
  for (int64_t size : table.sizes) {
    table.points.push_back(std::binary_search(points.begin(), points.end(), size));
    table.starts.push_back(std::binary_search(starts.begin(), starts.end(), size));
  }
  for (const StepTimes& k : kernels) {
    table.times.emplace_back();
    for (int64_t size : table.sizes)
      table.times.back().push_back(k.time_at(size).value_or(PredictedTime{kNotKnown, 0, 0}));
  }
  return table;
}

std::vector<StepDemand> step_demands(const StepTable& table, size_t most) {
  std::vector<Weighed> all;
  size_t last = 0; // point
  for (size_t place = 1; place < table.sizes.size(); ++place) {
    if (!table.points[place]) continue;
    add_demands(table, last + 1, place, all);
    last = place;
  }
  std::stable_sort(all.begin(), all.end(),
                   [](const Weighed& a, const Weighed& b) { return a.margin > b.margin; });
  if (all.size() > most) all.resize(most);
  std::sort(all.begin(), all.end(),
            [](const Weighed& a, const Weighed& b) { return a.demand.place < b.demand.place; });
  std::vector<StepDemand> out;
  for (const Weighed& w : all) out.push_back(w.demand);
  return out;
}

} // namespace deepgen
