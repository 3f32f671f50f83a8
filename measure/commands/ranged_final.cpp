#include "measure/commands/ranged_final.h"

#include "base/kernel/kernel_call.h"
#include "base/search/ranged_decision.h"
#include "base/search/tune_points_json.h"
#include "measure/race/statistics.h"
#include "measure/race/two_regimes.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace deepgen {
namespace {

// Shares of the time, and rounds.
constexpr double kFinals = 0.47, kDoubts = 0.12, kBorders = 0.11, kHoldout = 0.3;
// Sizes between those of the finals that are measured after all: so many times so many. The second time those
// that the first has left doubtful, or made so.
constexpr size_t kDoubtTurns = 2, kDoubtfulSizes = 5;
constexpr int kFewestRounds = 5, kFewestOfBorders = 3, kBisections = 4, kStepBisections = 4;
constexpr int64_t kNear = 8; ///< borders are found to an eighth of their size, unless steps are known
// In bursts, at each point: of the finalists the best so many beside the default, and the vendor's best.
constexpr size_t kBestInBursts = 4;
constexpr int kPointBurstRounds = 3, kHoldoutBurstRounds = 5;
constexpr double kPointBurstSeconds = 0.6;
constexpr double kHopeless = 3; ///< times as slow as the anchor: no point's best, however it is timed

class RangedFinal {
public:
  RangedFinal(const RangedContest& c, Progress& progress, std::vector<ArmResult>& samples)
      : contest_(c), all_(final_points(c.points, wants_dense_points(c.problem, c.arch, c.points)).at),
        progress_(progress), samples_(samples) {
    log_.records = c.finalists;
    log_.environment["tune_at"] = tune_points_json(c.points);
    log_.environment["anchor"] = c.has_default ? "default" : "none";
    if (c.regime != TunedFor::sustained) log_.environment["regime"] = to_string(c.regime);
  }

  RecordLog run() {
    time_finalists();
    time_doubtful();
    RangedDecision chosen = decide_ranges(contest_.problem, log_);
    measure_borders(chosen);
    time_chosen(chosen);
    if (clean_share(samples_) < contest_.clean_enough) unstable("too few samples were undisturbed");
    if (dropped_share(samples_) > kMostDropped) unstable("the device throttled in too many rounds");
    return std::move(log_);
  }

private:
  const RangedContest& contest_;
  const std::vector<Sizes> all_; ///< where finalists are timed
  Progress& progress_;
  std::vector<ArmResult>& samples_;
  RecordLog log_;
  std::set<std::string> told_; ///< of the vendor

  void unstable(const std::string& why) {
    log_.stable = false;
    if (!log_.environment.contains("unstable")) log_.environment["unstable"] = why;
  }

  RaceOptions options_of(SizedField& field, double seconds) {
    RaceOptions options = contest_.options;
    options.deadline = wall_seconds() + seconds;
    field.complete(options, samples_.empty() ? Heat::brief : Heat::kept);
    return options;
  }

  /// `others`: arms that are dropped where they are hopeless.
  std::vector<ArmResult> race(SizedField& field, const std::vector<Arm>& arms, int fewest, double seconds,
                              const Cut& others = {}) {
    RaceOptions options = options_of(field, seconds);
    options.hopeless = {others.from, others.to, kHopeless};
    const std::vector<ArmResult> results = full_race(arms, fewest, options.most_rounds, options, progress_);
    samples_.insert(samples_.end(), results.begin(), results.end());
    return results;
  }

  /// Balanced: then the best `most` of the arms from..to - 1 in bursts, with the others.
  InTwo race_in_regimes(SizedField& field, const std::vector<Arm>& arms, double seconds, const Cut& group,
                        int rounds) {
    if (contest_.regime != TunedFor::balanced) return {race(field, arms, kFewestRounds, seconds, group), {}};
    Bursts bursts{{}, {group}, rounds, 0, kPointBurstSeconds};
    for (const Arm& arm : arms) bursts.arms.push_back(in_regime(arm, Regime::bursts));
    RaceOptions options = options_of(field, seconds + kPointBurstSeconds);
    options.hopeless = {group.from, group.to, kHopeless};
    InTwo results = full_in_two(arms, bursts, kFewestRounds, options, progress_);
    samples_.insert(samples_.end(), results.first.begin(), results.first.end());
    return results;
  }

  /// The good ones, the default first where it is good.
  std::vector<size_t> running() const {
    std::vector<size_t> list;
    for (size_t i = 0; i < log_.records.size(); ++i)
      if (log_.records[i].ok()) list.push_back(i);
    return list;
  }
  const Kernel& kernel(size_t i) const { return *contest_.kernels[i]; }
  std::string name(size_t i) const { return log_.records[i].choice.text(); }
  bool is_default(size_t i) const { return contest_.has_default && i == 0; }

  /// All over again without what fails: ratios of all points are to one kernel, and a decision needs all.
  void time_finalists() {
    for (size_t before = 0; before != running().size();) {
      before = running().size();
      time_running();
    }
    for (Record& r : log_.records)
      if (r.ok() && !r.points.empty()) r.timing = mean_timing(r.points);
  }

