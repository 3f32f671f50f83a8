#include "base/ranges/step_times.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace deepgen {
namespace {

constexpr size_t kAll = std::numeric_limits<size_t>::max();
/// Where too few measured sizes can be told from others: between the median and what 9 of 10 were off at most
/// on an H100 (benchmarks/gpu/ranges.md).
constexpr double kUnknown = 0.055;
constexpr size_t kFewest = 3;
/// As far as sizes of the finals are apart: nearer to a measured one, less may have changed.
constexpr double kUsual = 1.25;

double apart(int64_t a, int64_t b) { return std::abs(std::log(double(a) / double(b))); }

double average(const std::vector<double>& all) {
  double sum = 0;
  for (double x : all) sum += x;
  return std::min(1.0, sum / double(all.size())); // more is no more doubtful
}

} // namespace

StepTimes::StepTimes(std::vector<CallGrid> grids, const Sizes& at, Size along, std::vector<Measured> measured)
    : grids_(std::move(grids)), at_(at), along_(along), measured_(std::move(measured)) {
  check_itself();
}

double StepTimes::blocks(int64_t size) const {
  Sizes call = at_;
  call[along_] = size;
  double count = 0;
  for (const CallGrid& grid : grids_) count += grid.blocks(call);
  return count;
}

double StepTimes::load_of(int64_t size, Load load) const {
  Sizes call = at_;
  call[along_] = size;
  double waves = 0, shares = 0;
  for (const CallGrid& grid : grids_) {
    const double resident = grid.resident > 0 ? double(grid.resident) : 1;
    waves += std::ceil(grid.blocks(call) / resident), shares += grid.blocks(call) / resident;
  }
  return load == Load::waves ? waves : load == Load::blocks ? shares : waves + shares;
}

std::optional<std::pair<size_t, size_t>> StepTimes::neighbours(int64_t size, size_t left_out) const {
  std::optional<size_t> below, above;
  for (size_t i = 0; i < measured_.size(); ++i) {
    if (i == left_out) continue;
    if (measured_[i].size <= size) below = i;
    if (measured_[i].size >= size && !above) above = i;
  }
  if (!below || !above) return std::nullopt;
  return std::pair(*below, *above);
}

std::optional<double> StepTimes::same_blocks(int64_t size, size_t left_out, double* distance) const {
  const double count = blocks(size);
  const Measured *below = nullptr, *above = nullptr;
  for (size_t i = 0; i < measured_.size(); ++i) {
    const Measured& m = measured_[i];
    if (i == left_out || blocks(m.size) != count) continue;
    if (m.size <= size) below = &m;
    if (m.size >= size && !above) above = &m;
  }
  if (!below && !above) return std::nullopt;
  const double to_below = below ? apart(size, below->size) : std::numeric_limits<double>::infinity();
  const double to_above = above ? apart(size, above->size) : std::numeric_limits<double>::infinity();
  if (distance) *distance = std::min(to_below, to_above);
  if (!below || !above) return (below ? below : above)->seconds;
  if (below == above) return below->seconds;
  return below->seconds + to_below / (to_below + to_above) * (above->seconds - below->seconds);
}

std::optional<double> StepTimes::between(int64_t size, size_t left_out, Load load) const {
  const auto near = neighbours(size, left_out);
  if (!near) return std::nullopt;
  const Measured &low = measured_[near->first], &high = measured_[near->second];
  if (left_out == kAll && double(high.size) > kFarthest * double(low.size)) return std::nullopt;
  const double from = load_of(low.size, load), to = load_of(high.size, load);
  const double share = to > from ? (load_of(size, load) - from) / (to - from)
                       : high.size > low.size
                           ? apart(size, low.size) / (apart(size, low.size) + apart(high.size, size))
                           : 0;
  return low.seconds + std::clamp(share, 0.0, 1.0) * (high.seconds - low.seconds);
}

/// Each measured size but the ends, told from the others.
void StepTimes::check_itself() {
  constexpr std::array loads = {Load::waves, Load::blocks, Load::both};
  std::vector<double> same;
  std::array<std::vector<double>, loads.size()> errors;
  for (size_t i = 1; i + 1 < measured_.size(); ++i) {
    const auto off = [&](double seconds) { return std::abs(seconds / measured_[i].seconds - 1); };
    if (const auto known = same_blocks(measured_[i].size, i)) {
      same.push_back(off(*known));
      continue;
    }
    for (size_t l = 0; l < loads.size(); ++l)
      errors[l].push_back(off(*between(measured_[i].size, i, loads[l])));
  }
  same_error_ = same.size() < kFewest ? kUnknown : average(same);
  between_error_ = kUnknown;
  if (errors[0].size() < kFewest) return;
  size_t best = 0;
  for (size_t l = 1; l < loads.size(); ++l)
    if (average(errors[l]) < average(errors[best])) best = l;
  load_ = loads[best], between_error_ = average(errors[best]);
}

std::optional<PredictedTime> StepTimes::time_at(int64_t size) const {
  for (const Measured& m : measured_)
    if (m.size == size) return PredictedTime{m.seconds, 0, 0, true};
  double distance = 0;
  const auto known = same_blocks(size, kAll, &distance);
  if (known && (distance <= std::log(kFarthest) || neighbours(size, kAll))) {
    const double error = same_error_ * std::min(1.0, distance / std::log(kUsual));
    return PredictedTime{*known, error, error};
  }
  const auto told = between(size, kAll, load_);
  if (!told) return std::nullopt;
  const auto near = neighbours(size, kAll);
  const Measured &low = measured_[near->first], &high = measured_[near->second];
  const double nearer =
      std::min(1.0, std::min(apart(size, low.size), apart(high.size, size)) / std::log(kUsual));
  // A jump at a wrong place is as large as the neighbours are apart: by a quarter, on average.
  const double jump = std::abs(std::log(high.seconds / low.seconds)) / 4;
  return PredictedTime{*told, between_error_ * nearer, std::max(between_error_ * nearer, jump)};
}

std::vector<int64_t> StepTimes::steps(int64_t low, int64_t high) const {
  constexpr size_t kMost = 64; // in a gap between two sizes of the finals
  return grid_steps(grids_, at_, along_, low, high, kMost);
}

} // namespace deepgen
