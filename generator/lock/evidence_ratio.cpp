#include "generator/lock/evidence_ratio.h"

#include "base/search/decide.h"

#include <array>
#include <cstdio>

namespace deepgen {
namespace {

using Interval = std::array<double, 3>;

/// The field, where it is one; evidence may be anything.
template <typename T>
std::optional<T> find_in(const Json& evidence, const char* key) {
  if (!evidence.is_object() || !evidence.contains(key) || !is_a<T>(evidence[key])) return std::nullopt;
  return evidence[key].get<T>();
}

std::string vendor_of(const Json& evidence) {
  if (!evidence.is_object() || !evidence.contains("vendor")) return "";
  const Json& vendor = evidence["vendor"];
  return vendor.is_array() && vendor.size() == 2 && vendor[0].is_string() ? vendor[0].get<std::string>() : "";
}

bool all_positive(const Interval& x) { return x[0] > 0 && x[1] > 0 && x[2] > 0; }

EvidenceRatio divided(const Interval& x, const Interval& y) {
  return {x[0] / y[2], x[1] / y[1], x[2] / y[0], 0, ""};
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

std::string why_not_comparable(const LockEntry& x, const LockEntry& y) {
  if (x.problem != y.problem || x.arch != y.arch) return "they are of different problems";
  if (x.device.name != y.device.name || x.device.isa != y.device.isa)
    return "they were measured on different devices";
  if (differ<std::string>(x, y, "profile")) return "they were measured in different ways";
  if (differ<double>(x, y, "power_limit_watts")) return "their devices had different power limits";
  return "";
}

} // namespace

std::optional<EvidenceRatio> ratio_of(const LockEntry& x, const LockEntry& y) {
  if (!why_not_comparable(x, y).empty()) return std::nullopt;
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
  return EvidenceRatio{(*ratio)[0], (*ratio)[1], (*ratio)[2], noise_of(e, e), vendor};
}

std::string why_no_ratio(const LockEntry& x, const LockEntry& y) {
  if (const std::string why = why_not_comparable(x, y); !why.empty()) return why;
  return "nothing that both were measured against: neither one vendor library's version, nor one toolchain's "
         "default config";
}

std::string text_of(const EvidenceRatio& r) {
  char text[100];
  std::snprintf(text, sizeof text, "%.3fx as fast [%.3f, %.3f], by ", 1 / r.ratio, 1 / r.high, 1 / r.low);
  return text + r.reference;
}

} // namespace deepgen
