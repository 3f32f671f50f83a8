#include "measure/race/contest.h"

#include "base/json/json.h"
#include "base/search/decide.h"
#include "measure/race/candidates.h"
#include "measure/race/statistics.h"

#include <algorithm>
#include <cmath>

namespace deepgen {
namespace {

constexpr double kFinalsShare = 0.65; ///< of the time
constexpr const char* kCutDetail = "behind the fastest of the finals after their first rounds";
constexpr double kSerialSeconds = 1; ///< of those alike, and at least
constexpr int kMostSerialRounds = 21;
constexpr double kSameClock = 0.01, kMostlyCapped = 0.5;

void fill(Record& record, const ArmResult& result, const ArmResult& anchor, uint64_t seed) {
  record.timing.reset();
  if (result.timed())
    record.timing = summarize(result, anchor, seed);
  else if (result.failure.empty())
    record.status = "dropped", record.detail = "the time was over before it was timed";
  else
    record.status = result.failure, record.detail = "while it was timed: " + result.detail;
}

/// `regime`: a member of a record, named `name`.
void fill_regime(Record& record, std::optional<Timing> Record::* regime, const char* name,
                 const ArmResult& result, const ArmResult& anchor, uint64_t seed) {
  (record.*regime).reset();
  if (!result.failure.empty())
    record.status = result.failure,
    record.detail = std::string("while it was timed in ") + name + ": " + result.detail;
  else if (result.timed() && anchor.timed())
    record.*regime = summarize(result, anchor, seed);
}
void fill_bursts(Record& record, const ArmResult& result, const ArmResult& anchor, uint64_t seed) {
  fill_regime(record, &Record::bursts, "bursts", result, anchor, seed);
}

/// With a ratio that compares with those that stayed.
void mark_cut(Record& record, const FinalsResult& f, size_t i, uint64_t seed) {
  record.status = "dropped", record.detail = kCutDetail;
  const ArmResult& anchor = f.finalists[f.anchor];
  std::vector<const ArmResult*> stayed;
  for (const ArmResult& other : f.finalists)
    if (&other != &anchor && other.timed() && !was_cut(other, anchor)) stayed.push_back(&other);
  const Interval ratio = ratio_by_way_of(stayed, f.finalists[i], anchor, seed);
  record.timing->ratio = finite(std::exp(ratio.middle));
  record.timing->low = finite(std::exp(ratio.low)), record.timing->high = finite(std::exp(ratio.high));
}

Record vendor_record(const Record& like, const Contest& c, const std::string& algorithm) {
  Record r;
  r.stage = like.stage;
  r.problem = like.problem;
  r.arch = like.arch;
  r.choice.template_name = "vendor";
  r.origin = c.vendor;
  r.detail = c.vendor_note + (c.vendor_note.empty() || algorithm.empty() ? "" : "; ") + algorithm;
  return r;
}

/// Cycles of samples whose clock is known.
ArmResult in_cycles(const ArmResult& arm) {
  ArmResult out;
  out.last_from = arm.last_from;
  for (auto [round, sample] : arm.rounds) {
    sample.seconds *= sample.megahertz;
    if (sample.megahertz > 0) out.rounds[round] = sample;
  }
  return out;
}

double median_clock(const ArmResult& arm) {
  std::vector<double> clocks;
  for (const auto& [round, sample] : arm.rounds)
    if (sample.megahertz > 0 && !sample.throttled) clocks.push_back(sample.megahertz);
  return median(clocks);
}

double capped_share(const ArmResult& arm) {
  double capped = 0;
  for (const auto& [round, sample] : arm.rounds) capped += sample.capped;
  return arm.rounds.empty() ? 0 : capped / double(arm.rounds.size());
}

/// Why nothing can be decided; empty when it can.
std::string why_unstable(const std::vector<ArmResult>& all, size_t noise_rounds, double clean_enough) {
  char text[120] = "";
  const double dropped = dropped_share(all), clean = clean_share(all);
  if (dropped > kMostDropped)
    std::snprintf(text, sizeof text, "the device throttled in %.0f %% of the rounds", 100 * dropped);
  else if (noise_rounds < kFewestForNoise)
    std::snprintf(text, sizeof text, "the noise could not be measured");
  else if (clean < clean_enough)
    std::snprintf(text, sizeof text, "the machine was too busy: %.0f %% of the samples were disturbed",
                  100 * (1 - clean));
  return text;
}

Json facts_of(const std::vector<ArmResult>& all, size_t rounds, double noise) {
  return {{"rounds", rounds},
          {"dropped", finite(dropped_share(all))},
          {"clean", finite(clean_share(all))},
          {"noise_floor", finite(noise)}};
}

Json interval(const Timing& t) { return {finite(t.low), finite(t.ratio), finite(t.high)}; }

/// The second regime of the finals; what it cannot decide is not decided.
void add_bursts(const Contest& c, const FinalsPart& bursts, size_t anchor, ContestResult& r) {
  const uint64_t seed = c.options.seed;
  RecordLog& log = r.log;
  for (size_t i = 0; i < c.finalists.size(); ++i)
    fill_bursts(log.records[i], bursts.finalists[i], bursts.finalists[anchor], seed);
  if (!c.vendor.empty() && log.records.back().ok())
    fill_bursts(log.records.back(), bursts.vendor, bursts.finalists[anchor], seed);
  const std::vector<double> noise = log_ratios(bursts.again, bursts.finalists[anchor]);
  const double floor = std::max(finite(noise_floor(noise)), c.least_noise);
  log.environment["finals"]["bursts"] = facts_of(bursts.all, noise.size(), floor);
  const std::string why = why_unstable(bursts.all, noise.size(), c.clean_enough);
  if (why.empty()) return;
  log.stable = false;
  if (!log.environment.contains("unstable")) log.environment["unstable"] = "in bursts: " + why;
}

void add_finals(const Contest& c, ContestResult& r) {
  const FinalsResult& f = r.finals;
  RecordLog& log = r.log;
  const uint64_t seed = c.options.seed;
  const bool any = f.anchor < c.finalists.size();
  for (size_t i = 0; i < c.finalists.size(); ++i) {
    log.records.push_back(c.finalists[i]);
    const ArmResult& anchor = f.finalists[any ? f.anchor : i];
    fill(log.records.back(), f.finalists[i], anchor, seed);
    if (was_cut(f.finalists[i], anchor)) mark_cut(log.records.back(), f, i, seed);
  }
  std::vector<double> noise;
  if (any) noise = log_ratios(f.again, f.finalists[f.anchor]);
  if (any && !c.vendor.empty()) {
    log.records.push_back(vendor_record(c.finalists.front(), c, ""));
    fill(log.records.back(), f.vendor, f.finalists[f.anchor], seed);
  }
  const double floor = finite(noise_floor(noise));
  log.noise_floor = noise.size() < kFewestForNoise ? 0 : std::max(floor, c.least_noise);
  // Without a noise floor nothing can be said to be faster.
  const std::string why = why_unstable(f.all, noise.size(), c.clean_enough);
  log.stable = why.empty();
  if (!log.stable) log.environment["unstable"] = why;
  log.environment["anchor"] =
      f.anchor == 0 && c.has_default ? "default" : "the default failed, instead: a finalist";
  log.environment["finals"] = facts_of(f.all, noise.size(), floor);
  if (c.regime != TunedFor::sustained) log.environment["regime"] = to_string(c.regime);
  if (f.bursts && any) add_bursts(c, *f.bursts, f.anchor, r);
}

bool has_serial(const Contest& c) {
  return c.regime == TunedFor::balanced &&
         std::find(c.extra.begin(), c.extra.end(), Regime::serial) != c.extra.end();
}

/// Times those in serial calls that both regimes leave alike, beside the anchor of the finals.
void add_serial(const Contest& c, const Field& field, const std::vector<Choice>& alike, RaceOptions options,
                Progress& progress, ContestResult& r) {
  const size_t anchor = r.finals.anchor;
  std::vector<size_t> who = {anchor};
  for (size_t i = 0; i < c.finalists.size(); ++i)
    if (i != anchor && std::find(alike.begin(), alike.end(), c.finalists[i].choice) != alike.end())
      who.push_back(i);
  std::vector<Arm> arms;
  for (size_t i : who) arms.push_back(in_regime(field.arm(i, ""), Regime::serial));
  options.deadline = wall_seconds() + kSerialSeconds;
  options.settle_seconds = c.settle_again;
  const std::vector<ArmResult> results =
      full_race(arms, kFewestSerialRounds, kMostSerialRounds, options, progress);
  for (size_t i = 0; i < who.size(); ++i)
    fill_regime(r.log.records[who[i]], &Record::serial, "serial calls", results[i], results[0],
                c.options.seed);
}

/// What the environment tells of the hold-out, and of its vendor.
Json facts_of_holdout(const Contest& c, const HoldoutResult& h, const std::string& algorithm,
                      double finals_floor) {
  const uint64_t seed = c.options.seed;
  const std::vector<double> pairs = log_ratios(h.again, h.anchor);
  Json facts = facts_of(h.all, pairs.size(), noise_floor(pairs));
  const double noise = threshold_of(std::max(finals_floor, facts.value("noise_floor", 0.0)));
  const ClockCheck clocks = check_clocks(h.winner, h.anchor, noise, seed);
  facts["verdict"] = verdict_of(h.winner, h.anchor, noise, seed);
  facts["clocks"] = clocks.kind == ClockCheck::ambiguous ? "ambiguous" : "comparable";
  if (clocks.megahertz > 0) {
    facts["clock_mhz"] = {std::round(clocks.megahertz), std::round(clocks.other)};
    facts["power_capped"] = clocks.capped;
  }
  if (!h.vendor.timed() || !h.winner.timed()) return facts;
  facts["vendor"] = {{"name", c.vendor},
                     {"algorithm", algorithm},
                     {"ratio", interval(summarize(h.winner, h.vendor, seed))},
                     {"verdict", verdict_of(h.winner, h.vendor, noise, seed)}};
  // The default takes the winner's place where the hold-out does not confirm that.
  if (h.anchor.timed()) {
    facts["vendor"]["default_ratio"] = interval(summarize(h.anchor, h.vendor, seed));
    facts["vendor"]["default_verdict"] = verdict_of(h.anchor, h.vendor, noise, seed);
  }
  return facts;
}

/// Of one of the chosen ones in a regime: against the default and the vendor in the same one.
Json facts_of_chosen(const Contest& c, size_t finalist, const ArmResult& arm, const ChosenResult& r,
                     double noise) {
  const uint64_t seed = c.options.seed;
  Json facts = {{"sha256", c.finalists[finalist].sha256}};
  if (!arm.timed()) {
    facts["failed"] = arm.failure + ": " + arm.detail;
    return facts;
  }
  facts["seconds"] = summarize(arm, arm, seed).seconds;
  if (const double clock = median_clock(arm); clock > 0)
    facts["clock_mhz"] = std::round(clock), facts["power_capped"] = capped_share(arm);
  if (r.anchor.timed()) facts["default"] = interval(summarize(arm, r.anchor, seed));
  if (!r.vendor.timed()) return facts;
  facts["vendor"] = interval(summarize(arm, r.vendor, seed));
  facts["verdict"] = verdict_of(arm, r.vendor, noise, seed);
  return facts;
}

/// Of one of the chosen ones over both regimes, against another one.
Timing in_both(const ArmResult& arm, const ArmResult& in_bursts, const ArmResult& other,
               const ArmResult& other_in_bursts, uint64_t seed) {
  return over_regimes(summarize(arm, other, seed), summarize(in_bursts, other_in_bursts, seed));
}

/// The means over both regimes, by which a balanced search is judged; null where one was not timed.
Json facts_of_balanced(const Contest& c, const HoldoutResult& h, const Json& finals) {
  const auto found = h.extra.find(Regime::bursts);
  if (found == h.extra.end()) return nullptr;
  const ChosenResult& b = found->second;
  const uint64_t seed = c.options.seed;
  const bool winner = h.winner.timed() && b.winner.timed(), standard = h.anchor.timed() && b.anchor.timed(),
             vendor = h.vendor.timed() && b.vendor.timed();
  if (!winner) return nullptr;
  const double sustained =
      std::max(finals.value("noise_floor", 0.0), noise_floor(log_ratios(h.again, h.anchor)));
  const double bursts = std::max(finals.value("/bursts/noise_floor"_json_pointer, 0.0),
                                 noise_floor(log_ratios(b.again, b.anchor)));
  const double noise = threshold_of(std::sqrt((1 + sustained) * (1 + bursts)) - 1);
  Json facts = Json::object();
  const auto judge = [&](const Timing& t, const char* ratio, const char* what) {
    facts[ratio] = interval(t), facts[what] = verdict(t.low, t.high, noise);
  };
  if (standard) judge(in_both(h.winner, b.winner, h.anchor, b.anchor, seed), "ratio", "verdict");
  if (vendor) judge(in_both(h.winner, b.winner, h.vendor, b.vendor, seed), "vendor_ratio", "vendor_verdict");
  // The default takes the winner's place where the hold-out does not confirm that.
  if (vendor && standard)
    judge(in_both(h.anchor, b.anchor, h.vendor, b.vendor, seed), "default_ratio", "default_verdict");
  return facts;
}

Json facts_of_regime(const Contest& c, size_t anchor, size_t winner, const ChosenResult& r) {
  const std::vector<double> pairs = log_ratios(r.again, r.anchor);
  Json facts = facts_of(r.all, pairs.size(), noise_floor(pairs));
  const double noise = threshold_of(std::max(c.least_noise, facts.value("noise_floor", 0.0)));
  facts["arms"] = Json::array({facts_of_chosen(c, anchor, r.anchor, r, noise)});
  if (winner != anchor) facts["arms"].push_back(facts_of_chosen(c, winner, r.winner, r, noise));
  if (r.vendor.timed()) facts["vendor_seconds"] = summarize(r.vendor, r.vendor, c.options.seed).seconds;
  if (const std::string why = why_unstable(r.all, pairs.size(), c.clean_enough); !why.empty())
    facts["unstable"] = why;
  return facts;
}

Regime first_regime(const Contest& c) {
  return c.regime == TunedFor::burst ? Regime::bursts : Regime::sustained;
}

/// With arms in the first regime.
Field field_of(const Contest& c) {
  Field field = c.field();
  if (c.regime != TunedFor::burst) return field;
  field.arm = [arm = field.arm](size_t i, const std::string& name) {
    return in_regime(arm(i, name), Regime::bursts);
  };
  for (Arm& arm : field.vendor_arms) arm = in_regime(arm, Regime::bursts);
  return field;
}

std::vector<Regime> extra_regimes(const Contest& c) {
  std::vector<Regime> extra = c.extra;
  const auto add = [&](Regime regime) {
    if (std::find(extra.begin(), extra.end(), regime) == extra.end()) extra.insert(extra.begin(), regime);
  };
  if (c.regime == TunedFor::balanced) add(Regime::bursts);
  if (c.regime == TunedFor::burst) add(Regime::sustained);
  return extra;
}

void add_holdout(const Contest& c, size_t anchor, size_t winner, const Field& field, const HoldoutResult& h,
                 ContestResult& r) {
  const uint64_t seed = c.options.seed;
  const auto second = c.regime == TunedFor::balanced ? h.extra.find(Regime::bursts) : h.extra.end();
  const ChosenResult* bursts = second == h.extra.end() ? nullptr : &second->second;
  const auto add = [&](const Record& like, ArmResult ChosenResult::* arm) {
    r.log.records.push_back(like);
    Record& record = r.log.records.back();
    record.stage = "holdout";
    fill(record, h.*arm, h.anchor.timed() ? h.anchor : h.*arm, seed);
    if (bursts) fill_bursts(record, bursts->*arm, bursts->anchor, seed);
  };
  add(c.finalists[anchor], &ChosenResult::anchor);
  if (winner != anchor) add(c.finalists[winner], &ChosenResult::winner);
  std::string algorithm;
  if (r.finals.vendor_arm) {
    if (field.vendor_arms.size() > 1) algorithm = field.vendor_arms[*r.finals.vendor_arm].name;
    add(vendor_record(c.finalists.front(), c, algorithm), &ChosenResult::vendor);
  }
  Json facts = facts_of_holdout(c, h, algorithm, r.log.noise_floor);
  facts["sha256"] = c.finalists[winner].sha256;
  for (const auto& [regime, result] : h.extra)
    facts["regimes"][to_string(regime)] = facts_of_regime(c, anchor, winner, result);
  if (c.regime != TunedFor::sustained)
    facts["regimes"][to_string(first_regime(c))] = facts_of_regime(c, anchor, winner, h);
  if (bursts)
    if (const Json both = facts_of_balanced(c, h, r.log.environment["finals"]); !both.is_null())
      facts["balanced"] = both;
  r.log.environment["holdout"] = facts;
  std::string why = why_unstable(h.all, facts.value("rounds", size_t(0)), c.clean_enough);
  if (bursts && why.empty()) why = facts["regimes"]["bursts"].value("unstable", "");
  if (!h.anchor.timed() || !h.winner.timed() ||
      (bursts && !(bursts->anchor.timed() && bursts->winner.timed())))
    why = "what the finals chose could not be timed again";
  if (why.empty()) return;
  r.log.stable = false;
  r.log.environment["unstable"] = "in the hold-out: " + why;
}

} // namespace

ClockCheck check_clocks(const ArmResult& arm, const ArmResult& other, double noise, uint64_t seed) {
  ClockCheck c;
  c.megahertz = median_clock(arm), c.other = median_clock(other);
  c.capped = std::max(capped_share(arm), capped_share(other));
  if (c.megahertz == 0 || c.other == 0 || std::fabs(c.megahertz / c.other - 1) <= kSameClock) return c;
  const Timing time = summarize(arm, other, seed);
  const Timing cycles = summarize(in_cycles(arm), in_cycles(other), seed);
  if (verdict(time.low, time.high, noise) == verdict(cycles.low, cycles.high, noise)) return c;
  c.kind = c.capped >= kMostlyCapped ? ClockCheck::power_limited : ClockCheck::ambiguous;
  return c;
}

std::string verdict_of(const ArmResult& arm, const ArmResult& other, double noise, uint64_t seed) {
  const Timing t = summarize(arm, other, seed);
  const std::string plain = verdict(t.low, t.high, noise);
  if (plain != "win" && plain != "loss") return plain;
  const ClockCheck clocks = check_clocks(arm, other, noise, seed);
  if (clocks.kind == ClockCheck::ambiguous) return "AMBG";
  return (clocks.kind == ClockCheck::power_limited ? "power-limited " : "") + plain;
}

ContestResult run_contest(const Contest& c, Progress& progress) {
  ContestResult r;
  RaceOptions options = c.options;
  Decision chosen;
  {
    const Field field = field_of(c);
    options.deadline = wall_seconds() + kFinalsShare * c.seconds;
    r.finals = run_finals(field, options, progress, c.least_noise, c.regime);
    r.samples = r.finals.all;
    add_finals(c, r);
    chosen = decide_finals(r.log);
    if (r.log.stable && chosen.alike.size() > 1 && has_serial(c)) {
      add_serial(c, field, chosen.alike, options, progress, r);
      chosen = decide_finals(r.log);
    }
  }
  if (!r.log.stable || !chosen.found) return r;
  size_t winner = r.finals.anchor;
  for (size_t i = 0; i < c.finalists.size(); ++i)
    if (c.finalists[i].choice == chosen.winner.choice) winner = i;
  // Where the default could not be timed, the winner is compared with nothing but itself and the vendor.
  const size_t anchor = c.has_default && r.finals.anchor == 0 ? 0 : winner;
  const Field field = field_of(c); // other memory, too
  options.deadline = wall_seconds() + (1 - kFinalsShare) * c.seconds;
  options.seed = c.options.seed + 1;
  options.settle_seconds = c.settle_again;
  const HoldoutResult h = run_holdout(field, anchor, winner, r.finals.vendor_arm, extra_regimes(c), options,
                                      progress, c.extra_rounds);
  r.samples.insert(r.samples.end(), h.all.begin(), h.all.end());
  add_holdout(c, anchor, winner, field, h, r);
  return r;
}

} // namespace deepgen
