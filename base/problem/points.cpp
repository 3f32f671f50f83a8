#include "base/problem/points.h"

#include "base/text/error.h"
#include "base/text/text.h"

#include <algorithm>
#include <cmath>
#include <tuple>
#include <utility>

namespace deepgen {
static_assert(kMostPoints == most_attention_calls);
namespace {

/// Evenly spaced ones, with both ends.
std::vector<int64_t> thinned(const std::vector<int64_t>& values, size_t count) {
  if (values.size() <= count) return values;
  std::vector<int64_t> out;
  for (size_t i = 0; i < count; ++i) out.push_back(values[i * (values.size() - 1) / (count - 1)]);
  return out;
}

std::vector<int64_t> ends_and_powers(int64_t least, int64_t most) {
  std::vector<int64_t> values = {std::max<int64_t>(least, 1)};
  for (int64_t power = 1; power < most; power *= 4)
    if (power > values.front()) values.push_back(power);
  if (values.back() != most) values.push_back(most);
  return values;
}

/// With a size that is no power between neighbours that are far enough from each other, and large enough for
/// several tiles. Batch entries are of no tiles.
std::vector<int64_t> with_ragged(const std::vector<int64_t>& values, Size size) {
  constexpr int64_t kTiles = 64;
  constexpr double kApart = 1.5, kGolden = 0.618;
  std::vector<int64_t> out;
  for (size_t i = 0; i < values.size(); ++i) {
    const int64_t low = i ? values[i - 1] : 0;
    if (const double apart = low ? double(values[i]) / double(low) : 0;
        size != Size::batch && low >= kTiles && apart > kApart)
      out.push_back(std::llround(double(low) * std::pow(apart, kGolden)));
    out.push_back(values[i]);
  }
  return out;
}

std::vector<int64_t> values_of(int64_t least, int64_t most, Size size, size_t count) {
  const std::vector<int64_t> all = ends_and_powers(least, most);
  for (size_t kept = std::min(count, all.size()); kept > 2; --kept)
    if (const auto values = with_ragged(thinned(all, kept), size); values.size() <= count) return values;
  return thinned(all, 2);
}

/// The i-th of `count`, spread over all values.
int64_t spread(const std::vector<int64_t>& values, size_t i, size_t count) {
  return values[count == 1 ? values.size() - 1 : i * (values.size() - 1) / (count - 1)];
}

auto rank_of(const Sizes& x) {
  return std::tuple(double(x.m) * double(x.n) * double(x.k) * double(x.batch), x.m, x.n, x.k);
}
bool before(const Sizes& x, const Sizes& y) { return rank_of(x) < rank_of(y); }

bool is_attention(const Problem& p) { return std::holds_alternative<Attention>(p.which()); }

/// In the order in which users name them.
std::vector<Size> ranges_of(const Problem& p) {
  if (is_attention(p) && p.ranged()) return {Size::batch, Size::m, Size::n};
  std::vector<Size> out;
  for (size_t i = 0; i < size_count; ++i)
    if (p.least(Size(i))) out.push_back(Size(i));
  return out;
}

/// "M from 1 to 8192"
std::string range_text(const Problem& p, Size size) {
  return size_text(p, size) + " from " + std::to_string(std::max<int64_t>(1, *p.least(size))) + " to " +
         std::to_string(p.sizes()[size]);
}

std::string allowed_text(const Problem& p) {
  std::string text;
  for (Size size : ranges_of(p)) text += (text.empty() ? "" : ", ") + range_text(p, size);
  return text + (ranges_of(p).size() > 1 ? ", with x between" : "");
}

/// A whole number without a sign or needless zeros.
std::optional<int64_t> count_of(const std::string& text) {
  if (text.empty() || text.size() > 10 || text.find_first_not_of("0123456789") != std::string::npos ||
      text[0] == '0')
    return std::nullopt;
  return std::stoll(text);
}

Sizes sizes_of(const Problem& p, const std::string& word, const std::string& where) {
  const std::vector<Size> ranges = ranges_of(p);
  const auto refuse = [&] {
    throw Error("'" + visible(word) + "' is no point of the ranges", where, p.key(),
                "write: " + allowed_text(p));
  };
  Sizes at = p.sizes();
  size_t begin = 0;
  for (size_t i = 0; i < ranges.size(); ++i) {
    const size_t end = i + 1 < ranges.size() ? word.find('x', begin) : word.size();
    if (end == std::string::npos) refuse();
    const std::optional<int64_t> value = count_of(word.substr(begin, end - begin));
    if (!value) refuse();
    at[ranges[i]] = *value;
    begin = end + 1;
  }
  if (!p.takes(at)) refuse();
  return at;
}

} // namespace

std::vector<Sizes> default_points(const Problem& p, size_t most) {
  if (is_attention(p)) return p.attention().calls;
  std::vector<std::pair<Size, std::vector<int64_t>>> ranges;
  for (Size size : ranges_of(p))
    ranges.push_back({size, values_of(*p.least(size), p.sizes()[size], size, most)});
  const size_t corners = ranges.size() > 1 ? ranges.size() : 0;
  size_t steps = 1;
  for (const auto& range : ranges) steps = std::max(steps, range.second.size());
  steps = std::min(steps, std::max<size_t>(most - std::min(most, corners), 2));
  std::vector<Sizes> points;
  for (size_t i = 0; i < steps; ++i) {
    Sizes at = p.sizes();
    for (const auto& [size, values] : ranges) at[size] = spread(values, i, steps);
    points.push_back(at);
  }
  for (size_t i = 0; i < corners; ++i) {
    Sizes at = p.sizes();
    at[ranges[i].first] = ranges[i].second.front();
    points.push_back(at);
  }
  return ascending(std::move(points));
}

std::vector<Sizes> ascending(std::vector<Sizes> points) {
  std::sort(points.begin(), points.end(), before);
  points.erase(std::unique(points.begin(), points.end()), points.end());
  return points;
}

TunePoints default_tune_points(const Problem& p) {
  TunePoints points;
  if (!p.ranged()) return points;
  points.at = default_points(p);
  points.weights.assign(points.at.size(), 1);
  return points;
}

void check_points(const Problem& p, const TunePoints& points, const std::string& where) {
  const auto refuse = [&](const std::string& what, const std::string& allowed) {
    throw Error(what, where, p.key(), allowed);
  };
  if (!p.ranged()) {
    if (points == TunePoints()) return;
    refuse("points are of problems with ranges, and this one has none",
           "give a size a range, such as 1..8192, or leave TUNE_AT, WEIGHTS and KERNELS out");
  }
  if (is_attention(p) && points.at != default_points(p))
    refuse("the points are not the calls of the problem's key", "those of its field 'at' (TUNE_AT)");
  if (points.at.empty() || points.at.size() > kMostPoints)
    refuse(std::to_string(points.at.size()) + " points", "1 to " + std::to_string(kMostPoints) + " points");
  for (size_t i = 0; i < points.at.size(); ++i) {
    const Sizes& at = points.at[i];
    if (!p.takes(at) || std::min({at.m, at.n, at.k, at.batch}) < 1)
      refuse("a point is not of the ranges", allowed_text(p));
    if (i && !before(points.at[i - 1], at))
      refuse("the point " + point_text(p, at) + " is there twice, or in no order", "each point once");
  }
  double sum = 0;
  for (double weight : points.weights) {
    if (!(weight >= 0 && weight <= 1e12)) refuse("a weight is no number from 0 to 10^12", "1 where in doubt");
    sum += weight;
  }
  if (points.weights.size() != points.at.size() || !(sum > 0))
    refuse(std::to_string(points.weights.size()) + " weights of " + std::to_string(points.at.size()) +
               " points, or all are 0",
           "as many WEIGHTS as TUNE_AT has points, one of them above 0");
  if (points.kernels < 1 || points.kernels > kMostKernels)
    refuse(std::to_string(points.kernels) + " kernels", "KERNELS from 1 to " + std::to_string(kMostKernels));
}

TunePoints tune_points(const Problem& p, const std::vector<std::string>& words,
                       const std::vector<double>& weights, size_t kernels, const std::string& where) {
  TunePoints points = default_tune_points(p);
  points.kernels = kernels;
  if (!words.empty()) {
    points.at.clear(), points.weights.clear();
    std::vector<std::pair<Sizes, double>> pairs;
    for (size_t i = 0; i < words.size(); ++i)
      pairs.push_back({sizes_of(p, words[i], where), i < weights.size() ? weights[i] : 1});
    std::stable_sort(pairs.begin(), pairs.end(),
                     [](const auto& x, const auto& y) { return before(x.first, y.first); });
    for (const auto& [at, weight] : pairs) points.at.push_back(at), points.weights.push_back(weight);
  }
  if (!weights.empty() && weights.size() != words.size())
    throw Error(std::to_string(weights.size()) + " weights of " + std::to_string(words.size()) + " points",
                where, p.key(), "as many WEIGHTS as TUNE_AT has points");
  check_points(p, points, where);
  return points;
}

std::string point_text(const Problem& p, const Sizes& at) {
  std::string text;
  for (Size size : ranges_of(p)) text += (text.empty() ? "" : "x") + std::to_string(at[size]);
  return text;
}

SizeSpan all_calls(const Problem& p) {
  SizeSpan all{p.sizes(), p.sizes()};
  for (Size size : ranges_of(p)) all.least[size] = *p.least(size);
  return all;
}

size_t count_ranges(const Problem& p) { return ranges_of(p).size(); }

std::string size_text(const Problem& p, Size size) {
  if (is_attention(p) && size == Size::m) return "queries";
  if (is_attention(p) && size == Size::n) return "keys";
  return size_names[size_t(size)];
}

std::string sizes_text(const Problem& p, const Sizes& at) {
  std::string text;
  for (Size size : ranges_of(p))
    text += (text.empty() ? "" : " ") + size_text(p, size) + "=" + std::to_string(at[size]);
  return text;
}

std::string span_text(const Problem& p, const SizeSpan& span) {
  std::string text;
  for (Size size : ranges_of(p))
    text += (text.empty() ? "" : ", ") + size_text(p, size) + " " + std::to_string(span.least[size]) + ".." +
            std::to_string(span.most[size]);
  return text;
}

std::optional<Size> split_size(const Problem& p) {
  const std::vector<Size> ranges = ranges_of(p);
  return ranges.empty() ? std::nullopt : std::optional(ranges.front());
}

namespace {

constexpr double kAbove = 1.1, kDense = 1.6;

/// The only one that differs.
std::optional<Size> between_of(const Sizes& from, const Sizes& to) {
  std::optional<Size> which;
  for (size_t s = 0; s < size_count; ++s) {
    if (from[Size(s)] == to[Size(s)]) continue;
    if (which) return std::nullopt;
    which = Size(s);
  }
  return which;
}

/// From the first on, so that each is at most kDense times the one before; without both ends.
void add_steps(double low, double high, std::vector<double>& out) {
  if (low < double(dense_from)) return;
  const int steps = int(std::ceil(std::log(high / low) / std::log(kDense) - 1e-9));
  for (int i = 1; i < steps; ++i) out.push_back(low * std::pow(high / low, double(i) / steps));
}

/// What lies between neighbours; ascending, perhaps with the ends.
struct PointsBetween {
  bool above;  ///< a little above the lower one
  bool middle; ///< also where nothing is dense
  bool dense;

