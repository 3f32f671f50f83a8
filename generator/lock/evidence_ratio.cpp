#include "generator/lock/evidence_ratio.h"

#include "base/ranges/crossover.h"
#include "base/search/decide.h"
#include "generator/lock/ranged_entry.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <map>

namespace deepgen {
namespace {

using Interval = std::array<double, 3>;

std::string vendor_of(const Json& evidence) {
  if (!evidence.is_object() || !evidence.contains("vendor")) return "";
  const Json& vendor = evidence["vendor"];
  return vendor.is_array() && vendor.size() == 2 && vendor[0].is_string() ? vendor[0].get<std::string>() : "";
}

bool all_positive(const Interval& x) { return x[0] > 0 && x[1] > 0 && x[2] > 0; }

EvidenceRatio divided(const Interval& x, const Interval& y) {
  return {x[0] / y[2], x[1] / y[1], x[2] / y[0], 0, 0, ""};
}

double noise_of(const LockEntry& x, const LockEntry& y) {
  return threshold_of(std::max(find_in<double>(x.evidence, "noise_floor").value_or(0),
                               find_in<double>(y.evidence, "noise_floor").value_or(0)));
}

/// A field that only some devices have says something where both have it.
template <typename T>
bool differ(const LockEntry& x, const LockEntry& y, const char* key) {
  const auto a = find_in<T>(x.evidence, key), b = find_in<T>(y.evidence, key);
  return a && b && *a != *b;
}

/// Of one that says nothing, as all of CPUs and of earlier versions: sustained.
std::string regime_of(const LockEntry& e) {
  return find_in<std::string>(e.evidence, "regime").value_or("sustained");
}

std::string why_not_comparable(const LockEntry& x, const LockEntry& y) {
  if (x.problem != y.problem || x.arch != y.arch) return "they are of different problems";
  if (x.device.name != y.device.name || x.device.isa != y.device.isa)
    return "they were measured on different devices";
  if (regime_of(x) != regime_of(y)) return "they were tuned for calls that follow each other differently";
  if (differ<std::string>(x, y, "profile")) return "they were measured in different ways";
  if (differ<double>(x, y, "power_limit_watts")) return "their devices had different power limits";
  return "";
}

using BySize = std::map<std::array<int64_t, size_count>, EvidencePoint>;

BySize by_size(const Json& evidence) {
  BySize out;
  for (const EvidencePoint& one : evidence_points(evidence))
    out[{one.at.m, one.at.n, one.at.k, one.at.batch}] = one;
  return out;
}

/// Geometric means of intervals.
struct MeanOfSizes {
  double sum[3] = {0, 0, 0}, weight = 0, worst = 0;
  size_t sizes = 0;
  void add(const Interval& x, const Interval& y, double of) {
    const EvidenceRatio r = divided(x, y);
    const double ends[] = {r.low, r.ratio, r.high};
    for (size_t i = 0; i < 3; ++i) sum[i] += of * std::log(ends[i]);
    weight += of, ++sizes, worst = std::max(worst, r.ratio);
  }
  EvidenceRatio mean() const {
    return {std::exp(sum[0] / weight), std::exp(sum[1] / weight), std::exp(sum[2] / weight), 0, worst, ""};
  }
};

Interval around(double ratio, double noise) { return {ratio / (1 + noise), ratio, ratio * (1 + noise)}; }

/// One default is that of the same largest size.
std::optional<EvidenceRatio> ratio_by_size(const LockEntry& x, const LockEntry& y) {
  const BySize a = by_size(x.evidence), b = by_size(y.evidence);
  if (a.empty() || b.empty()) return std::nullopt;
  const auto vendor = find_in<std::string>(x.evidence, "vendor_name");
  const bool one_vendor = vendor && vendor == find_in<std::string>(y.evidence, "vendor_name"),
             one_default = x.toolchain == y.toolchain && a.rbegin()->first == b.rbegin()->first;
  const double noise = noise_of(x, y);
  MeanOfSizes by_vendor, by_default;
  for (const auto& [at, mine] : a) {
    const auto found = b.find(at);
    if (found == b.end()) continue;
    const EvidencePoint& other = found->second;
    if (one_vendor && mine.vendor > 0 && other.vendor > 0)
      by_vendor.add(around(1 / mine.vendor, noise / 2), around(1 / other.vendor, noise / 2), mine.weight);
    if (one_default && all_positive(mine.ratio) && all_positive(other.ratio))
      by_default.add(mine.ratio, other.ratio, mine.weight);
  }
  const auto enough = [&](const MeanOfSizes& m) {
    return m.weight > 0 && 2 * m.sizes >= a.size() && 2 * m.sizes >= b.size();
  };
  if (!enough(by_vendor) && !enough(by_default)) return std::nullopt;
  EvidenceRatio r = enough(by_vendor) ? by_vendor.mean() : by_default.mean();
  r.noise = noise;
  r.reference = (enough(by_vendor) ? *vendor : "the default config") + ", at " +
                std::to_string(enough(by_vendor) ? by_vendor.sizes : by_default.sizes) + " sizes";
  return r;
}

} // namespace

bool is_win(const EvidenceRatio& r) {
  return verdict(r.low, r.high, r.noise) == "win" && r.worst <= 1 + CrossoverRules().most_regret + r.noise;
}

std::optional<EvidenceRatio> ratio_of(const LockEntry& x, const LockEntry& y) {
  if (!why_not_comparable(x, y).empty()) return std::nullopt;
  if (!by_size(x.evidence).empty() || !by_size(y.evidence).empty()) return ratio_by_size(x, y);
  std::optional<EvidenceRatio> found;
  const auto take = [&](const char* key, const std::string& reference) {
    const auto a = find_in<Interval>(x.evidence, key), b = find_in<Interval>(y.evidence, key);
    if (found || !a || !b || !all_positive(*a) || !all_positive(*b)) return;
    found = divided(*a, *b);
    found->reference = reference, found->noise = noise_of(x, y);
  };
  const std::string vendor = vendor_of(x.evidence);
  if (!vendor.empty() && vendor == vendor_of(y.evidence)) take("vendor_ratio", vendor);
  if (x.toolchain == y.toolchain) take("ratio", "the default config"); // one toolchain has one default
  return found;
}

std::optional<EvidenceRatio> ratio_to_vendor(const LockEntry& e) {
  const auto ratio = find_in<Interval>(e.evidence, "vendor_ratio");
  const std::string vendor = vendor_of(e.evidence);
  if (!ratio || !all_positive(*ratio) || vendor.empty()) return std::nullopt;
  return EvidenceRatio{(*ratio)[0], (*ratio)[1], (*ratio)[2], noise_of(e, e), 0, vendor};
}

std::string why_no_ratio(const LockEntry& x, const LockEntry& y) {
  if (const std::string why = why_not_comparable(x, y); !why.empty()) return why;
  if (!by_size(x.evidence).empty() && !by_size(y.evidence).empty())
    return "they were measured at different sizes, or there against nothing in common: neither one vendor "
           "library's version, nor one toolchain's default config";
  return "nothing that both were measured against: neither one vendor library's version, nor one toolchain's "
         "default config";
}

std::string text_of(const EvidenceRatio& r) {
  char text[100];
  std::snprintf(text, sizeof text, "%.3fx as fast [%.3f, %.3f], by ", 1 / r.ratio, 1 / r.high, 1 / r.low);
  std::string all = text + r.reference;
  if (r.worst > 0) {
    std::snprintf(text, sizeof text, ", %.3fx at the worst", 1 / r.worst);
    all += text;
  }
  return all;
}

} // namespace deepgen
