#include "base/files/files.h"
#include "base/files/locks.h"
#include "base/json/json.h"
#include "base/kernel/kernel_call.h"
#include "base/search/decide.h"
#include "base/search/names.h"
#include "base/search/ranged_decision.h"
#include "base/search/searches.h"
#include "base/text/error.h"
#include "measure/commands/environment.h"
#include "measure/commands/finalist_set.h"
#include "measure/commands/ranged_final.h"
#include "measure/commands/run.h"
#include "measure/commands/search_time.h"
#include "measure/commands/starters.h"
#include "measure/commands/vendor_facts.h"
#include "measure/cpu/arms.h"
#include "measure/cpu/thread_call.h"
#include "measure/devices/cuda_take.h"
#include "measure/gpu/cuda_bench.h"
#include "measure/gpu/cuda_verify_all.h"
#include "measure/race/candidates.h"
#include "measure/race/contest.h"
#include "measure/values/verify.h"
#include "measure/vendor/gpu/cuda_vendor.h"

#include <algorithm>
#include <limits>
#include <optional>

namespace deepgen {
namespace {

constexpr double kCleanEnoughOnGpu = 0.8;

/// The fields of `more` replace those of `json`, at their places.
Json merged(Json json, const Json& more) {
  for (const auto& [key, value] : more.items()) json[key] = value;
  return json;
}

int64_t workspace_of(const FinalistSet& selection) {
  int64_t workspace = 0;
  for (const Finalist& f : selection.finalists()) workspace = std::max(workspace, f.kernel().workspace);
  return workspace;
}

Field field_of(const FinalistSet& selection,
               const std::function<Arm(const std::string& name, const Kernel&)>& arm_of) {
  Field field;
  field.finalists = selection.finalists().size();
  field.arm = [&selection, arm_of](size_t i, const std::string& name) {
    const Finalist& f = selection.finalists()[i];
    return arm_of(name.empty() ? f.record.choice.text() : name, f.kernel());
  };
  return field;
}

Contest contest_of(const FinalistSet& selection, const PlayoffCommand& command) {
  Contest c;
  for (const Finalist& f : selection.finalists()) c.finalists.push_back(f.record);
  c.has_default = selection.has_default();
  c.options.call_seconds =
      call_limit(selection.finalists().front().file.problem, command.options.call_seconds);
  c.options.seed = command.options.seed;
  c.options.warmup = command.options.warmup;
  c.options.most_rounds = command.options.samples;
  c.seconds = command.options.seconds;
  for (const std::string& name : command.extra) c.extra.push_back(regime_of(name));
  return c;
}

/// Of a GPU: the regimes, with serial launches for evidence. Bursts rest, so that their rounds are few.
void set_regime(Contest& c, const PlayoffCommand& command) {
  constexpr int kRounds = 8;
  c.regime = command.options.regime;
  if (c.regime == TunedFor::sustained) return;
  c.extra_rounds = kRounds;
  if (c.extra.empty()) c.extra = {Regime::serial};
  if (c.regime == TunedFor::burst) spare_rounds(c.options);
}

/// From now on, for what has not taken any of the search's time yet. Of a contest, with ranges or without.
template <typename Any>
void bound(Any& contest, double left) {
  contest.options.end = wall_seconds() + left;
  contest.seconds = std::min(contest.seconds, left);
}

RecordLog time_on_cpu(const FinalistSet& selection, const Device& device, const PlayoffCommand& command,
                      double left, Progress& progress, Spent& spent) {
  const std::unique_ptr<Subject> subject = subject_of(selection.finalists().front().file.problem);
  const Baseline vendor = command.options.vendor ? subject->baseline() : Baseline();
  if (!vendor.why_not.empty()) progress.summary(vendor.why_not);
  std::unique_ptr<TimingOperands> operands;
  Contest c = contest_of(selection, command);
  c.options.spent = &spent;
  c.least_noise = least_noise_of_cpu();
  c.vendor = vendor.name;
  c.field = [&] {
    operands.reset();
    operands = subject->operands(workspace_of(selection), command.options.seed);
    Field field = field_of(selection, [&](const std::string& name, const Kernel& kernel) {
      return kernel_arm(name, kernel, *operands);
    });
    if (vendor.arm) field.vendor_arms.push_back(vendor.arm(*operands));
    return field;
  };
  progress.live("waiting for the device and for compiles to end");
  Lap lap;
  const FileLock lock(timing_lock_path(), FileLock::kExclusive);
  const Turn quiet = Turn::quiet_turn();
  spent.waiting = lap.seconds();
  bound(c, left);
  ContestResult r = run_contest(c, progress);
  add_vendor_call(r, selection.finalists().front().file.problem, vendor.name);
  r.log.environment = merged(environment(device, "", shared_by(selection.finalists().front().file.problem)),
                             r.log.environment);
  return std::move(r.log);
}

/// Of a problem with ranges: at its points, on any device. `device` is locked already where it is a GPU.
RecordLog time_ranges(const FinalistSet& selection, const Device& device, const PlayoffCommand& command,
                      double left, Progress& progress, Spent& spent, std::vector<ArmResult>& samples) {
  RangedContest c;
  c.problem = selection.finalists().front().file.problem;
  c.points = points_of(c.problem, RecordLog::read(command.records.front()));
  for (const Finalist& f : selection.finalists()) {
    c.finalists.push_back(f.record), c.kernels.push_back(&f.kernel());
    tell_grids(&f.kernel(), device, c.finalists.back());
  }
  c.has_default = selection.has_default();
  c.arch = device.arch;
  c.regime = regime_on(device, command.options);
  c.options.call_seconds =
      call_limit(selection.finalists().front().file.problem, command.options.call_seconds);
  c.options.seed = command.options.seed, c.options.warmup = command.options.warmup;
  c.options.most_rounds = command.options.samples, c.options.spent = &spent;
  c.seconds = command.options.seconds;
  bound(c, left);
  c.least_noise = device.is_cpu() ? least_noise_of_cpu() : 0;
  c.clean_enough = device.is_cpu() ? c.clean_enough : kCleanEnoughOnGpu;
  c.field = [&](const Sizes& at, bool vendor) {
    int64_t workspace = 0;
    for (const Kernel* k : c.kernels) workspace = std::max(workspace, kernel_in_call(*k, at).workspace);
    return field_at(c.problem.at(at), device, workspace, command.options, vendor && command.options.vendor);
  };
  return run_ranged_contest(c, progress, samples);
}

RecordLog time_ranges_on_cpu(const FinalistSet& selection, const Device& device,
                             const PlayoffCommand& command, double left, Progress& progress, Spent& spent) {
  progress.live("waiting for the device and for compiles to end");
  Lap lap;
  const FileLock lock(timing_lock_path(), FileLock::kExclusive);
  const Turn quiet = Turn::quiet_turn();
  spent.waiting = lap.seconds();
  std::vector<ArmResult> samples;
  RecordLog log = time_ranges(selection, device, command, left, progress, spent, samples);
  log.environment = merged(environment(device, ""), log.environment);
  return log;
}

/// No config wins that is right on the tuned shape alone.
void verify_awkward(FinalistSet& selection, const std::vector<KernelFile>& files, const Device& device,
                    const MeasureOptions& o, double end) {
  cuda::VerifyOptions options;
  options.uuid = device.uuid;
  options.call_seconds = o.call_seconds;
  options.deadline = std::numeric_limits<double>::infinity(); // they are few
  options.end = end;
  options.seed = o.seed;
  std::vector<const KernelFile*> list;
  for (const KernelFile& file : files) list.push_back(&file);
  size_t next = cuda::verify_files(list, options, [&](size_t i, const Verdict& v) {
    v.status == "ok" ? selection.accept(list[i]->choice, v.error)
                     : selection.reject(list[i]->choice, v.status, v.detail);
  });
  for (; next < list.size(); ++next)
    selection.reject(list[next]->choice, "dropped", "not verified within the time of its search");
}

/// For each finalist, the vendor's best time in units of its own, from the same rounds.
Json vendor_ratios(const FinalistSet& selection, const FinalsResult& t, uint64_t seed) {
  Json ratios = Json::array();
  for (size_t i = 0; i < t.finalists.size(); ++i) {
    if (!t.vendor.timed() || !t.finalists[i].timed()) continue;
    const Timing timing = summarize(t.vendor, t.finalists[i], seed);
    ratios.push_back({{"sha256", selection.finalists()[i].record.sha256},
                      {"ratio", finite(timing.ratio)},
                      {"low", finite(timing.low)},
                      {"high", finite(timing.high)}});
  }
  return ratios;
}

/// Whether somebody else computes on the device. Such a log decides nothing.
void note_company(int processes, RecordLog& log) {
  if (!processes) return;
  log.stable = false;
  log.environment["unstable"] =
      "shared: " + std::to_string(processes) + " other processes compute on the device";
}

RecordLog nothing_timed(const Json& environment, bool out_of_time, Progress& progress) {
  if (!out_of_time)
    progress.summary("no candidate of any round was correct, so nothing was timed; see `deepgen report`");
  RecordLog log;
  log.environment = environment;
  return log;
}

/// The device is locked already.
RecordLog time_ranges_on_gpu(const FinalistSet& selection, const Device& device,
                             const PlayoffCommand& command, double left, cuda::Surroundings around,
                             Progress& progress, Spent& spent) {
  std::vector<ArmResult> samples;
  RecordLog log = time_ranges(selection, device, command, left, progress, spent, samples);
  around.other_processes = std::max(around.other_processes, cuda::surroundings(device).other_processes);
  log.environment =
      merged(cuda::environment(device, "", around, samples, command.options.caches), log.environment);
  note_company(around.other_processes, log);
  return log;
}

/// What the environment tells of the device, the vendor's library and the memory's bandwidth.
Json facts_on_gpu(const Device& device, const cuda::Surroundings& around, const FinalistSet& selection,
                  const cuda::Vendor& vendor, const ContestResult& r, const MeasureOptions& o) {
  Json json = cuda::environment(device, "", around, r.samples, o.caches);
  json["vendor"] = {{"name", vendor.name},
                    {"why_not", vendor.why_not},
                    {"algorithms", vendor.algorithms.size()},
                    {"epilogue", vendor.plan.text()},
                    {"ratios", vendor_ratios(selection, r.finals, o.seed)}};
  if (!vendor.left_out.empty()) json["vendor"]["left_out"] = vendor.left_out;
  if (const ArmResult& read = r.finals.read; read.timed())
    json["read"] = {{"bytes", cuda::read_bytes(selection.finalists().front().file.problem)},
                    {"seconds", summarize(read, read, o.seed).seconds}};
  return json;
}

/// What the vendor's library is, and whether the finals have time for it now that its algorithms are counted.
Starters ask_vendor(FinalistSet& selection, const Device& device, PlayoffCommand& command, double end,
                    double preparing, Progress& progress, cuda::Vendor& vendor) {
  vendor.why_not = "not asked for";
  if (command.options.vendor) {
    progress.live("asking the vendor's library");
    vendor = cuda::baseline_of(selection.finalists().front().file.problem, device, command.options.seed);
    for (const std::string& note : vendor_notes(vendor)) progress.summary(note);
  }
  FinalsField field = expected_field(device, command.options);
  field.asking = 0, field.algorithms = vendor.algorithms.size(), field.vendor &= field.algorithms > 0;
  const Starters s = fit(selection, end - wall_seconds(), preparing, field, command.options);
  if (!s.vendor && !vendor.algorithms.empty())
    vendor.algorithms.clear(), vendor.why_not = "the search had no time for it";
  return s;
}

RecordLog time_on_gpu(FinalistSet& selection, const Device& model, PlayoffCommand command,
                      const SearchTime& time, Progress& progress, Spent& spent) {
  const std::vector<KernelFile> files = selection.unverified();
  progress.live("waiting for the device and for compiles to end");
  Lap lap;
  const cuda::Taken taken = cuda::take(model, command.options.devices);
  const Device& device = taken.device;
  const Turn quiet = Turn::quiet_turn(FileLock::kShared);
  spent.waiting = lap.seconds();
  const double end = wall_seconds() + time.left();
  if (!files.empty()) {
    progress.live("verifying awkward shapes");
    verify_awkward(selection, files, device, command.options, end);
    spent.verifying = lap.seconds();
  }
  cuda::Surroundings around = cuda::surroundings(device);
  if (selection.finalists().empty())
    return nothing_timed(cuda::environment(device, "none", around, {}, command.options.caches),
                         wall_seconds() >= end, progress);
  const Problem problem = selection.finalists().front().file.problem;
  if (problem.ranged())
    return time_ranges_on_gpu(selection, device, command, end - wall_seconds(), std::move(around), progress,
                              spent);
  cuda::Vendor vendor;
  const Starters starters = ask_vendor(selection, device, command, end, time.preparing(), progress, vendor);
  spent.vendor = lap.seconds();
  if (!starters.finalists)
    return not_begun(selection, cuda::environment(device, "none", around, {}, command.options.caches),
                     starters, time, end - wall_seconds());
  cuda::Bench bench(problem, device, workspace_of(selection), command.options.seed, command.options.caches);
  Contest c = contest_of(selection, command);
  if (!vendor.algorithms.empty()) c.vendor = vendor.name;
  c.vendor_note = "best of " + std::to_string(vendor.algorithms.size()) + " algorithms" +
                  (vendor.plan.text().empty() ? "" : "; " + vendor.plan.text());
  c.field = [&] { // of the operands a worker's own bench is opened in each race
    Field field = field_of(selection, [&](const std::string& name, const Kernel& kernel) {
      return bench.kernel_arm(name, kernel);
    });
    field.read_arm = bench.read_arm();
    field.vendor_arms = cuda::vendor_arms(vendor, bench);
    return field;
  };
  c.clean_enough = kCleanEnoughOnGpu;
  bench.complete(c.options, cuda::Bench::full_heat);
  set_regime(c, command);
  c.settle_again = cuda::Bench::again_heat;
  c.options.spent = &spent;
  bound(c, end - wall_seconds());
  ContestResult r = run_contest(c, progress);
  add_vendor_call(r, problem, device.arch, vendor);
  around.other_processes = std::max(around.other_processes, cuda::surroundings(device).other_processes);
  Json json = facts_on_gpu(device, around, selection, vendor, r, command.options);
  r.log.environment = merged(std::move(json), r.log.environment);
  note_company(around.other_processes, r.log);
  return std::move(r.log);
}

std::string percent(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2g %%", 100 * x);
  return text;
}

/// "3 kernels, ...", for a problem with ranges.
std::string ranged_summary(const RecordLog& log) {
  if (!log.stable) return "unstable: " + log.environment.value("unstable", "too much interference");
  for (const Record& r : log.records)
    if (r.stage == "final") return decide_ranges(Problem::parse(r.problem), log).reason;
  return "no winner";
}

bool is_ranged(const RecordLog& log) {
  return std::any_of(log.records.begin(), log.records.end(),
                     [](const Record& r) { return !r.points.empty(); });
}

std::string summary(const RecordLog& log) {
  if (is_ranged(log)) return ranged_summary(log);
  const bool again = log.environment.contains("holdout");
  const std::string unwatched = log.environment.value("unwatched", "");
  std::string text;
  int left = 0;
  for (const Record& r : log.records) {
    if (!r.timing || r.stage != "final" || (left += r.status == "dropped", !r.ok())) continue;
    char line[160];
    std::snprintf(line, sizeof line, "%s%s %.3f", text.empty() ? "" : ", ", candidate_name(r).c_str(),
                  over_regimes(*r.timing, r.bursts).ratio);
    text += line;
  }
  if (text.empty()) return "no finalist could be timed, so nothing is decided";
  text += " of the default's time, noise " + percent(noise_of(log));
  if (left) text += "; " + std::to_string(left) + " clearly slower in the first rounds";
  if (!unwatched.empty()) text += "; throttling and other processes were not watched: " + unwatched;
  if (!log.stable) return text + "; unstable: " + log.environment.value("unstable", "");
  const Decision d = decide(log);
  return text + "; " + (again ? "hold-out: " : "") + d.reason;
}

/// What became of a search, for whoever waits for the build.
std::string short_summary(const RecordLog& log) {
  if (const std::string why = log.environment.value("out_of_time", ""); !why.empty())
    return "the default config stays: " + why;
  if (is_ranged(log)) return ranged_summary(log);
  if (!log.stable)
    return "unstable: " + log.environment.value("unstable", "too much interference") +
           "; `ninja tune` repeats it";
  const Decision d = decide(log);
  if (!d.found) return "no winner: " + d.reason;
  if (!d.improved) return "the default config stays";
  char text[160];
  std::snprintf(text, sizeof text, "%s is %.3g times as fast as the default",
                candidate_name(d.winner).c_str(), d.winner.timing ? 1 / d.timing.ratio : 1);
  return text;
}

void say(const PlayoffCommand& command, const RecordLog& log, Progress& progress) {
  if (command.label.empty()) {
    const std::string why = log.environment.value("out_of_time", "");
    if (!log.records.empty()) progress.summary(why.empty() ? summary(log) : why);
    return;
  }
  std::string done;
  if (!command.searches.empty() && file_exists(command.searches))
    done = searches_done(parse_searches(read_file(command.searches)), command.output);
  progress.summary(short_summary(log) + done);
}

} // namespace

namespace {

/// Whether a decision is missing as there was no time for it.
void note_lack_of_time(const SearchTime& time, const Spent& spent, double elapsed, bool nobody,
                       RecordLog& log) {
  if (!time.bounded() || log.environment.contains("out_of_time")) return;
  if (nobody && (time.cut() || elapsed - spent.waiting >= time.left()))
    note_out_of_time(log.environment, time, "no candidate could be verified and timed");
  else if (!log.stable && elapsed - spent.waiting >= time.left())
    note_out_of_time(log.environment, time, "it was over before the finals had ended");
  log.stable &= !log.environment.contains("out_of_time");
}

} // namespace

void playoff(const PlayoffCommand& asked) {
  PlayoffCommand command = asked;
  const double begin = wall_seconds();
  const Device device = Device::read(command.device);
  check_device(device, command.device, command.options.caches);
  if (device.is_cpu() && !command.extra.empty())
    throw Error("a CPU has no bursts and no serial launches", "--extra", "these are regimes of GPUs",
                "leave --extra out");
  FinalistSet selection(command.records, command.awkward, command.output);
  selection.reject_others();
  Progress progress(command.label.empty() ? "measure final" : command.label + " on " + device.arch);
  Spent spent;
  RecordLog log;
  const SearchTime time(command.options.most, command.records);
  const bool nobody = selection.finalists().empty();
  const Starters starters =
      fit(selection, time.left(), time.preparing(), expected_field(device, command.options), command.options);
  const auto without_device = [&] {
    return device.is_cpu() ? environment(device, "none")
                           : cuda::environment(device, "none", {}, {}, command.options.caches);
  };
  if (nobody)
    log = nothing_timed(without_device(), time.bounded() && time.cut(), progress);
  else if (!starters.finalists)
    log = not_begun(selection, without_device(), starters, time, time.left());
  else if (device.is_cpu() && selection.finalists().front().file.problem.ranged())
    log = time_ranges_on_cpu(selection, device, command, time.left(), progress, spent);
  else
    log = device.is_cpu() ? time_on_cpu(selection, device, command, time.left(), progress, spent)
                          : time_on_gpu(selection, device, command, time, progress, spent);
  spent.complete(wall_seconds() - begin);
  note_lack_of_time(time, spent, wall_seconds() - begin, nobody, log);
  log.environment["spent"] = spent.to_json();
  log.environment["ended"] = utc_now();
  const std::vector<Record> failed = selection.failed();
  log.records.insert(log.records.begin(), failed.begin(), failed.end());
  write_atomically(command.output, log.serialize());
  say(command, log, progress);
}

} // namespace deepgen