  std::vector<Sizes> operator()(const Sizes& from, const Sizes& to) const {
    const std::optional<Size> which = between_of(from, to);
    if (!which) return {};
    const double low = double(from[*which]), high = double(to[*which]), mean = std::sqrt(low * high);
    std::vector<double> sizes;
    if (above) sizes.push_back(std::min(low * kAbove, mean));
    if (dense) add_steps(low, mean, sizes);
    if (middle || (low >= double(dense_from) && high > kDense * low)) sizes.push_back(mean);
    if (dense) add_steps(mean, high, sizes);
    std::vector<Sizes> out(sizes.size(), from);
    for (size_t i = 0; i < sizes.size(); ++i) out[i][*which] = std::llround(sizes[i]);
    return out;
  }
};

TunePoints with_between(const TunePoints& points, const PointsBetween& between) {
  TunePoints all;
  all.kernels = points.kernels;
  for (size_t i = 0; i < points.at.size(); ++i) {
    if (i)
      for (const Sizes& at : between(points.at[i - 1], points.at[i]))
        if (at != all.at.back() && at != points.at[i]) {
          all.at.push_back(at);
          all.weights.push_back((points.weights[i - 1] + points.weights[i]) / 2);
        }
    all.at.push_back(points.at[i]), all.weights.push_back(points.weights[i]);
  }
  return all;
}

} // namespace

TunePoints final_points(const TunePoints& points, bool dense) {
  return with_between(points, {true, true, dense});
}

bool wants_dense_points(const Problem& p, const std::string& arch, const TunePoints& points) {
  return arch != "cpu" && !is_attention(p) && points.at == default_points(p);
}

TunePoints dense_points(const TunePoints& points) { return with_between(points, {false, false, true}); }

} // namespace deepgen
