#include "workload/import.h"

#include "base/files/files.h"
#include "base/problem/points.h"
#include "base/text/error.h"
#include "workload/estimate.h"
#include "workload/log/documents.h"
#include "workload/log/fields.h"

#include <algorithm>
#include <filesystem>

namespace deepgen {
namespace {

const LogKind* const kKinds[] = {&kHipblasltProfile, &kHipblasltBench, &kRocblasProfile, &kRocblasBench,
                                 &kCublasltTrace,    &kOnednnVerbose,  &kMklVerbose,     &kTunableOp};
constexpr size_t kKindCount = std::size(kKinds);
constexpr const char *kTraceKind = "PyTorch trace", *kCsvKind = "problem keys", *kWorkloadKind = "workload";

/// Calls of one file, by kind: two kinds may count the same calls.
struct OfKind {
  Tally tally;
  int64_t lines = 0;
};

void read_line(const LogKind& kind, std::string_view line, bool was_cut, const LogPlace& place, OfKind& of) {
  Call call;
  try {
    if (was_cut) throw Untranslatable{"the line is longer than 1 MiB"};
    if (!kind.read(line, call)) return;
    ++of.lines;
    if (call.calls > 0) of.tally.add(call, place);
  } catch (const Untranslatable& reason) {
    ++of.lines;
    of.tally.lose(reason.why, call, line, place);
  }
}

bool is_workload(std::string_view beginning) {
  const size_t at = beginning.find("\"schema\"");
  return beginning.starts_with('{') && at < 16 &&
         beginning.substr(at, 40).find("deepgen.workload/") != beginning.npos;
}

/// How much longer calls took than was estimated, over those whose time is known; 1 where none is.
double time_scale(const Tally& tally) {
  double seconds = 0, estimated = 0;
  for (const auto& [key, count] : tally.problems())
    if (count.timed > 0)
      seconds += count.seconds, estimated += double(count.timed) * estimated_seconds(Problem::parse(key));
  return seconds > 0 && estimated > 0 ? seconds / estimated : 1;
}

} // namespace

std::string log_kinds() {
  std::string text;
  for (const LogKind* kind : kKinds) text += std::string(kind->name) + ", ";
  return text + kTraceKind + ", CSV of " + kCsvKind + ", " + kWorkloadKind + ".json";
}

void Importer::read(const std::string& path) {
  const std::unique_ptr<LogBytes> bytes = open_log(path);
  read(*bytes, path);
}

void Importer::read(LogBytes& bytes, const std::string& name) {
  LogLines lines(bytes);
  WorkloadLog log{std::filesystem::path(name).filename().string(), {}, 0};
  const std::string_view beginning = lines.beginning();
  if (is_workload(beginning)) {
    read_workload(lines, log);
  } else if (is_torch_trace(beginning)) {
    log.kinds.emplace_back(kTraceKind, read_torch_trace(lines, name, int64_t(logs_.size()), tally_));
  } else if (is_key_csv(beginning)) {
    log.kinds.emplace_back(kCsvKind, read_key_csv(lines, int64_t(logs_.size()), tally_));
  } else {
    read_lines(lines, log);
  }
  log.lines = lines.number();
  if (log.kinds.empty())
    throw Error("no line of this log is of a kind that is known", name,
                "its " + std::to_string(log.lines) + " lines have no product of matrices",
                "logs are: " + log_kinds());
  logs_.push_back(std::move(log));
}

void Importer::read_lines(LogLines& lines, WorkloadLog& log) {
  OfKind found[kKindCount];
  size_t last = 0; // most lines are of the kind of the one before
  std::string_view line;
  while (lines.next(line)) {
    for (size_t i = 0; i < kKindCount; ++i) {
      const size_t kind = (last + i) % kKindCount;
      if (!kKinds[kind]->is(line)) continue;
      read_line(*kKinds[kind], line, lines.was_cut(), place(lines), found[kind]);
      last = kind;
      break;
    }
  }
  for (size_t i = 0; i < kKindCount; ++i) {
    if (!found[i].lines) continue;
    log.kinds.emplace_back(kKinds[i]->name, found[i].lines);
    const bool twice =
        kKinds[i]->instead && std::any_of(kKinds, kKinds + kKindCount, [&](const LogKind* const& other) {
          return std::string_view(other->name) == kKinds[i]->instead && found[&other - kKinds].lines > 0;
        });
    if (twice)
      notes_.push_back(log.name + ": the lines of " + kKinds[i]->name + " are not counted, as " +
                       kKinds[i]->instead + " counts the same calls");
    else
      tally_.take(found[i].tally);
  }
}

void Importer::read_workload(LogLines& lines, WorkloadLog& log) {
  std::string text;
  for (int c = 0; (c = lines.byte()) >= 0;) {
    text += char(c);
    if (int64_t(text.size()) > kMostBytes)
      throw Error("cannot read log", log.name, "it is a workload of more than 64 MiB", "name the right file");
  }
  const Workload w = Workload::parse(text, log.name);
  const int64_t number = int64_t(logs_.size());
  for (const WorkloadProblem& p : w.problems) {
    if (p.points.empty())
      tally_.count(p.problem.key()).add(p.calls, p.timed ? p.seconds : 0, p.problem.flops(), {number, 0});
    for (const WorkloadPoint& point : p.points) { // which another import may merge otherwise
      const Gemm& gemm = p.problem.gemm();
      Sizes sizes = gemm.sizes();
      sizes[*split_size(gemm)] = point.value;
      const Gemm one = gemm.at(sizes);
      tally_.count(one.key()).add(point.calls, point.timed ? point.seconds : 0, one.flops(), {number, 0});
    }
  }
  for (const WorkloadSkipped& s : w.skipped)
    tally_.lost_count(s.why, s.example)
        .add(s.calls, s.calls > 0 ? s.seconds / double(s.calls) : 0, 0, {number, 0});
  below_.problems += w.below.problems, below_.calls = std::min(below_.calls + w.below.calls, kMostCalls);
  below_.seconds += w.below.seconds;
  log.kinds.emplace_back(kWorkloadKind, int64_t(w.problems.size()));
}

Workload Importer::workload() {
  Workload w;
  w.logs = logs_, w.below = below_;
  const double scale = time_scale(tally_);
  for (const auto& [key, count] : tally_.problems()) {
    WorkloadProblem p{"", Problem::parse(key), count.calls, 0, count.timed > 0, count.places};
    p.name = function_name(p.problem);
    const double seconds =
        p.timed ? count.seconds / double(count.timed) : scale * estimated_seconds(p.problem);
    p.seconds = rounded(std::clamp(seconds, 1e-12, kMostSeconds));
    w.problems.push_back(std::move(p));
  }
  for (const auto& [why, lost] : tally_.lost()) {
    const int64_t untimed = lost.count.calls - lost.count.timed;
    const double each = untimed > 0 ? estimated_seconds(lost.count.flops / double(untimed)) : 0;
    const double seconds = lost.count.seconds + scale * double(untimed) * each;
    w.skipped.push_back(
        {why, lost.example, lost.count.calls, rounded(std::min(seconds, 1e30)), lost.count.places});
  }
  w.arrange();
  return w;
}

} // namespace deepgen
