#include "measure/cpu/verify_all.h"

#include "base/json/json.h"
#include "base/kernel/cpu_isa.h"
#include "base/text/error.h"
#include "measure/cpu/subject.h"
#include "measure/process/stopwatch.h"
#include "measure/process/worker.h"
#include "measure/values/verdict_messages.h"

#include <algorithm>
#include <map>
#include <new>
#include <utility>

namespace deepgen {
namespace {

/// Lives in a worker; keeps the operands of shapes that several candidates share.
class Verifier {
public:
  Verifier(CaseSet& cases, const VerifyOptions& options, Channel& channel)
      : cases_(cases), options_(options), channel_(channel) {}

  Verdict verify(const KernelFile& file) {
    Verdict worst;
    SameOrder same;
    for (const Kernel& kernel : file.kernels) {
      if (!runs_on(kernel.isa, options_.device_isa))
        continue; // a fallback's awkward twin, for a better device
      const Verdict one = verify(kernel);
      if (one.status != "ok") return {one.status, kernel.role + " kernel: " + one.detail, one.error};
      worst.error = std::max(worst.error, one.error);
      if (std::string why = same.add(kernel, one); !why.empty()) return {"varies", why, one.error};
      if (&kernel == file.find("main")) worst.row_bits = one.row_bits;
    }
    return worst;
  }

private:
  Verdict verify(const Kernel& kernel) {
    const double limit = call_limit(kernel.problem, options_.call_seconds);
    const std::string prefix = kernel.role + " kernel, case '";
    channel_.step("preparing the " + kernel.role + " kernel", std::max(limit, 60.0));
    CaseSet& cases = cases_for(kernel.problem);
    const LoadedKernel loaded(kernel);
    return cases.verify(loaded, kernel.workspace,
                        [&](const std::string& name) { channel_.step(prefix + name + "'", limit); });
  }

  CaseSet& cases_for(const Problem& problem) {
    if (problem == cases_.problem()) return cases_;
    auto& own = own_[problem.key()];
    if (!own) own = subject_of(problem)->cases(options_.seed);
    return *own;
  }

  CaseSet& cases_;
  const VerifyOptions& options_;
  Channel& channel_;
  std::map<std::string, std::unique_ptr<CaseSet>> own_;
};

/// What the sets of cases of other problems than the tuned one take, and the largest workspace.
int64_t bytes_for(const std::vector<Candidate*>& candidates, const Problem& tuned) {
  std::map<std::string, double> sets;
  double workspace = 0;
  for (const Candidate* c : candidates)
    for (const Kernel& kernel : c->file.kernels) {
      workspace = std::max(workspace, double(kernel.workspace));
      if (kernel.problem != tuned) sets[kernel.problem.key()] = subject_of(kernel.problem)->case_bytes();
    }
  for (const auto& [key, bytes] : sets) workspace += bytes;
  return int64_t(std::min(workspace, 1e18));
}

/// What an exception that is being handled says about the candidate. Passes on what it is not to blame for.
Verdict verdict_on(const std::exception& e) {
  if (sandbox::memory_is_used_up())
    return {"crash", "it took more memory than the sandbox allows; then: " + std::string(e.what()), 0};
  if (dynamic_cast<const HostFault*>(&e) || dynamic_cast<const std::bad_alloc*>(&e)) throw;
  return {"unsupported", e.what(), 0};
}

/// The worker's body: verdicts for candidates[from...], in order, until the deadline.
void verify_from(const std::vector<Candidate*>& candidates, size_t from, CaseSet& cases,
                 const VerifyOptions& options, Channel& channel) {
  channel.confine(
      {bytes_for(candidates, cases.problem()), sandbox::enough_seconds(options.deadline - wall_seconds())});
  Verifier verifier(cases, options, channel);
  for (size_t i = from; i < candidates.size(); ++i) {
    if (i > 0 && wall_seconds() > options.deadline)
      return; // the first one is the default: it is always verified
    Verdict verdict;
    try {
      verdict = verifier.verify(candidates[i]->file);
    } catch (const std::exception& e) {
      verdict = verdict_on(e);
    }
    channel.send(to_json(Verified{i, verdict}));
  }
}

} // namespace

void verify_all(const std::vector<Candidate*>& candidates, CaseSet& cases, VerifyOptions options,
                Progress& progress) {
  size_t next = 0, spared = candidates.size();
  double last_verdict = wall_seconds();
  const auto show = [&] {
    progress.live("verified " + std::to_string(next) + "/" + std::to_string(candidates.size()));
  };
  const auto on_verdict = [&](const Json& json) {
    const VerdictMessage message = verdict_message_from(json, next);
    const auto* verified = std::get_if<Verified>(&message);
    if (!verified) return;
    Candidate& c = *candidates[next];
    c.record.error = verified->verdict.error;
    c.record.row_bits = verified->verdict.row_bits;
    if (verified->verdict.status != "ok") c.decide(verified->verdict.status, verified->verdict.detail);
    ++next;
    last_verdict = wall_seconds();
    show();
  };
  show();
  while (next < candidates.size()) {
    WorkerEnd end;
    try {
      end = run_worker([&](Channel& channel) { verify_from(candidates, next, cases, options, channel); },
                       on_verdict, options.end);
    } catch (const HostFault&) {
      if (std::exchange(spared, next) == next) throw;
      continue; // a new worker has the operands of no earlier candidate, and others may have ended meanwhile
    } catch (const ForeignMessage& e) {
      end = {WorkerEnd::crash, e.what(), "", false, 0};
    }
    if (end.kind == WorkerEnd::done || end.kind == WorkerEnd::late) break;
    if (next >= candidates.size()) break; // it died after its last verdict, which stands
    if (end.killed && std::exchange(spared, next) == next) throw killed_twice(end);
    if (end.killed) continue;
    Candidate& c = *candidates[next++];
    const double lost = wall_seconds() - std::exchange(last_verdict, wall_seconds());
    if (end.kind == WorkerEnd::timeout)
      options.deadline += lost; // waiting for one that hangs is not at the others' expense
    if (!end.fault.empty())
      c.decide("out_of_bounds", end.fault + "; " + end.detail);
    else
      c.decide(end.kind == WorkerEnd::timeout ? "timeout" : "crash", end.detail);
  }
  for (; next < candidates.size(); ++next)
    candidates[next]->decide("dropped", "not verified within the time budget; raise --seconds");
}

} // namespace deepgen
