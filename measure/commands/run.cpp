#include "measure/commands/run.h"

#include "base/files/files.h"
#include "base/files/locks.h"
#include "base/kernel/kernel_call.h"
#include "base/search/names.h"
#include "base/search/sum_orders.h"
#include "base/search/tune_points_json.h"
#include "base/text/error.h"
#include "measure/commands/environment.h"
#include "measure/commands/history.h"
#include "measure/commands/ranged_round.h"
#include "measure/commands/search_time.h"
#include "measure/commands/starters.h"
#include "measure/cpu/arms.h"
#include "measure/cpu/thread_call.h"
#include "measure/cpu/verify_all.h"
#include "measure/devices/cuda_take.h"
#include "measure/gpu/cuda_bench.h"
#include "measure/gpu/cuda_verify_all.h"
#include "measure/process/sandbox.h"
#include "measure/race/two_regimes.h"

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

namespace deepgen {
namespace {

/// Verification may use this much of the time; timing has what is left.
constexpr double kVerifyShare = 0.6;
constexpr const char *kNotVerified = "not verified within the time budget; raise --seconds",
                     *kNotTimed = "not timed within the time budget; raise --seconds";

struct Round {
  const RunCommand& command;
  Device device;
  TunedFor regime;
  Plan plan;
  std::vector<Candidate> candidates;
  std::optional<Candidate> anchor; ///< when it is not one of the candidates
  std::vector<Candidate> rivals;   ///< the best of earlier rounds
  Progress progress;
  Spent spent;
  /// On the clock of wall_seconds(), but for waiting since then: nothing runs any more.
  double end = std::numeric_limits<double>::infinity();

  explicit Round(const RunCommand& c)
      : command(c), device(Device::read(c.device)), regime(regime_on(device, c.options)),
        plan(Plan::read(c.plan)),
        progress((c.label.empty() ? "measure" : c.label + " on " + plan.arch + ",") + " r" +
                 std::to_string(plan.round)) {
    check_device(device, c.device, c.options.caches);
    if (plan.arch != device.arch)
      throw Error("the plan is for another arch than the device", c.plan,
                  "plan: " + plan.arch + ", device: " + device.arch, "plan again with this device");
    const int64_t isa = runnable_isa(device);
    candidates = load_candidates(plan, c.kernels, c.slots, c.output, isa);
    if (c.anchor.empty()) return;
    rivals = load_rivals(c.records, plan.problem, c.output, isa);
    anchor = load_candidate(c.anchor, c.output, isa);
    if (anchor->file.status != "empty" && anchor->file.problem != plan.problem)
      throw Error("the anchor is for another problem than the plan", c.anchor, anchor->file.problem.key(),
                  "pass slot 0 of round 0 of the same search");
    if (anchor->file.status == "empty") anchor.reset();
  }

  /// Those whose code no candidate has that is timed.
  std::vector<Candidate*> open_rivals(const std::vector<Candidate*>& timed) {
    std::vector<Candidate*> list;
    for (Candidate& r : rivals)
      if (std::none_of(timed.begin(), timed.end(),
                       [&](const Candidate* c) { return c->record.sha256 == r.record.sha256; }))
        list.push_back(&r);
    return list;
  }

  /// On nobody's account.
  void waited(double seconds) { spent.waiting += seconds, end += seconds; }

