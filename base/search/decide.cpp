#include "base/search/decide.h"

#include <algorithm>
#include <cstdio>
#include <map>
#include <tuple>

namespace deepgen {
namespace {

constexpr double kSmallestGain = 0.005;

std::string text(const char* format, double x, double y = 0, double z = 0) {
  char buffer[200];
  std::snprintf(buffer, sizeof buffer, format, x, y, z);
  return buffer;
}

bool timed_finalist(const Record& r) { return r.stage == "final" && r.ok() && r.timing && !r.is_vendor(); }

/// The fastest; among those within `noise` of it, the smallest.
const Record* best_of(const std::vector<const Record*>& arms, double noise, bool by_ratio) {
  auto value = [&](const Record* r) { return by_ratio ? r->timing->ratio : r->timing->seconds; };
  double best = value(arms.front());
  for (const Record* r : arms) best = std::min(best, value(r));
  const Record* chosen = nullptr;
  for (const Record* r : arms) {
    if (value(r) > best * (1 + noise)) continue;
    auto rank = [](const Record* x) { return std::tuple(x->workspace, x->code_bytes, x->choice.text()); };
    if (!chosen || rank(r) < rank(chosen)) chosen = r;
  }
  return chosen;
}

std::string what_became(const RecordLog& final) {
  std::map<std::string, int> counts;
  for (const Record& r : final.records)
    if (!r.is_vendor()) ++counts[r.status];
  std::string list;
  for (const auto& [status, count] : counts)
    list += (list.empty() ? "" : ", ") + std::to_string(count) + " " + status;
  return "no candidate was both correct and timed" +
         (list.empty() ? " (the log is empty)" : " (" + list + ")");
}

Decision take(const Record& winner, bool improved, double threshold, std::string reason) {
  return {true, winner, improved, threshold, std::move(reason)};
}

} // namespace

Decision decide_finals(const RecordLog& final) {
  const double threshold = threshold_of(final.noise_floor);
  const Record* incumbent = nullptr;
  std::string became_of_default = "is missing";
  std::vector<const Record*> others, beaters;
  for (const Record& r : final.records) {
    if (!timed_finalist(r)) {
      if (r.origin == "default") became_of_default = r.ok() ? "could not be timed" : "failed: " + r.status;
      continue;
    }
    if (r.origin == "default")
      incumbent = incumbent ? incumbent : &r;
    else
      others.push_back(&r);
  }
  if (!incumbent) {
    if (others.empty()) return {false, {}, false, threshold, what_became(final)};
    return take(*best_of(others, final.noise_floor, false), true, threshold,
                "the default config " + became_of_default);
  }
  if (!final.stable)
    return take(*incumbent, false, threshold, "the default stays: too much interference to decide");
  for (const Record* r : others)
    if (r->timing->high < 1 - threshold && r->choice != incumbent->choice) beaters.push_back(r);
  if (beaters.empty())
    return take(*incumbent, false, threshold,
                text("the default stays: nothing beats it by %.1f %%", 100 * threshold));
  const Record* best = best_of(beaters, final.noise_floor, true);
  const Timing& t = *best->timing;
  return take(*best, true, threshold,
              text("%.3fx vs default [%.3f, %.3f]", 1 / t.ratio, 1 / t.high, 1 / t.low));
}

Decision decide(const RecordLog& final) {
  Decision d = decide_finals(final);
  const Record *standard = nullptr, *again = nullptr;
  for (const Record& r : final.records) {
    if (r.stage != "holdout" || r.is_vendor() || !r.timing) continue;
    if (r.origin == "default") standard = &r;
    if (d.found && r.choice == d.winner.choice) again = &r;
  }
  if (!d.found || !again) return d;
  if (!d.improved || !standard) {
    d.winner = *again;
    return d;
  }
  const Timing& t = *again->timing;
  const bool clocks_agree = final.environment.value("/holdout/clocks"_json_pointer, "") != "ambiguous";
  const std::string measured = text("%.3fx vs default [%.3f, %.3f]", 1 / t.ratio, 1 / t.high, 1 / t.low);
  if (t.high < 1 && clocks_agree) return take(*again, true, d.threshold, measured);
  return take(*standard, false, d.threshold,
              "the default stays: a second process does not confirm what won the finals: " + measured +
                  (clocks_agree ? "" : ", at another clock"));
}

double threshold_of(double noise_floor) { return std::max(noise_floor, kSmallestGain); }

std::string verdict(double low, double high, double noise) {
  if (high < 1 - noise) return "win";
  if (low > 1 + noise) return "loss";
  return low >= 1 - noise && high <= 1 + noise ? "tie" : "AMBG";
}

const Record* vendor_record(const RecordLog& final) {
  for (const char* stage : {"holdout", "final"})
    for (const Record& r : final.records)
      if (r.stage == stage && r.is_vendor() && r.ok() && r.timing) return &r;
  return nullptr;
}

} // namespace deepgen
