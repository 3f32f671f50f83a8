#include "base/decide.h"
#include "base/error.h"
#include "base/files.h"
#include "measure/arms.h"
#include "measure/candidates.h"
#include "measure/contest.h"
#include "measure/cuda_bench.h"
#include "measure/cuda_take.h"
#include "measure/cuda_vendor.h"
#include "measure/run.h"
#include "measure/verify.h"

#include <algorithm>
#include <optional>
#include <set>

namespace deepgen {
namespace {

constexpr size_t kFinalists = 4;
constexpr double kCleanEnoughOnGpu = 0.8;

/// A record of an earlier log, and its kernel.
struct Finalist {
  Record record;
  KernelFile file;
  const Kernel& kernel() const { return *file.find("main"); }
};

/// The fields of `more` replace those of `json`, at their places.
Json merged(Json json, const Json& more) {
  for (const auto& [key, value] : more.items())
    json[key] = value;
  return json;
}

struct Entry {
  Record record;
  std::string log;
};

Finalist load(const Entry& e, const std::string& output) {
  const std::string path = kernel_path(e.record, e.log);
  Finalist f{e.record, KernelFile::read(path)};
  const Kernel* kernel = f.file.find("main");
  if (!kernel || kernel->sha256 != e.record.sha256)
    throw Error("a kernel file has changed since it was measured", path, "recorded in " + e.log,
                "measure that round again");
  f.record.stage = "final";
  f.record.detail.clear();
  f.record.timing.reset();
  f.record.cached = false;
  f.record.kernel_file = relative_to_log(path, output);
  return f;
}

/// The default first, when it is good, then the best others by ratio, of different code.
class Selection {
public:
  explicit Selection(const PlayoffCommand& command) {
    for (const std::string& path : command.records)
      for (Record& r : RecordLog::read(path).records)
        entries_.push_back({std::move(r), path});
    for (const Entry& e : entries_)
      if (e.record.problem != entries_.front().record.problem)
        throw Error("the logs are of different problems", e.log,
                    e.record.problem + " and " + entries_.front().record.problem,
                    "pass the logs of one search");
    choose(command.output);
  }
  const std::vector<Finalist>& finalists() const { return finalists_; }
  bool has_default() const { return has_default_; }
  /// The default's record when it failed: it then goes into the final log as it is.
  std::optional<Record> failed_default(const std::string& output) const {
    const Entry* e = default_entry();
    if (!e || e->record.ok())
      return std::nullopt;
    Record r = e->record;
    r.stage = "final";
    r.kernel_file = relative_to_log(kernel_path(r, e->log), output);
    return r;
  }

private:
  const Entry* default_entry() const {
    for (const Entry& e : entries_)
      if (e.record.origin == "default")
        return &e;
    return nullptr;
  }

  void choose(const std::string& output) {
    std::set<std::string> seen;
    const Entry* standard = default_entry();
    has_default_ = standard && standard->record.ok();
    if (has_default_) {
      finalists_.push_back(load(*standard, output));
      seen.insert(standard->record.sha256);
    }
    std::vector<const Entry*> ranked;
    for (const Entry& e : entries_)
      if (e.record.ok() && e.record.timing && !e.record.is_vendor())
        ranked.push_back(&e);
    std::stable_sort(ranked.begin(), ranked.end(), [](const Entry* x, const Entry* y) {
      return x->record.timing->ratio < y->record.timing->ratio;
    });
    for (const Entry* e : ranked)
      if (finalists_.size() < kFinalists + has_default_ && seen.insert(e->record.sha256).second)
        finalists_.push_back(load(*e, output));
  }