  void time_running() {
    const std::vector<size_t> list = running();
    for (size_t i : list) log_.records[i].points.clear();
    std::vector<double> noise, in_bursts;
    for (const Sizes& at : all_) {
      if (running() != list || list.empty()) return;
      const auto field = contest_.field(at, false);
      std::vector<Arm> arms;
      for (size_t i : list) arms.push_back(field->kernel_arm(name(i), kernel(i)));
      arms.push_back(field->kernel_arm("the anchor again", kernel(list.front())));
      const InTwo results = race_in_regimes(*field, arms, kFinals * contest_.seconds / double(all_.size()),
                                            {1, list.size(), 0, kBestInBursts}, kPointBurstRounds);
      keep(list, results, at);
      note_noise(results.first, noise);
      note_noise(results.bursts, in_bursts);
    }
    log_.noise_floor = std::max(contest_.least_noise, upper_quartile(noise));
    if (noise.size() < all_.size()) unstable("the noise is unknown at some points");
    if (contest_.regime != TunedFor::balanced) return;
    log_.environment["finals"]["bursts"] = {{"noise_floor", upper_quartile(in_bursts)}};
    if (in_bursts.size() < all_.size()) unstable("the noise in bursts is unknown at some points");
  }

  /// Of the first arm, beside itself as the last one.
  static void note_noise(const std::vector<ArmResult>& results, std::vector<double>& noise) {
    if (!results.empty() && results.front().timed() && results.back().timed())
      noise.push_back(std::abs(std::expm1(median(log_ratios(results.back(), results.front())))));
  }
  /// Over the points: one that was disturbed does not hide all gains.
  static double upper_quartile(std::vector<double> noise) {
    std::sort(noise.begin(), noise.end());
    return noise.empty() ? 0 : noise[3 * noise.size() / 4];
  }

  /// `to`: points, or what is between them.
  void keep(const std::vector<size_t>& list, const InTwo& results, const Sizes& at,
            std::vector<PointTiming> Record::* to = &Record::points) {
    const std::vector<ArmResult>& first = results.first;
    for (size_t i = 0; i < list.size(); ++i) {
      Record& r = log_.records[list[i]];
      if (first[i].timed() && first[0].timed())
        (r.*to).push_back({at, summarize(first[i], first[0], contest_.options.seed)});
      else if (!first[i].failure.empty())
        r.status = first[i].failure, r.detail = "while it was timed: " + first[i].detail;
      if (results.bursts.empty() || !r.ok() || (r.*to).empty() || !((r.*to).back().at == at)) continue;
      const ArmResult &own = results.bursts[i], &anchor = results.bursts[0];
      if (own.timed() && anchor.timed())
        (r.*to).back().bursts = summarize(own, anchor, contest_.options.seed);
      else if (!own.failure.empty())
        r.status = own.failure, r.detail = "while it was timed in bursts: " + own.detail;
    }
  }

  /// Where predictions leave open who is the best: those who may be, beside the anchor.
  void time_doubtful() {
    if (!log_.stable) return;
    for (size_t turn = 0; turn < kDoubtTurns; ++turn) {
      const std::vector<DoubtfulSize> sizes = doubtful_sizes(contest_.problem, log_, kDoubtfulSizes);
      const double seconds =
          kDoubts * contest_.seconds / double(kDoubtTurns * std::max<size_t>(1, sizes.size()));
      for (const DoubtfulSize& size : sizes) {
        std::vector<size_t> list = {running().front()};
        for (const std::string& sha256 : size.kernels)
          if (const size_t i = finalist(sha256); i != list.front() && log_.records[i].ok()) list.push_back(i);
        const auto field = contest_.field(size.at, false);
        std::vector<Arm> arms;
        for (size_t i : list) arms.push_back(field->kernel_arm(name(i), kernel(i)));
        keep(list,
             race_in_regimes(*field, arms, seconds, {1, list.size(), 0, kBestInBursts}, kPointBurstRounds),
             size.at, &Record::between);
      }
    }
  }

  size_t finalist(const std::string& sha256) const {
    for (size_t i = 0; i < log_.records.size(); ++i)
      if (log_.records[i].sha256 == sha256) return i;
    return 0; // a decision names what the log has
  }

  /// Where two kernels whose parts meet are equally fast, unless that is known to be at a step.
  void measure_borders(RangedDecision& d) {
    std::erase_if(d.borders, [](const RangedBorder& b) { return b.known; });
    if (d.borders.empty()) return;
    const double seconds = kBorders * contest_.seconds / double(d.borders.size() * kBisections);
    std::vector<Border> measured;
    for (const RangedBorder& wanted : d.borders) {
      Border b{wanted.before, wanted.after, bisect(wanted, seconds)};
      if (count_ranges(contest_.problem) > 1) b.size = wanted.size, b.at = wanted.at;
      measured.push_back(std::move(b));
    }
    log_.environment["borders"] = to_json(measured);
    d = decide_ranges(contest_.problem, log_);
  }

