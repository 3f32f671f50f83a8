#include "base/search/decide.h"

#include "base/kernel/regime.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>
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

bool is_balanced(const RecordLog& final) { return tuned_for(final.environment) == TunedFor::balanced; }

double noise_of_bursts(const RecordLog& final) {
  return final.environment.value("/finals/bursts/noise_floor"_json_pointer, 0.0);
}

/// A finalist as it is compared.
struct Contender {
  const Record* record;
  Timing timing; ///< over the regimes that decide
};

using Alike = std::vector<const Contender*>;

/// Those within `noise` of the least; all where a damaged log has no value that compares.
Alike near_least(const Alike& arms, double noise, const std::function<double(const Contender&)>& value) {
  double best = value(*arms.front());
  for (const Contender* c : arms) best = std::min(best, value(*c));
  Alike near;
  for (const Contender* c : arms)
    if (value(*c) <= best * (1 + noise)) near.push_back(c);
  return near.empty() ? arms : near;
}

/// The fastest, and what is within `noise` of it.
Alike best_of(const std::vector<Contender>& arms, double noise, bool by_ratio) {
  Alike all;
  for (const Contender& c : arms) all.push_back(&c);
  return near_least(all, noise,
                    [&](const Contender& c) { return by_ratio ? c.timing.ratio : c.timing.seconds; });
}

/// Of those alike: the best in serial calls, or within `noise` of it; of these the smallest.
const Contender& one_of(const Alike& alike, double noise) {
  const bool timed =
      std::all_of(alike.begin(), alike.end(), [](const Contender* c) { return c->record->serial; });
  const Alike left =
      timed ? near_least(alike, noise, [](const Contender& c) { return c.record->serial->ratio; }) : alike;
  const auto rank = [](const Contender* c) {
    return std::tuple(c->record->workspace, c->record->code_bytes, c->record->choice.text());
  };
  return **std::min_element(left.begin(), left.end(),
                            [&](const Contender* x, const Contender* y) { return rank(x) < rank(y); });
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

Decision take(const Contender& winner, bool improved, double threshold, std::string reason) {
  return {true,          *winner.record,         improved, threshold, std::move(reason),
          winner.timing, {winner.record->choice}};
}

std::string speed_text(const Contender& c) {
  const Timing& t = c.timing;
  std::string out = text("%.3fx vs default [%.3f, %.3f]", 1 / t.ratio, 1 / t.high, 1 / t.low);
  if (c.record->bursts)
    out +=
        text(" (sustained %.3fx, in bursts %.3fx)", 1 / c.record->timing->ratio, 1 / c.record->bursts->ratio);
  return out;
}

/// The best one of them, because it is faster.
Decision take_best(const std::vector<Contender>& arms, double noise, double threshold,
                   const std::string& why = "") {
  const Alike alike = best_of(arms, noise, true);
  const Contender& best = one_of(alike, noise);
  Decision d = take(best, true, threshold, speed_text(best) + why);
  d.alike.clear();
  for (const Contender* c : alike) d.alike.push_back(c->record->choice);
  return d;
}

const Record* vendor_of(const RecordLog& final, const char* stage) {
  for (const Record& r : final.records)
    if (r.stage == stage && r.is_vendor() && r.ok() && r.timing) return &r;
  return nullptr;
}

/// To the vendor, in one of the regimes that both were timed in, by more than the noise there.
bool loses(const Record& r, const Record& vendor, const RecordLog& final) {
  const auto behind = [](const Timing& x, const Timing& y, double noise) {
    return x.ratio > y.ratio * (1 + threshold_of(noise));
  };
  return behind(*r.timing, *vendor.timing, final.noise_floor) ||
         (r.bursts && vendor.bursts && behind(*r.bursts, *vendor.bursts, noise_of_bursts(final)));
}

/// Those of the log, the default first where it is good.
struct Finalists {
  std::vector<Contender> all;
  bool has_default = false;
  std::string became_of_default = "is missing";
};

Finalists finalists_in(const RecordLog& final) {
  Finalists f;
  for (const Record& r : final.records) {
    if (!timed_finalist(r)) {
      if (r.origin == "default") f.became_of_default = r.ok() ? "could not be timed" : "failed: " + r.status;
    } else if (r.origin != "default") {
      f.all.push_back({&r, *r.timing});
    } else if (!f.has_default) {
      f.all.insert(f.all.begin(), Contender{&r, *r.timing}), f.has_default = true;
    }
  }
  return f;
}

/// Over both regimes. Returns whether the default was left out for what it loses to the vendor.
bool balance(Finalists& f, const RecordLog& final) {
  const bool both = std::any_of(f.all.begin(), f.all.end(), [&](const Contender& c) {
    return c.record->bursts && (!f.has_default || c.record == f.all.front().record);
  });
  if (!both) return false;
  std::erase_if(f.all, [](const Contender& c) { return !c.record->bursts; });
  for (Contender& c : f.all) c.timing = over_regimes(*c.record->timing, c.record->bursts);
  const Record* vendor = vendor_of(final, "final");
  if (!vendor) return false;
  const auto lost = [&](const Contender& c) { return loses(*c.record, *vendor, final); };
  if (std::all_of(f.all.begin(), f.all.end(), lost)) return false;
  const bool without = f.has_default && lost(f.all.front());
  std::erase_if(f.all, lost);
  f.has_default &= !without;
  return without;
}

/// The hold-out's records of the default and of what the finals chose.
struct Again {
  std::optional<Contender> standard, winner;
};

Again held_out(const RecordLog& final, const Decision& d, bool both) {
  Again a;
  for (const Record& r : final.records) {
    if (r.stage != "holdout" || r.is_vendor() || !r.timing) continue;
    const Contender c{&r, both ? over_regimes(*r.timing, r.bursts) : *r.timing};
    if (r.origin == "default") a.standard = c;
    if (d.found && r.choice == d.winner.choice) a.winner = c;
  }
  return a;
}

} // namespace