  std::vector<Entry> entries_;
  std::vector<Finalist> finalists_;
  bool has_default_ = false;
};

int64_t workspace_of(const Selection& selection) {
  int64_t workspace = 0;
  for (const Finalist& f : selection.finalists())
    workspace = std::max(workspace, f.kernel().workspace);
  return workspace;
}

Field field_of(const Selection& selection,
               const std::function<Arm(const std::string& name, const Kernel&)>& arm_of) {
  Field field;
  field.finalists = selection.finalists().size();
  field.arm = [&selection, arm_of](size_t i, const std::string& name) {
    const Finalist& f = selection.finalists()[i];
    return arm_of(name.empty() ? f.record.choice.text() : name, f.kernel());
  };
  return field;
}

Contest contest_of(const Selection& selection, const PlayoffCommand& command) {
  Contest c;
  for (const Finalist& f : selection.finalists())
    c.finalists.push_back(f.record);
  c.has_default = selection.has_default();
  c.options.call_seconds = call_limit(selection.finalists().front().file.problem, command.options.call_seconds);
  c.options.seed = command.options.seed;
  c.options.warmup = command.options.warmup;
  c.options.most_rounds = command.options.samples;
  c.seconds = command.options.seconds;
  return c;
}

RecordLog time_on_cpu(const Selection& selection, const Device& device, const PlayoffCommand& command,
                      Progress& progress, Spent& spent) {
  const Problem& problem = selection.finalists().front().file.problem;
  const std::optional<Vendor> vendor = command.options.vendor ? Vendor::open() : std::nullopt;
  if (!vendor && command.options.vendor)
    progress.summary("no OpenBLAS here, so no vendor baseline; install libopenblas0 for one");
  std::optional<TimingOperands> operands;
  Contest c = contest_of(selection, command);
  c.options.spent = &spent;
  if (vendor)
    c.vendor = vendor->name();
  c.field = [&] {
    operands.reset();
    operands.emplace(problem, workspace_of(selection), command.options.seed);
    Field field = field_of(selection, [&](const std::string& name, const Kernel& kernel) {
      return kernel_arm(name, kernel, *operands);
    });
    if (vendor)
      field.vendor_arms.push_back(vendor_arm(*vendor, problem, *operands));
    return field;
  };
  progress.live("waiting for the device and for compiles to end");
  Lap lap;
  const FileLock lock(timing_lock_path(), FileLock::kExclusive);
  const Turn quiet = Turn::quiet_turn();
  spent.waiting = lap.seconds();
  RecordLog log = run_contest(c, progress).log;
  log.environment = merged(environment(device, ""), log.environment);
  return log;
}

/// For each finalist, the vendor's best time in units of its own, from the same rounds.
Json vendor_ratios(const Selection& selection, const FinalsResult& t, uint64_t seed) {
  Json ratios = Json::array();
  for (size_t i = 0; i < t.finalists.size(); ++i) {
    if (!t.vendor.timed() || !t.finalists[i].timed())
      continue;
    const Timing timing = summarize(t.vendor, t.finalists[i], seed);
    ratios.push_back({{"sha256", selection.finalists()[i].record.sha256},
                      {"ratio", timing.ratio},
                      {"low", timing.low},
                      {"high", timing.high}});
  }
  return ratios;
}

/// Whether somebody else computes on the device. Such a log decides nothing.
void note_company(int processes, RecordLog& log) {
  if (!processes)
    return;
  log.stable = false;
  log.environment["unstable"] =
      "shared: " + std::to_string(processes) + " other processes compute on the device";
}

RecordLog time_on_gpu(const Selection& selection, const Device& model, const PlayoffCommand& command,
                      Progress& progress, Spent& spent) {
  const Problem& problem = selection.finalists().front().file.problem;
  progress.live("waiting for the device and for compiles to end");
  Lap lap;
  const cuda::Taken taken = cuda::take(model, command.options.devices);
  const Device& device = taken.device;
  const Turn quiet = Turn::quiet_turn(FileLock::kShared);
  spent.waiting = lap.seconds();
  cuda::Surroundings around = cuda::surroundings(device);
  cuda::Bench bench(problem, device, workspace_of(selection), command.options.seed);
  cuda::Vendor vendor;
  vendor.why_not = "not asked for";
  if (command.options.vendor) {
    progress.live("asking the vendor's library");
    vendor = cuda::find_vendor(problem, device, command.options.seed);
    if (!vendor.why_not.empty())
      progress.summary("no vendor baseline: " + vendor.why_not);
  }
  spent.vendor = lap.seconds();
  Contest c = contest_of(selection, command);
  if (!vendor.algorithms.empty())
    c.vendor = vendor.name;
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
  c.settle_again = cuda::Bench::again_heat;
  c.options.spent = &spent;
  ContestResult r = run_contest(c, progress);
  around.other_processes = std::max(around.other_processes, cuda::surroundings(device).other_processes);
  Json json = cuda::environment(device, "", around, r.samples);
  json["vendor"] = {{"name", vendor.name},
                    {"why_not", vendor.why_not},
                    {"algorithms", vendor.algorithms.size()},
                    {"epilogue", vendor.plan.text()},
                    {"ratios", vendor_ratios(selection, r.finals, command.options.seed)}};
  if (const ArmResult& read = r.finals.read; read.timed())
    json["read"] = {{"bytes", bench.read_bytes()}, {"seconds", summarize(read, read, command.options.seed).seconds}};
  r.log.environment = merged(std::move(json), r.log.environment);
  note_company(around.other_processes, r.log);
  return std::move(r.log);
}

std::string percent(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2g %%", 100 * x);
  return text;
}

std::string name_of(const Record& r) {
  return r.is_vendor() ? r.origin : r.origin == "default" ? "default" : "slot " + std::to_string(r.slot);
}

std::string summary(const RecordLog& log) {
  const bool again = log.environment.contains("holdout");
  std::string text;
  for (const Record& r : log.records) {
    if (!r.timing || r.stage != "final")
      continue;
    char line[160];
    std::snprintf(line, sizeof line, "%s%s %.3f", text.empty() ? "" : ", ", name_of(r).c_str(), r.timing->ratio);
    text += line;
  }
  if (text.empty())
    return "no finalist could be timed, so nothing is decided";
  text += " of the default's time, noise " + percent(log.noise_floor);
  if (!log.stable)
    return text + "; unstable: " + log.environment.value("unstable", "");
  const Decision d = decide(log);
  return text + "; " + (again ? "hold-out: " : "") + d.reason;
}

} // namespace

void playoff(const PlayoffCommand& command) {
  const Device device = Device::read(command.device);
  check_device(device, command.device);
  const Selection selection(command);
  Progress progress("measure final");
  Spent spent;
  RecordLog log;
  if (selection.finalists().empty()) {
    log.environment = device.is_cpu() ? environment(device, "none") : cuda::environment(device, "none", {}, {});
    progress.summary("no candidate of any round was correct, so nothing was timed; see `deepgen report`");
  } else {
    log = (device.is_cpu() ? time_on_cpu : time_on_gpu)(selection, device, command, progress, spent);
    progress.summary(summary(log));
  }
  log.environment["spent"] = spent.to_json();
  log.environment["ended"] = utc_now();
  if (auto failed = selection.failed_default(command.output))
    log.records.insert(log.records.begin(), *failed);
  write_atomically(command.output, log.serialize());
}

} // namespace deepgen
