#include "workload/ranges.h"

#include "base/problem/points.h"
#include "base/text/error.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

namespace deepgen {
namespace {

constexpr size_t kTunedAt = 10; ///< as many as default_points() has

int64_t value_of(const Gemm& p, Size size) { return p.sizes()[size]; }

Gemm with_size(Gemm p, Size size, int64_t value) {
  (size == Size::m ? p.m : size == Size::n ? p.n : size == Size::k ? p.k : p.batch) = value;
  return p;
}

/// Of problems that differ in this size alone; those first whose size is least.
WorkloadProblem merged(std::vector<WorkloadProblem> parts, Size size) {
  std::sort(parts.begin(), parts.end(), [&](const WorkloadProblem& x, const WorkloadProblem& y) {
    return value_of(x.problem.gemm(), size) < value_of(y.problem.gemm(), size);
  });
  Gemm p = parts.back().problem.gemm();
  p.least[size_t(size)] = value_of(parts.front().problem.gemm(), size);
  WorkloadProblem out;
  out.problem = Problem(p);
  for (const WorkloadProblem& part : parts) {
    out.points.push_back({value_of(part.problem.gemm(), size), part.calls, part.seconds, part.timed});
    for (const LogPlace& place : part.lines)
      if (out.lines.size() < Tally::most_places) out.lines.push_back(place);
  }
  std::sort(out.lines.begin(), out.lines.end());
  out.name = function_name(out.problem);
  sum_points(out);
  return out;
}

/// The points that count: both ends, and of the others the heaviest.
std::vector<size_t> chosen_points(const std::vector<WorkloadPoint>& points) {
  std::vector<size_t> order(points.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  const auto is_end = [&](size_t i) { return i == 0 || i + 1 == points.size(); };
  std::stable_sort(order.begin(), order.end(), [&](size_t x, size_t y) {
    if (is_end(x) != is_end(y)) return is_end(x);
    return points[x].weight() > points[y].weight();
  });
  order.resize(std::min(order.size(), kTunedAt));
  std::sort(order.begin(), order.end());
  return order;
}

double distance(const WorkloadPoint& x, const WorkloadPoint& y) {
  return std::fabs(std::log(double(x.value) / double(y.value)));
}

} // namespace

size_t merge_ranges(Workload& w, Size size) {
  std::map<std::string, std::vector<WorkloadProblem>> alike;
  std::vector<WorkloadProblem> kept;
  for (WorkloadProblem& p : w.problems) {
    const Gemm* gemm = std::get_if<Gemm>(&p.problem.which());
    if (gemm && !gemm->ranged())
      alike[with_size(*gemm, size, 1).key()].push_back(std::move(p));
    else
      kept.push_back(std::move(p));
  }
  size_t parts = 0;
  for (auto& [key, list] : alike) {
    if (list.size() == 1) {
      kept.push_back(std::move(list.front()));
      continue;
    }
    parts += list.size();
    kept.push_back(merged(std::move(list), size));
  }
  w.problems = std::move(kept);
  w.arrange();
  return parts;
}

void sum_points(WorkloadProblem& p) {
  double calls = 0, seconds = 0;
  p.calls = 0, p.timed = true;
  for (const WorkloadPoint& point : p.points) {
    calls += double(point.calls), seconds += point.weight();
    p.calls = std::min(p.calls + point.calls, kMostCalls);
    p.timed &= point.timed;
  }
  p.seconds = std::clamp(rounded(seconds / calls), 1e-300, kMostSeconds);
}

TuneTexts tune_texts(const WorkloadProblem& p) {
  const std::vector<size_t> chosen = chosen_points(p.points);
  std::vector<double> calls(chosen.size(), 0);
  double all = 0;
  for (const WorkloadPoint& point : p.points) {
    size_t nearest = 0;
    for (size_t i = 1; i < chosen.size(); ++i)
      if (distance(p.points[chosen[i]], point) < distance(p.points[chosen[nearest]], point)) nearest = i;
    calls[nearest] += double(point.calls), all += double(point.calls);
  }
  TuneTexts out;
  for (size_t i = 0; i < chosen.size(); ++i) {
    char weight[40];
    std::snprintf(weight, sizeof weight, "%.6f", std::max(calls[i] / all, 1e-6));
    out.at += (i ? " " : "") + std::to_string(p.points[chosen[i]].value);
    out.weights += (i ? " " : "") + std::string(weight);
  }
  return out;
}

std::string sizes_text(const WorkloadProblem& p) {
  std::string text;
  for (const WorkloadPoint& point : p.points) text += (text.empty() ? "" : " ") + std::to_string(point.value);
  return text;
}

void check_points(const WorkloadProblem& p, const std::string& where) {
  const Gemm* gemm = std::get_if<Gemm>(&p.problem.which());
  const std::optional<Size> size = gemm ? split_size(*gemm) : std::nullopt;
  size_t ranges = 0;
  for (size_t i = 0; gemm && i < size_count; ++i) ranges += gemm->ranged(Size(i));
  if (ranges != 1)
    throw Error("points of a problem that has not one range", where, p.problem.key(), "delete its points");
  int64_t before = 0;
  for (const WorkloadPoint& point : p.points) {
    Sizes at = gemm->sizes();
    at[*size] = point.value;
    if (point.value <= before || !gemm->takes(at))
      throw Error("field 'points' has no size of the range: " + std::to_string(point.value), where,
                  p.problem.key(), "sizes of the range, each once, ascending");
    before = point.value;
  }
}

} // namespace deepgen
