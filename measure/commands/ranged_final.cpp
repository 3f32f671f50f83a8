#include "measure/commands/ranged_final.h"

#include "base/kernel/kernel_call.h"
#include "base/search/ranged_decision.h"
#include "base/search/tune_points_json.h"
#include "measure/commands/ranged_borders.h"
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
constexpr int kFewestRounds = 5, kFewestOfBorders = 3;
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

  RaceOptions options_of(SizedField& field, bool first) const {
    RaceOptions options = contest_.options;
    field.complete(options, first ? Heat::brief : Heat::kept);
    return options;
  }

  /// Of sizes: the races at them, one after the other, in as few workers as can be. `plan` makes the race at
  /// a size; `heard` gets its results, and returns whether to go on. True when all were heard.
  template <typename Plan, typename Heard>
  bool race_all(size_t count, const Plan& plan, const Heard& heard) {
    std::vector<size_t> arms(count); // of the first regime
    const auto race = [&](size_t i) {
      Race r = plan(i);
      arms[i] = std::min(r.arms.size(), r.made);
      return r;
    };
    const auto done = [&](size_t i, const std::vector<ArmResult>& all) {
      const InTwo results = in_two(all, arms[i]);
      samples_.insert(samples_.end(), results.first.begin(), results.first.end());
      return bool(heard(i, results));
    };
    return run_series({count, race, done}, progress_) == count;
  }

  /// `others`: arms that are dropped where they are hopeless. `first`: nothing has warmed the device.
  Race plan_race(std::shared_ptr<SizedField> field, std::vector<Arm> arms, int fewest, double seconds,
                 bool first, const Cut& others = {}) const {
    RaceOptions options = options_of(*field, first);
    options.hopeless = {others.from, others.to, kHopeless};
    Race r = plan_full(std::move(arms), fewest, options.most_rounds, options);
    r.field = std::move(field), r.seconds = seconds;
    return r;
  }

  /// Balanced: then the best `most` of the arms from..to - 1 in bursts, with the others.
  Race plan_in_regimes(std::shared_ptr<SizedField> field, std::vector<Arm> arms, double seconds, bool first,
                       const Cut& group, int rounds) const {
    if (contest_.regime != TunedFor::balanced)
      return plan_race(std::move(field), std::move(arms), kFewestRounds, seconds, first, group);
    Bursts bursts{{}, {group}, rounds, 0, kPointBurstSeconds};
    for (const Arm& arm : arms) bursts.arms.push_back(in_regime(arm, Regime::bursts));
    RaceOptions options = options_of(*field, first);
    options.hopeless = {group.from, group.to, kHopeless};
    Race r = plan_full_in_two(arms, bursts, kFewestRounds, options);
    r.field = std::move(field), r.seconds = seconds + kPointBurstSeconds;
    return r;
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
    if (list.empty()) return;
    for (size_t i : list) log_.records[i].points.clear();
    std::vector<double> noise, in_bursts;
    const auto plan = [&](size_t i) {
      const std::shared_ptr<SizedField> field = contest_.field(all_[i], false);
      std::vector<Arm> arms = kernel_arms(*field, list);
      arms.push_back(field->kernel_arm("the anchor again", kernel(list.front())));
      return plan_in_regimes(field, std::move(arms), kFinals * contest_.seconds / double(all_.size()),
                             samples_.empty() && i == 0, {1, list.size(), 0, kBestInBursts},
                             kPointBurstRounds);
    };
    const auto heard = [&](size_t i, const InTwo& results) {
      keep(list, results, all_[i]);
      note_noise(results.first, noise);
      note_noise(results.bursts, in_bursts);
      return running() == list;
    };
    if (!race_all(all_.size(), plan, heard)) return;
    log_.noise_floor = std::max(contest_.least_noise, upper_quartile(noise));
    if (noise.size() < all_.size()) unstable("the noise is unknown at some points");
    if (contest_.regime != TunedFor::balanced) return;
    log_.environment["finals"]["bursts"] = {{"noise_floor", upper_quartile(in_bursts)}};
    if (in_bursts.size() < all_.size()) unstable("the noise in bursts is unknown at some points");
  }

  std::vector<Arm> kernel_arms(SizedField& field, const std::vector<size_t>& list) const {
    std::vector<Arm> arms;
    for (size_t i : list) arms.push_back(field.kernel_arm(name(i), kernel(i)));
    return arms;
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
      std::vector<std::vector<size_t>> lists(sizes.size());
      const auto plan = [&](size_t i) {
        lists[i] = who_may_be_best(sizes[i]);
        const std::shared_ptr<SizedField> field = contest_.field(sizes[i].at, false);
        return plan_in_regimes(field, kernel_arms(*field, lists[i]), seconds, false,
                               {1, lists[i].size(), 0, kBestInBursts}, kPointBurstRounds);
      };
      const auto heard = [&](size_t i, const InTwo& results) {
        keep(lists[i], results, sizes[i].at, &Record::between);
        return true;
      };
      race_all(sizes.size(), plan, heard);
    }
  }

  /// The anchor first; nobody where all have failed by now.
  std::vector<size_t> who_may_be_best(const DoubtfulSize& size) const {
    const std::vector<size_t> good = running();
    if (good.empty()) return {};
    std::vector<size_t> list = {good.front()};
    for (const std::string& sha256 : size.kernels)
      if (const size_t i = finalist(sha256); i != list.front() && log_.records[i].ok()) list.push_back(i);
    return list;
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
    std::vector<BorderSearch> searches;
    for (const RangedBorder& b : d.borders)
      searches.emplace_back(b, steps_between(kernel(finalist(b.before)), b.at, b.size, b.low, b.high),
                            log_.noise_floor);
    for (int turn = 0; turn < BorderSearch::turns; ++turn) compare_at_borders(d.borders, searches);
    std::vector<Border> measured;
    for (size_t i = 0; i < searches.size(); ++i) {
      const RangedBorder& wanted = d.borders[i];
      Border b{wanted.before, wanted.after, searches[i].found()};
      if (count_ranges(contest_.problem) > 1) b.size = wanted.size, b.at = wanted.at;
      measured.push_back(std::move(b));
    }
    log_.environment["borders"] = to_json(measured);
    d = decide_ranges(contest_.problem, log_);
  }

  /// Once at each border that is not found yet: what is next at one does not depend on the others.
  void compare_at_borders(const std::vector<RangedBorder>& borders, std::vector<BorderSearch>& searches) {
    const double seconds = kBorders * contest_.seconds / double(borders.size() * BorderSearch::turns);
    std::vector<size_t> open;
    for (size_t i = 0; i < searches.size(); ++i)
      if (searches[i].next()) open.push_back(i);
    const auto plan = [&](size_t i) {
      const RangedBorder& border = borders[open[i]];
      Sizes at = border.at;
      at[border.size] = *searches[open[i]].next();
      const std::shared_ptr<SizedField> field = contest_.field(at, false);
      return plan_race(field, kernel_arms(*field, {finalist(border.before), finalist(border.after)}),
                       kFewestOfBorders, seconds, false);
    };
    const auto heard = [&](size_t i, const InTwo& results) {
      searches[open[i]].tell(lead_of(results.first[1], results.first[0]));
      return true;
    };
    race_all(open.size(), plan, heard);
  }

  /// By how much the first one is faster (log); minus infinity where one of them could not be timed.
  static double lead_of(const ArmResult& after, const ArmResult& before) {
    return before.timed() && after.timed() ? -median(log_ratios(after, before))
                                           : -std::numeric_limits<double>::infinity();
  }

  /// What is timed at a point of the hold-out: the kernel that takes it, the default beside it, and from
  /// `vendors` on the vendor's arms.
  struct Chosen {
    Sizes at;
    const Record* record = nullptr;
    bool beside = false;
    size_t vendors = 0;
  };

  /// Each point's kernel, the default and the vendor, in a process of their own.
  void time_chosen(const RangedDecision& d) {
    if (!d.found) return;
    std::vector<Chosen> all;
    for (const Sizes& at : contest_.points.at) {
      const auto part = std::find_if(d.parts.begin(), d.parts.end(),
                                     [&](const RangedWinner& w) { return w.taken.holds(at); });
      if (part == d.parts.end()) continue;
      const bool is_other = !is_default(finalist(part->record.sha256));
      all.push_back({at, &part->record, contest_.has_default && is_other && log_.records[0].ok()});
    }
    const double seconds = kHoldout * contest_.seconds / double(contest_.points.at.size());
    std::vector<RangedHoldout> holdout;
    // The vendor's library is asked at all points first: the device cools meanwhile.
    const auto plan = [&](size_t i) { return plan_of_chosen(all[i], seconds, i == 0); };
    const auto heard = [&](size_t i, const InTwo& results) {
      const Chosen& c = all[i];
      const auto timed = [&](const std::vector<ArmResult>& r) {
        return r.empty() || (r[0].timed() && (!c.beside || r[1].timed()));
      };
      if (!timed(results.first) || !timed(results.bursts)) {
        unstable("a chosen kernel could not be timed again");
        return true;
      }
      RangedHoldout h{c.at, c.record->sha256, held_out(results.first, c.beside, c.vendors)};
      if (!results.bursts.empty()) h.bursts = held_out(results.bursts, c.beside, c.vendors);
      holdout.push_back(std::move(h));
      return true;
    };
    race_all(all.size(), plan, heard);
    log_.environment["points"] = to_json(holdout);
  }

  /// Most points have the same to say, and say it once.
  void tell_vendor(const SizedField& field, const Sizes& at) {
    for (const std::string& note : field.vendor_notes())
      if (told_.insert(note).second) progress_.summary(sizes_text(contest_.problem, at) + ": " + note);
  }

  Race plan_of_chosen(Chosen& c, double seconds, bool first) {
    const std::shared_ptr<SizedField> field = contest_.field(c.at, true);
    if (!field->vendor_name().empty()) log_.environment["vendor_name"] = field->vendor_name();
    tell_vendor(*field, c.at);
    std::vector<size_t> list = {finalist(c.record->sha256)};
    if (c.beside) list.push_back(0);
    std::vector<Arm> arms = kernel_arms(*field, list);
    c.vendors = arms.size();
    for (Arm& arm : field->vendor_arms()) arms.push_back(std::move(arm));
    const Cut group{c.vendors, arms.size(), 0, 1};
    return plan_in_regimes(field, std::move(arms), seconds, first, group, kHoldoutBurstRounds);
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