Decision decide_finals(const RecordLog& final) {
  const double noise = noise_of(final), threshold = threshold_of(noise);
  Finalists f = finalists_in(final);
  if (!f.has_default) {
    if (f.all.empty()) return {false, {}, false, threshold, what_became(final)};
    if (is_balanced(final)) balance(f, final);
    return take(one_of(best_of(f.all, noise, false), noise), true, threshold,
                "the default config " + f.became_of_default);
  }
  const Contender standard = f.all.front();
  if (!final.stable)
    return take(standard, false, threshold, "the default stays: too much interference to decide");
  if (is_balanced(final) && balance(f, final))
    return take_best(f.all, noise, threshold, ", and the default loses to the vendor in a regime");
  const Contender incumbent = f.all.front();
  std::vector<Contender> beaters;
  for (const Contender& c : f.all)
    if (c.timing.high < 1 - threshold && c.record->choice != incumbent.record->choice) beaters.push_back(c);
  if (beaters.empty())
    return take(incumbent, false, threshold,
                text("the default stays: nothing beats it by %.1f %%", 100 * threshold));
  return take_best(beaters, noise, threshold);
}

Decision decide(const RecordLog& final) {
  const Decision d = decide_finals(final);
  const bool both = is_balanced(final);
  const auto [standard, again] = held_out(final, d, both);
  if (!d.found || !again) return d;
  if (!d.improved || !standard) return take(*again, d.improved, d.threshold, d.reason);
  const std::string measured = speed_text(*again);
  const bool whole = !both || (again->record->bursts && standard->record->bursts);
  const bool clocks_agree = final.environment.value("/holdout/clocks"_json_pointer, "") != "ambiguous";
  if (whole && again->timing.high < 1 && clocks_agree) return take(*again, true, d.threshold, measured);
  const Record* vendor = both ? vendor_of(final, "holdout") : nullptr;
  if (whole && vendor && loses(*standard->record, *vendor, final) && !loses(*again->record, *vendor, final))
    return take(*again, true, d.threshold, measured + ", and the default loses to the vendor in a regime");
  return take(*standard, false, d.threshold,
              "the default stays: a second process does not confirm what won the finals: " + measured +
                  (!whole         ? ", and not in both regimes"
                   : clocks_agree ? ""
                                  : ", at another clock"));
}

double threshold_of(double noise_floor) { return std::max(noise_floor, kSmallestGain); }

double noise_of(const RecordLog& final) {
  if (!is_balanced(final)) return final.noise_floor;
  return std::sqrt((1 + final.noise_floor) * (1 + noise_of_bursts(final))) - 1;
}

std::string verdict(double low, double high, double noise) {
  if (high < 1 - noise) return "win";
  if (low > 1 + noise) return "loss";
  return low >= 1 - noise && high <= 1 + noise ? "tie" : "AMBG";
}

const Record* vendor_record(const RecordLog& final) {
  for (const char* stage : {"holdout", "final"})
    if (const Record* r = vendor_of(final, stage)) return r;
  return nullptr;
}

} // namespace deepgen
