#include "base/error.h"
#include "base/files.h"
#include "measure/arms.h"
#include "measure/candidates.h"
#include "measure/run.h"
#include "measure/statistics.h"
#include "measure/verify.h"

#include <algorithm>
#include <optional>
#include <set>

namespace deepgen {
namespace {

constexpr size_t kFinalists = 4;
constexpr int kFewestRounds = 11, kMostRounds = 60;
constexpr double kCleanEnough = 0.5;

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

/// Results of the finalists in order, and of two more arms: the anchor again, which gives the noise, and the
/// vendor.
struct Timed {
  std::vector<ArmResult> all, finalists;
  ArmResult again, vendor;
  size_t anchor = 0; ///< among the finalists; their count when none could be timed
};

Timed time_against(size_t anchor, const Selection& selection, const std::optional<Vendor>& vendor,
                   const TimingOperands& operands, const RaceOptions& options, Progress& progress) {
  const std::vector<Finalist>& finalists = selection.finalists();
  std::vector<Arm> arms;
  for (const Finalist& f : finalists)
    arms.push_back(kernel_arm(f.record.choice.text(), f.kernel(), operands));
  arms.push_back(kernel_arm("the anchor again", finalists[anchor].kernel(), operands));
  if (vendor)
    arms.push_back(vendor_arm(*vendor, finalists.front().file.problem, operands));
  Timed t;
  t.all = full_race(arms, kFewestRounds, kMostRounds, options, progress);
  t.finalists.assign(t.all.begin(), t.all.begin() + std::ptrdiff_t(finalists.size()));
  t.again = t.all[finalists.size()];
  if (vendor)
    t.vendor = t.all.back();
  t.anchor = anchor_of(t.finalists);
  return t;
}

/// Again where the anchor failed while it was timed: the noise is the next one's, against itself.
Timed time(const Selection& selection, const std::optional<Vendor>& vendor, const PlayoffCommand& command,
           Progress& progress) {
  const std::vector<Finalist>& finalists = selection.finalists();
  const Problem problem = finalists.front().file.problem;
  int64_t workspace = 0;
  for (const Finalist& f : finalists)
    workspace = std::max(workspace, f.kernel().workspace);
  const TimingOperands operands(problem, workspace, command.options.seed);
  progress.live("waiting for the device and for compiles to end");
  const FileLock lock(timing_lock_path(), FileLock::kExclusive);
  const Turn quiet = Turn::quiet_turn();
  RaceOptions options;
  options.deadline = wall_seconds() + command.options.seconds;
  options.call_seconds = call_limit(problem, command.options.call_seconds);
  options.seed = command.options.seed;
  for (size_t anchor = 0;;) {
    Timed t = time_against(anchor, selection, vendor, operands, options, progress);
    if (t.anchor <= anchor || t.anchor == finalists.size())
      return t;
    anchor = t.anchor;
  }
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

std::string tell_vendor(const std::optional<Vendor>& vendor, const MeasureOptions& options) {
  if (vendor || !options.vendor)
    return "";
  return "no OpenBLAS here, so no vendor baseline; install libopenblas0 for one";
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
    log.environment = environment(device, "none");
    write_atomically(command.output, log.serialize());
    progress.summary("no candidate of any round was correct, so nothing was timed; see `deepgen report`");
    return;
  }
  const std::optional<Vendor> vendor = command.options.vendor ? Vendor::open() : std::nullopt;
  if (auto text = tell_vendor(vendor, command.options); !text.empty())
    progress.summary(text);
  const Timed timed = time(selection, vendor, command, progress);
  const bool any = timed.anchor < finalists.size();
  for (size_t i = 0; i < finalists.size(); ++i) {
    log.records.push_back(finalists[i].record);
    fill(log.records.back(), timed.finalists[i], timed.finalists[any ? timed.anchor : i],
         command.options.seed);
  }
  if (vendor && any) {
    log.records.push_back(vendor_record(finalists.front().record, vendor->name()));
    fill(log.records.back(), timed.vendor, timed.finalists[timed.anchor], command.options.seed);
  }
  const std::vector<double> noise =
      any ? log_ratios(timed.again, timed.finalists[timed.anchor]) : std::vector<double>();
  log.noise_floor = finite(noise_floor(noise));
  // Without a noise floor nothing can be said to be faster.
  log.stable = noise.size() >= kFewestForNoise && clean_share(timed.all) >= kCleanEnough;
  const bool against_default = timed.anchor == 0 && selection.has_default();
  log.environment =
      environment(device, against_default ? "default" : "the default failed, instead: a finalist");
  write_atomically(command.output, log.serialize());
  progress.summary(summary(log));
}

} // namespace deepgen
