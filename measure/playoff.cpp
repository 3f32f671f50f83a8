#include "base/error.h"
#include "base/files.h"
#include "measure/arms.h"
#include "measure/candidates.h"
#include "measure/cuda_bench.h"
#include "measure/cuda_vendor.h"
#include "measure/finals.h"
#include "measure/run.h"
#include "measure/statistics.h"
#include "measure/verify.h"

#include <algorithm>
#include <optional>
#include <set>

namespace deepgen {
namespace {

constexpr size_t kFinalists = 4;
constexpr double kCleanEnough = 0.5, kCleanEnoughOnGpu = 0.8;

/// A record of an earlier log, and its kernel.
struct Finalist {
  Record record;
  KernelFile file;
  const Kernel& kernel() const { return *file.find("main"); }
};

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

Record vendor_record(const Record& like, const std::string& name) {
  Record r;
  r.stage = "final";
  r.problem = like.problem;
  r.arch = like.arch;
  r.choice.template_name = "vendor";
  r.origin = name;
  return r;
}

void fill(Record& record, const ArmResult& result, const ArmResult& anchor, uint64_t seed) {
  if (result.timed())
    record.timing = summarize(result, anchor, seed);
  else
    record.status = result.failure, record.detail = "while it was timed: " + result.detail;
}

/// What was timed, and what the log says about where.
struct Outcome {
  FinalsResult timed;
  std::optional<std::string> vendor; ///< its name when it was timed
  std::string vendor_note;           ///< how its time is to be read
  std::function<Json(const std::string& anchor)> environment;
  double clean_enough = kCleanEnough;
  bool alone = true; ///< nobody else used the device
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

/// The time budget starts here.
RaceOptions race_options(const Problem& problem, const PlayoffCommand& command) {
  RaceOptions options;
  options.deadline = wall_seconds() + command.options.seconds;
  options.call_seconds = call_limit(problem, command.options.call_seconds);
  options.seed = command.options.seed;
  return options;
}

Outcome time_on_cpu(const Selection& selection, const Device& device, const PlayoffCommand& command,
                    Progress& progress) {
  const Problem& problem = selection.finalists().front().file.problem;
  const std::optional<Vendor> vendor = command.options.vendor ? Vendor::open() : std::nullopt;
  if (!vendor && command.options.vendor)
    progress.summary("no OpenBLAS here, so no vendor baseline; install libopenblas0 for one");
  const TimingOperands operands(problem, workspace_of(selection), command.options.seed);
  Field field = field_of(selection, [&](const std::string& name, const Kernel& kernel) {
    return kernel_arm(name, kernel, operands);
  });
  Outcome out;
  if (vendor) {
    field.vendor_arms.push_back(vendor_arm(*vendor, problem, operands));
    out.vendor = vendor->name();
  }
  progress.live("waiting for the device and for compiles to end");
  const FileLock lock(timing_lock_path(), FileLock::kExclusive);
  const Turn quiet = Turn::quiet_turn();
  out.timed = run_finals(field, race_options(problem, command), progress);
  out.environment = [device](const std::string& anchor) { return environment(device, anchor); };
  return out;
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

Outcome time_on_gpu(const Selection& selection, const Device& device, const PlayoffCommand& command,
                    Progress& progress) {
  const Problem& problem = selection.finalists().front().file.problem;
  progress.live("waiting for the device and for compiles to end");
  const FileLock lock = cuda::lock(device);
  const Turn quiet = Turn::quiet_turn();
  const cuda::Surroundings around = cuda::surroundings(device);
  if (around.other_processes)
    progress.summary("another process computes on the device (" + std::to_string(around.other_processes) +
                     "), so nothing is decided");
  cuda::Bench bench(problem, device, workspace_of(selection), command.options.seed);
  Field field = field_of(selection, [&](const std::string& name, const Kernel& kernel) {
    return bench.kernel_arm(name, kernel);
  });
  field.read_arm = bench.read_arm();
  cuda::Vendor vendor;
  vendor.why_not = "not asked for";
  if (command.options.vendor) {
    progress.live("asking cuBLASLt");
    vendor = cuda::find_vendor(problem, device, command.options.seed);
    field.vendor_arms = cuda::vendor_arms(vendor, bench);
    if (!vendor.why_not.empty())
      progress.summary("no vendor baseline: " + vendor.why_not);
  }
  Outcome out;
  if (!field.vendor_arms.empty())
    out.vendor = vendor.name;
  out.vendor_note = "best of " + std::to_string(field.vendor_arms.size()) + " algorithms" +
                    (vendor.plan.text().empty() ? "" : "; " + vendor.plan.text());
  RaceOptions options = race_options(problem, command);
  bench.complete(options, cuda::Bench::full_heat);
  out.timed = run_finals(field, options, progress);
  out.environment = [&selection, device, around, vendor, timed = out.timed, bytes = bench.read_bytes(),
                     seed = command.options.seed](const std::string& anchor) {
    Json json = cuda::environment(device, anchor, around, timed.all);
    json["vendor"] = {{"name", vendor.name},
                      {"why_not", vendor.why_not},
                      {"algorithms", vendor.algorithms.size()},
                      {"epilogue", vendor.plan.text()},
                      {"ratios", vendor_ratios(selection, timed, seed)}};
    if (timed.read.timed())
      json["read"] = {{"bytes", bytes}, {"seconds", summarize(timed.read, timed.read, seed).seconds}};
    return json;
  };
  out.clean_enough = kCleanEnoughOnGpu;
  out.alone = around.other_processes == 0;
  return out;
}

std::string percent(double x) {
  char text[32];
  std::snprintf(text, sizeof text, "%.2g %%", 100 * x);
  return text;
}

std::string summary(const RecordLog& log) {
  std::string text;
  for (const Record& r : log.records) {
    if (!r.timing)
      continue;
    char line[160];
    std::snprintf(line, sizeof line, "%s%s %.3f", text.empty() ? "" : ", ",
                  r.is_vendor()           ? r.origin.c_str()
                  : r.origin == "default" ? "default"
                                          : ("slot " + std::to_string(r.slot)).c_str(),
                  r.timing->ratio);
    text += line;
  }
  if (text.empty())
    return "no finalist could be timed, so nothing is decided";
  text += " of the default's time, noise " + percent(log.noise_floor);
  return log.stable ? text
                    : text + ", unstable: the machine was too busy, or the noise could not be measured";
}

} // namespace

void playoff(const PlayoffCommand& command) {
  const Device device = Device::read(command.device);
  check_device(device, command.device);
  const Selection selection(command);
  const std::vector<Finalist>& finalists = selection.finalists();
  Progress progress("measure final");
  RecordLog log;
  if (auto failed = selection.failed_default(command.output))
    log.records.push_back(*failed);
  if (finalists.empty()) {
    log.environment = device.is_cpu() ? environment(device, "none") : cuda::environment(device, "none", {}, {});
    write_atomically(command.output, log.serialize());
    progress.summary("no candidate of any round was correct, so nothing was timed; see `deepgen report`");
    return;
  }
  const Outcome outcome = (device.is_cpu() ? time_on_cpu : time_on_gpu)(selection, device, command, progress);
  const FinalsResult& timed = outcome.timed;
  const bool any = timed.anchor < finalists.size();
  for (size_t i = 0; i < finalists.size(); ++i) {
    log.records.push_back(finalists[i].record);
    fill(log.records.back(), timed.finalists[i], timed.finalists[any ? timed.anchor : i],
         command.options.seed);
  }
  if (outcome.vendor && any) {
    log.records.push_back(vendor_record(finalists.front().record, *outcome.vendor));
    log.records.back().detail = outcome.vendor_note;
    fill(log.records.back(), timed.vendor, timed.finalists[timed.anchor], command.options.seed);
  }
  const std::vector<double> noise =
      any ? log_ratios(timed.again, timed.finalists[timed.anchor]) : std::vector<double>();
  log.noise_floor = finite(noise_floor(noise));
  // Without a noise floor nothing can be said to be faster.
  log.stable = noise.size() >= kFewestForNoise && clean_share(timed.all) >= outcome.clean_enough && outcome.alone;
  const bool against_default = timed.anchor == 0 && selection.has_default();
  log.environment = outcome.environment(against_default ? "default" : "the default failed, instead: a finalist");
  write_atomically(command.output, log.serialize());
  progress.summary(summary(log));
}

} // namespace deepgen
