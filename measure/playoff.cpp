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

/// Arms: the finalists in order, then the first one again, then the vendor.
std::vector<ArmResult> time(const Selection& selection, const std::optional<Vendor>& vendor,
                            const PlayoffCommand& command, Progress& progress) {
  const std::vector<Finalist>& finalists = selection.finalists();
  const Problem problem = finalists.front().file.problem;
  int64_t workspace = 0;
  for (const Finalist& f : finalists)
    workspace = std::max(workspace, f.kernel().workspace);
  const TimingOperands operands(problem, workspace, command.options.seed);
  std::vector<Arm> arms;
  for (const Finalist& f : finalists)
    arms.push_back(kernel_arm(f.record.choice.text(), f.kernel(), operands));
  arms.push_back(kernel_arm("the first again", finalists.front().kernel(), operands));
  if (vendor)
    arms.push_back(vendor_arm(*vendor, problem, operands));
  progress.live("waiting for the device and for compiles to end");
  const FileLock lock(timing_lock_path(), FileLock::kExclusive);
  const Turn quiet = Turn::quiet_turn();
  RaceOptions options;
  options.deadline = wall_seconds() + command.options.seconds;
  options.call_seconds = call_limit(problem, command.options.call_seconds);
  options.seed = command.options.seed;
  return full_race(arms, kFewestRounds, kMostRounds, options, progress);
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
  text += " of the default's time, noise " + percent(log.noise_floor);
  return log.stable ? text : text + ", unstable: the machine was too busy";
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
    progress.summary("no candidate of any round was correct; the default is used untimed");
    return;
  }
  const std::optional<Vendor> vendor = command.options.vendor ? Vendor::open() : std::nullopt;
  if (auto text = tell_vendor(vendor, command.options); !text.empty())
    progress.summary(text);
  const std::vector<ArmResult> results = time(selection, vendor, command, progress);
  const size_t anchor = anchor_of(results), again = finalists.size();
  if (anchor < results.size()) {
    for (size_t i = 0; i < finalists.size(); ++i) {
      log.records.push_back(finalists[i].record);
      fill(log.records.back(), results[i], results[anchor], command.options.seed);
    }
    if (vendor) {
      log.records.push_back(vendor_record(finalists.front().record, vendor->name()));
      fill(log.records.back(), results[again + 1], results[anchor], command.options.seed);
    }
    log.noise_floor = finite(noise_floor(log_ratios(results[again], results.front())));
    log.stable = clean_share(results) >= kCleanEnough;
  }
  const bool against_default = anchor == 0 && selection.has_default();
  log.environment =
      environment(device, against_default ? "default" : "the default failed, instead: a finalist");
  write_atomically(command.output, log.serialize());
  progress.summary(summary(log));
}

} // namespace deepgen