  /// Open ones, the anchor first.
  std::vector<Candidate*> open() {
    std::vector<Candidate*> list;
    if (anchor && anchor->open()) list.push_back(&*anchor);
    for (Candidate& c : candidates)
      if (c.open()) list.push_back(&c);
    return list;
  }
};

void verify_on_gpu(Round& round, const std::vector<Candidate*>& list, double start) {
  const MeasureOptions& o = round.command.options;
  cuda::VerifyOptions options;
  options.uuid = round.device.uuid;
  options.call_seconds = o.call_seconds;
  options.deadline = start + kVerifyShare * o.seconds;
  options.end = round.end;
  options.seed = o.seed;
  std::vector<const KernelFile*> files;
  for (Candidate* c : list) files.push_back(&c->file);
  round.progress.live("verifying");
  size_t next = cuda::verify_files(files, options, [&](size_t i, const Verdict& v) {
    list[i]->record.error = v.error, list[i]->record.row_bits = v.row_bits;
    if (v.status != "ok") list[i]->decide(v.status, v.detail);
    round.progress.live("verified " + std::to_string(i + 1) + "/" + std::to_string(files.size()));
  });
  for (; next < list.size(); ++next) list[next]->decide("dropped", kNotVerified);
}

void verify_on_cpu(Round& round, const std::vector<Candidate*>& list, double start) {
  const MeasureOptions& o = round.command.options;
  if (const sandbox::State state = sandbox::probe(); !state.complete())
    round.progress.summary("candidates run with less of a sandbox than DeepGen has: " + state.text());
  round.progress.live("computing the reference");
  const std::unique_ptr<CaseSet> cases = subject_of(round.plan.problem)->cases(o.seed);
  VerifyOptions options;
  options.device_isa = runnable_isa(round.device);
  options.call_seconds = o.call_seconds;
  options.deadline = start + kVerifyShare * o.seconds;
  options.end = round.end;
  options.seed = o.seed;
  verify_all(list, *cases, options, round.progress);
}

void verify(Round& round, EarlierRuns& history, double start) {
  const std::vector<Candidate*> list = history.unverified(round.open());
  if (!list.empty()) {
    (round.device.is_cpu() ? verify_on_cpu : verify_on_gpu)(round, list, start);
    history.keep_verdicts(list);
  }
  // Of a batch invariant problem: no verdict on a kernel by itself, so that the cache has none of it.
  std::vector<Record*> records;
  for (Candidate* c : round.open()) records.push_back(&c->record);
  for (Candidate& r : round.rivals) records.push_back(&r.record);
  reject_other_bits(records);
}

std::string arm_name(const Candidate& c) { return c.record.slot < 0 ? "anchor" : candidate_name(c.record); }

std::vector<ArmResult> race_on_cpu(Round& round, const std::vector<Candidate*>& list, int64_t workspace,
                                   RaceOptions options, double budget) {
  const std::unique_ptr<TimingOperands> operands =
      subject_of(round.plan.problem)->operands(workspace, options.seed);
  std::vector<Arm> arms;
  for (Candidate* c : list) arms.push_back(kernel_arm(arm_name(*c), c->main(), *operands));
  round.progress.live("waiting for the device");
  Lap lap;
  const FileLock lock(timing_lock_path(), FileLock::kExclusive);
  std::optional<Turn> quiet; // compiles would take the CPUs of the threads
  if (shared_by(round.plan.problem) > 1) quiet.emplace(Turn::quiet_turn());
  round.waited(lap.seconds());
  options.deadline = wall_seconds() + budget;
  options.end = round.end;
  return halving_race(arms, options, round.progress);
}

/// The device is locked already. Balanced: the best again in bursts.
InTwo race_on_gpu(Round& round, const std::vector<Candidate*>& list, int64_t workspace, RaceOptions options,
                  double budget) {
  constexpr double kRoundBurstSeconds = 1.2;
  const TunedFor regime = round.regime;
  cuda::Bench bench(round.plan.problem, round.device, workspace, options.seed, round.command.options.caches);
  std::vector<Arm> arms;
  for (Candidate* c : list) arms.push_back(bench.kernel_arm(arm_name(*c), c->main()));
  bench.complete(options, cuda::Bench::brief_heat);
  options.deadline = wall_seconds() + budget;
  options.end = round.end;
  Bursts bursts;
  bursts.seconds = std::min(kRoundBurstSeconds, budget / 4);
  if (regime != TunedFor::sustained)
    for (const Arm& arm : arms) bursts.arms.push_back(in_regime(arm, Regime::bursts));
  if (regime == TunedFor::balanced) return halving_in_two(arms, bursts, options, round.progress);
  if (regime == TunedFor::burst) {
    spare_rounds(options);
    options.first_counts = true;
    arms = std::move(bursts.arms);
  }
  return {halving_race(arms, options, round.progress), {}};
}

/// What the second regime says of one that the first one left open or good.
void note_bursts(Candidate& c, const InTwo& results, size_t i, size_t anchor, uint64_t seed) {
  if (i >= results.bursts.size()) return;
  const ArmResult &own = results.bursts[i], &other = results.bursts[anchor];
  if (!own.failure.empty())
    c.decide(own.failure, "while it was timed in bursts: " + own.detail);
  else if (own.timed() && other.timed())
    c.record.bursts = summarize(own, other, seed);
}

/// Fills in the records of `list`; returns the results for the log's summary.
std::vector<ArmResult> time(Round& round, const std::vector<Candidate*>& list, double budget) {
  const MeasureOptions& o = round.command.options;
  int64_t workspace = 0;
  for (Candidate* c : list) workspace = std::max(workspace, c->main().workspace);
  RaceOptions options;
  options.call_seconds = call_limit(round.plan.problem, o.call_seconds);
  options.seed = o.seed;
  options.warmup = o.warmup;
  options.spent = &round.spent;
  if (round.plan.problem.ranged()) {
    std::optional<FileLock> lock;
    round.progress.live("waiting for the device");
    Lap lap;
    if (round.device.is_cpu()) lock.emplace(timing_lock_path(), FileLock::kExclusive);
    round.waited(lap.seconds());
    options.end = round.end;
    const Problem& p = round.plan.problem;
    const auto field = [&](const Sizes& at) {
      int64_t of_calls = 0;
      for (Candidate* c : list) of_calls = std::max(of_calls, kernel_in_call(c->main(), at).workspace);
      return field_at(p.at(at), round.device, of_calls, o, false);
    };
    return time_at_points(sizes_of_round(round.plan.points.at, list), list, field, options, budget,
                          round.progress);
  }
  const InTwo both = round.device.is_cpu() ? InTwo{race_on_cpu(round, list, workspace, options, budget), {}}
                                           : race_on_gpu(round, list, workspace, options, budget);
  const std::vector<ArmResult>& results = both.first;
  const size_t first = anchor_of(results);
  for (size_t i = 0; i < list.size(); ++i) {
    const ArmResult& r = results[i];
    if (!r.failure.empty()) {
      list[i]->decide(r.failure, "while it was timed: " + r.detail);
      continue;
    }
    if (!r.timed()) {
      list[i]->decide("dropped", kNotTimed);
      continue;
    }
    list[i]->record.timing = summarize(r, results[first], o.seed);
    if (r.dropped)
      list[i]->decide("dropped", "more than 3 times slower than the fastest in the first sample");
    else
      list[i]->decide("ok", "");
    note_bursts(*list[i], both, i, first, o.seed);
  }
  return results;
}

bool is_default(const Round& round, const Candidate& c) {
  return round.command.anchor.empty() ? c.record.slot == 0 : &c == &*round.anchor;
}

/// Which arm the ratios of this log are against.
std::string anchor_text(const Round& round, const std::vector<Candidate*>& list,
                        const std::vector<ArmResult>& results) {
  const size_t first = anchor_of(results); // with points, of the first one
  if (first >= list.size()) return "none";
  return (is_default(round, *list[first]) ? "default"
                                          : "the default failed, instead: " + arm_name(*list[first]));
}

/// Of the candidates that are open still.
struct Times {
  std::vector<ArmResult> results; ///< of what this run has timed
  std::string anchor = "none";
  bool stable = true;
};

/// `seconds`: left of the budget.
Times time_unknown(Round& round, EarlierRuns& history, bool alone, double seconds) {
  const std::vector<Candidate*> open = round.open();
  if (open.empty()) return {};
  const bool standard = is_default(round, *open.front());
  // Times at points are of one run: the cache keeps none.
  const bool comparable = standard && !round.plan.problem.ranged();
  std::vector<Candidate*> list = comparable ? history.untimed(open) : open;
  const std::vector<Candidate*> rivals = standard ? round.open_rivals(open) : std::vector<Candidate*>();
  if (list.empty()) {
    history.recall(rivals, *open.front());
    return {{}, "default", true};
  }
  list.insert(list.end(), rivals.begin(), rivals.end());
  Times t;
  t.results = time(round, list, seconds);
  t.anchor = anchor_text(round, list, t.results);
  t.stable = clean_share(t.results) >= 0.5 && dropped_share(t.results) <= kMostDropped;
  if (comparable && t.anchor == "default") {
    if (t.stable && alone) history.keep_times(list);
  } else if (list.size() < open.size() + rivals.size()) {
    t.stable = false; // the known ratios are to another time than the new ones
  }
  return t;
}

/// "12 ok, 3 wrong, 1 timeout"
std::string count_statuses(const std::vector<Candidate>& candidates) {
  std::map<std::string, int> counts;
  for (const Candidate& c : candidates) counts[c.record.status]++;
  std::string text = std::to_string(counts["ok"]) + " ok";
  counts.erase("ok");
  for (const auto& [status, count] : counts) text += ", " + std::to_string(count) + " " + status;
  const auto cached =
      std::count_if(candidates.begin(), candidates.end(), [](const Candidate& c) { return c.record.cached; });
  if (cached) text += " (" + std::to_string(cached) + " from the cache)";
  return text;
}

std::string summary(const std::vector<Candidate>& candidates, const std::string& anchor) {
  const Record* best = nullptr;
  for (const Candidate& c : candidates)
    if (const Record& r = c.record; r.ok() && (!best || r.timing->ratio < best->timing->ratio)) best = &r;
  std::string text = std::to_string(candidates.size()) + " candidates: " + count_statuses(candidates);
  if (!best && candidates.empty()) return "the plan is empty";
  if (!best) return text + "; the first one: " + candidates.front().record.detail;
  char ratio[64];
  std::snprintf(ratio, sizeof ratio, "%.3f", best->timing->ratio);
  text += "; best " + candidate_name(*best) + ", " + ratio;
  return text + (anchor == "default" ? " of the default's time" : " of the anchor's time (" + anchor + ")");
}

} // namespace

void run(const RunCommand& command) {
  Round round(command);
  std::optional<cuda::Taken> gpu;
  cuda::Surroundings around;
  const double begin = wall_seconds();
  Lap lap;
  if (!round.device.is_cpu()) { // on a GPU, verifying would disturb others' timing
    round.progress.live("waiting for the device");
    gpu.emplace(cuda::take(round.device, command.options.devices));
    round.device = gpu->device;
    round.spent.waiting = lap.seconds();
    around = cuda::surroundings(round.device);
  }
  EarlierRuns history(CacheSettings::from_environment(command.cache), round.device, around, command.options);
  const double start = wall_seconds();
  lap.seconds();
  const SearchTime time(command.options.most, command.records);
  const double allowed = time.left_but(finals_reserve(round.device, command.options));
  round.end = start + allowed;
  if (allowed <= 0)
    for (Candidate* c : round.open()) c->decide("dropped", kNotVerified);
  verify(round, history, start);
  round.spent.verifying = lap.seconds();
  // What verification took is gone, but its floor leaves timing a share.
  const double seconds = command.options.seconds, left = start + seconds - wall_seconds();
  const Times times =
      time_unknown(round, history, around.alone(), std::max(left, (1 - kVerifyShare) * seconds));
  RecordLog log;
  log.stable = times.stable;
  log.environment =
      round.device.is_cpu()
          ? environment(round.device, times.anchor, shared_by(round.plan.problem))
          : cuda::environment(round.device, times.anchor, around, times.results, command.options.caches);
  // A search that was cut short may have missed the best.
  const auto cut = std::count_if(round.candidates.begin(), round.candidates.end(), [](const Candidate& c) {
    return c.record.status == "dropped" && !c.record.timing;
  });
  if (cut) log.environment["cut"] = cut;
  if (round.plan.problem.ranged()) log.environment["tune_at"] = tune_points_json(round.plan.points);
  if (round.regime != TunedFor::sustained) log.environment["regime"] = to_string(round.regime);
  round.spent.complete(wall_seconds() - begin);
  if (wall_seconds() - begin - round.spent.waiting >= allowed)
    note_out_of_time(log.environment, time, "the rounds have taken what they may"); // no more are planned
  log.environment["spent"] = round.spent.to_json();
  log.environment["ended"] = utc_now();
  for (Candidate& c : round.candidates) {
    tell_grids(c.file.find("main"), round.device, c.record);
    log.records.push_back(c.record);
  }
  for (const Candidate& c : round.rivals)
    if (c.record.ok() && c.record.timing) log.again.push_back(c.record);
  write_atomically(command.output, log.serialize());
  const bool good = times.stable && std::any_of(round.candidates.begin(), round.candidates.end(),
                                                [](const Candidate& c) { return c.record.ok(); });
  if (command.label.empty() || !(good || round.candidates.empty()))
    round.progress.summary(summary(round.candidates, times.anchor));
}

} // namespace deepgen