  int64_t bisect(const RangedBorder& wanted, double seconds) {
    const std::vector<int64_t> steps =
        steps_between(kernel(finalist(wanted.before)), wanted.at, wanted.size, wanted.low, wanted.high);
    if (!steps.empty()) return bisect(wanted, steps, seconds);
    int64_t low = wanted.low, high = wanted.high;
    for (int step = 0; step < kBisections && (high - low) * kNear > high; ++step) {
      const int64_t middle = std::llround(std::sqrt(double(low) * double(high)));
      if (middle <= low || middle >= high) break;
      const double lead = lead_at(wanted, middle, seconds);
      (lead > 0 ? high : low) = middle;
      if (std::abs(lead) <= log_.noise_floor) break; // one is as good as the other around here
    }
    return high;
  }

  /// Between two steps nothing changes that only one of them could gain by: the first step at which the
  /// second is faster, or the border's upper side.
  int64_t bisect(const RangedBorder& wanted, const std::vector<int64_t>& steps, double seconds) {
    size_t low = 0, high = steps.size(); // slower before `low`, faster from `high` on
    for (int i = 0; i < kStepBisections && low < high; ++i) {
      const size_t middle = low + (high - low) / 2;
      if (lead_at(wanted, steps[middle], seconds) > 0)
        high = middle;
      else
        low = middle + 1;
    }
    return high < steps.size() ? steps[high] : wanted.high;
  }

  double lead_at(const RangedBorder& wanted, int64_t size, double seconds) {
    Sizes at = wanted.at;
    at[wanted.size] = size;
    return lead_of(wanted.after, wanted.before, at, seconds);
  }

  /// By how much the second one is faster (log); minus infinity where one of them could not be timed.
  double lead_of(const std::string& after, const std::string& before, const Sizes& at, double seconds) {
    const auto field = contest_.field(at, false);
    const size_t x = finalist(before), y = finalist(after);
    const auto results =
        race(*field, {field->kernel_arm(name(x), kernel(x)), field->kernel_arm(name(y), kernel(y))},
             kFewestOfBorders, seconds);
    return results[0].timed() && results[1].timed() ? -median(log_ratios(results[1], results[0]))
                                                    : -std::numeric_limits<double>::infinity();
  }

  /// Each point's kernel, the default and the vendor, in processes of their own.
  void time_chosen(const RangedDecision& d) {
    if (!d.found) return;
    const std::vector<Sizes>& points = contest_.points.at;
    std::vector<RangedHoldout> holdout;
    for (const Sizes& at : points) {
      const auto part = std::find_if(d.parts.begin(), d.parts.end(),
                                     [&](const RangedWinner& w) { return w.taken.holds(at); });
      if (part == d.parts.end()) continue;
      const size_t chosen = finalist(part->record.sha256);
      const auto field = contest_.field(at, true);
      if (!field->vendor_name().empty()) log_.environment["vendor_name"] = field->vendor_name();
      tell_vendor(*field, at);
      std::vector<Arm> arms = {field->kernel_arm(name(chosen), kernel(chosen))};
      const bool beside = contest_.has_default && !is_default(chosen) && log_.records[0].ok();
      if (beside) arms.push_back(field->kernel_arm(name(0), kernel(0)));
      const size_t vendors = arms.size();
      for (Arm& arm : field->vendor_arms()) arms.push_back(std::move(arm));
      const InTwo results = race_in_regimes(*field, arms, kHoldout * contest_.seconds / double(points.size()),
                                            {vendors, arms.size(), 0, 1}, kHoldoutBurstRounds);
      const auto timed = [&](const std::vector<ArmResult>& all) {
        return all.empty() || (all[0].timed() && (!beside || all[1].timed()));
      };
      if (!timed(results.first) || !timed(results.bursts)) {
        unstable("a chosen kernel could not be timed again");
        continue;
      }
      RangedHoldout h{at, part->record.sha256, held_out(results.first, beside, vendors)};
      if (!results.bursts.empty()) h.bursts = held_out(results.bursts, beside, vendors);
      holdout.push_back(std::move(h));
    }
    log_.environment["points"] = to_json(holdout);
  }

  /// Most points have the same to say, and say it once.
  void tell_vendor(const SizedField& field, const Sizes& at) {
    for (const std::string& note : field.vendor_notes())
      if (told_.insert(note).second) progress_.summary(sizes_text(contest_.problem, at) + ": " + note);
  }

  HeldOut held_out(const std::vector<ArmResult>& results, bool beside, size_t vendors) const {
    const Timing t = summarize(results[0], results[beside ? 1 : 0], contest_.options.seed);
    HeldOut h{t.seconds, t.ratio, t.low, t.high, 0};
    for (size_t i = vendors; i < results.size(); ++i) {
      if (!results[i].timed()) continue;
      const double ratio = std::exp(median(log_ratios(results[i], results[0])));
      if (h.vendor == 0 || ratio < h.vendor) h.vendor = ratio;
    }
    return h;
  }
};

} // namespace

RecordLog run_ranged_contest(const RangedContest& c, Progress& progress, std::vector<ArmResult>& samples) {
  return RangedFinal(c, progress, samples).run();
}

} // namespace deepgen
