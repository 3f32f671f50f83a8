#include "measure/run.h"

#include "base/error.h"
#include "base/files.h"
#include "measure/arms.h"
#include "measure/verify_all.h"

#include <algorithm>
#include <map>
#include <optional>

namespace deepgen {
namespace {

/// Verification may use this much of the time; timing has what is left.
constexpr double kVerifyShare = 0.6;

struct Round {
  const RunCommand& command;
  Device device;
  Plan plan;
  std::vector<Candidate> candidates;
  std::optional<Candidate> anchor; ///< when it is not one of the candidates
  Progress progress;

  explicit Round(const RunCommand& c)
      : command(c), device(Device::read(c.device)), plan(Plan::read(c.plan)),
        progress("measure r" + std::to_string(plan.round)) {
    check_device(device, c.device);
    if (plan.arch != device.arch)
      throw Error("the plan is for another arch than the device", c.plan,
                  "plan: " + plan.arch + ", device: " + device.arch, "plan again with this device");
    const int64_t isa = runnable_isa(device);
    candidates = load_candidates(plan, c.kernels, c.slots, c.output, isa);
    if (c.anchor.empty())
      return;
    anchor = load_candidate(c.anchor, c.output, isa);
    if (anchor->file.status != "empty" && anchor->file.problem != plan.problem)
      throw Error("the anchor is for another problem than the plan", c.anchor, anchor->file.problem.key(),
                  "pass slot 0 of round 0 of the same search");
    if (anchor->file.status == "empty")
      anchor.reset();
  }

  /// Open ones, the anchor first.
  std::vector<Candidate*> open() {
    std::vector<Candidate*> list;
    if (anchor && anchor->open())
      list.push_back(&*anchor);
    for (Candidate& c : candidates)
      if (c.open())
        list.push_back(&c);
    return list;
  }
};

void verify(Round& round, double start) {
  const std::vector<Candidate*> list = round.open();
  if (list.empty())
    return;
  const MeasureOptions& o = round.command.options;
  round.progress.live("computing the reference");
  CaseSet cases(round.plan.problem, o.seed);
  VerifyOptions options;
  options.device_isa = runnable_isa(round.device);
  options.call_seconds = o.call_seconds;
  options.deadline = start + kVerifyShare * o.seconds;
  options.seed = o.seed;
  verify_all(list, cases, options, round.progress);
}

std::string arm_name(const Candidate& c) {
  return c.record.slot < 0 ? "anchor" : "slot " + std::to_string(c.record.slot);
}

/// Fills in the records of `list`; returns the results for the log's summary.
std::vector<ArmResult> time(Round& round, const std::vector<Candidate*>& list, double budget) {
  const MeasureOptions& o = round.command.options;
  int64_t workspace = 0;
  for (Candidate* c : list)
    workspace = std::max(workspace, c->main().workspace);
  const TimingOperands operands(round.plan.problem, workspace, o.seed);
  std::vector<Arm> arms;
  for (Candidate* c : list)
    arms.push_back(kernel_arm(arm_name(*c), c->main(), operands));
  round.progress.live("waiting for the device");
  const FileLock lock(timing_lock_path(), FileLock::kExclusive);
  RaceOptions options;
  options.deadline = wall_seconds() + budget;
  options.call_seconds = call_limit(round.plan.problem, o.call_seconds);
  options.seed = o.seed;
  const std::vector<ArmResult> results = halving_race(arms, options, round.progress);
  const size_t first = anchor_of(results);
  for (size_t i = 0; i < list.size(); ++i) {
    const ArmResult& r = results[i];
    if (!r.failure.empty()) {
      list[i]->decide(r.failure, "while it was timed: " + r.detail);
      continue;
    }
    list[i]->record.timing = summarize(r, results[first], o.seed);
    if (r.dropped)
      list[i]->decide("dropped", "more than 3 times slower than the fastest in the first sample");
    else
      list[i]->decide("ok", "");
  }
  return results;
}

/// Which arm the ratios of this log are against.
std::string anchor_text(const Round& round, const std::vector<Candidate*>& list,
                        const std::vector<ArmResult>& results) {
  const size_t first = anchor_of(results);
  if (first >= list.size())
    return "none";
  const bool is_default =
      round.command.anchor.empty() ? list[first]->record.slot == 0 : list[first] == &*round.anchor;
  return (is_default ? "default" : "the default failed, instead: " + arm_name(*list[first]));
}

/// "12 ok, 3 wrong, 1 timeout"
std::string count_statuses(const std::vector<Candidate>& candidates) {
  std::map<std::string, int> counts;
  for (const Candidate& c : candidates)
    counts[c.record.status]++;
  std::string text = std::to_string(counts["ok"]) + " ok";
  counts.erase("ok");
  for (const auto& [status, count] : counts)
    text += ", " + std::to_string(count) + " " + status;
  return text;
}

std::string summary(const std::vector<Candidate>& candidates, const std::string& anchor) {
  const Record* best = nullptr;
  for (const Candidate& c : candidates)
    if (const Record& r = c.record; r.ok() && (!best || r.timing->ratio < best->timing->ratio))
      best = &r;
  std::string text = std::to_string(candidates.size()) + " candidates: " + count_statuses(candidates);
  if (!best && candidates.empty())
    return "the plan is empty";
  if (!best)
    return text + "; the first one: " + candidates.front().record.detail;
  char ratio[64];
  std::snprintf(ratio, sizeof ratio, "%.3f", best->timing->ratio);
  text += "; best slot " + std::to_string(best->slot) + ", " + ratio;
  return text + (anchor == "default" ? " of the default's time" : " of the anchor's time (" + anchor + ")");
}

} // namespace

void run(const RunCommand& command) {
  Round round(command);
  const double start = wall_seconds();
  verify(round, start);
  const std::vector<Candidate*> list = round.open();
  RecordLog log;
  std::string anchor = "none";
  if (!list.empty()) {
    // What verification took is gone, but its floor leaves timing a share.
    const double seconds = command.options.seconds, left = start + seconds - wall_seconds();
    const std::vector<ArmResult> results = time(round, list, std::max(left, (1 - kVerifyShare) * seconds));
    anchor = anchor_text(round, list, results);
    log.stable = clean_share(results) >= 0.5;
  }
  log.environment = environment(round.device, anchor);
  for (Candidate& c : round.candidates)
    log.records.push_back(c.record);
  write_atomically(command.output, log.serialize());
  round.progress.summary(summary(round.candidates, anchor));
}

} // namespace deepgen
