#include "measure/race/candidates.h"

#include "base/files/files.h"
#include "base/kernel/cpu_isa.h"
#include "base/search/finalists.h"
#include "base/search/names.h"
#include "base/text/error.h"

#include <algorithm>
#include <filesystem>
#include <map>

namespace fs = std::filesystem;

namespace deepgen {
namespace {

std::string slot_path(const std::string& directory, int64_t slot) {
  return (fs::path(directory) / slot_file_name(slot)).string();
}

KernelFile read_slot(const std::string& path) {
  if (!file_exists(path))
    throw Error("a candidate's kernel file is missing", path,
                "every slot of the plan is compiled, even to a failure",
                "run `deepgen compile --plan PLAN --slot N -o " + path +
                    "`, or delete the folder's lists and build again");
  return KernelFile::read(path);
}

void check_against_plan(const KernelFile& file, const Plan& plan, int64_t slot, const std::string& path) {
  const bool planned = slot < int64_t(plan.slots.size());
  const std::string remedy = "compile the slot again; the plan has changed since";
  if (planned != (file.status != "empty"))
    throw Error("a kernel file does not match its plan", path,
                planned ? "the file is empty but the plan has the slot" : "the plan has no such slot",
                remedy);
  if (planned && (file.choice != plan.slots[size_t(slot)].choice || file.problem != plan.problem))
    throw Error("a kernel file does not match its plan", path,
                "it holds " + file.choice.text() + ", the plan says " +
                    plan.slots[size_t(slot)].choice.text(),
                remedy);
}

/// What is known before running it.
void decide_early(Candidate& c, int64_t device_isa, const std::string& path) {
  if (c.file.status == "failed") return c.decide("compile_error", c.file.detail);
  if (c.file.status != "ok" || !c.file.find("main"))
    throw Error("malformed kernel file", path, "status '" + c.file.status + "' and no main kernel",
                "delete it and build again");
  if (!runs_on(c.main().isa, device_isa))
    c.decide("unsupported", "needs " + isa_text(c.main().isa) + ", the device has " + isa_text(device_isa));
}

} // namespace

void Candidate::decide(const std::string& status, const std::string& detail) {
  record.status = status;
  record.detail = detail;
}

std::string relative_to_log(const std::string& path, const std::string& log) {
  const fs::path folder = fs::absolute(log).lexically_normal().parent_path();
  return fs::absolute(path).lexically_normal().lexically_relative(folder).generic_string();
}

std::string kernel_path(const Record& record, const std::string& log) {
  return (fs::absolute(log).parent_path() / record.kernel_file).lexically_normal().string();
}

Candidate load_candidate(const std::string& path, const std::string& log, int64_t device_isa) {
  Candidate c{read_slot(path), {}};
  Record& r = c.record;
  r.status = "";
  r.problem = c.file.problem.key();
  r.arch = c.file.arch;
  r.choice = c.file.choice;
  r.revision = c.file.revision;
  r.origin = c.file.origin;
  r.kernel_file = relative_to_log(path, log);
  if (const Kernel* kernel = c.file.find("main")) {
    r.sha256 = kernel->sha256;
    r.code_bytes = int64_t(kernel->code.size());
    r.workspace = kernel->workspace;
    r.sum_order = kernel->sum_order;
  }
  if (c.file.status != "empty") decide_early(c, device_isa, path);
  return c;
}

void tell_grids(const Kernel* kernel, const Device& device, Record& r) {
  if (kernel && kernel->problem.ranged()) r.grids = grids_of(*kernel, device);
}

void check_unchanged(const KernelFile& file, const Record& measured, const std::string& path,
                     const std::string& log) {
  const Kernel* kernel = file.find("main");
  if (!kernel || kernel->sha256 != measured.sha256)
    throw Error("a kernel file has changed since it was measured", path, "recorded in " + log,
                "measure that round again");
}

std::vector<Candidate> load_rivals(const std::vector<std::string>& logs, const Problem& problem,
                                   const std::string& log, int64_t device_isa) {
  std::vector<Candidate> rivals;
  for (const LoggedRecord& r : finalists_of(read_records(logs))) {
    if (r.record.origin == "default") continue;
    if (r.record.problem != problem.key())
      throw Error("an earlier round is of another problem than the plan", r.log, r.record.problem,
                  "pass the logs of the same search");
    const std::string path = kernel_path(r.record, r.log);
    Candidate c = load_candidate(path, log, device_isa);
    check_unchanged(c.file, r.record, path, r.log);
    if (!c.open())
      throw Error("a kernel of an earlier round cannot run here", path, c.record.detail,
                  "measure that round again");
    c.record.stage = r.record.stage, c.record.slot = r.record.slot, c.record.error = r.record.error;
    c.record.row_bits = r.record.row_bits;
    for (const PointTiming& p : r.record.points) c.at.push_back(p.at);
    rivals.push_back(std::move(c));
  }
  return rivals;
}

std::vector<Candidate> load_candidates(const Plan& plan, const std::string& directory, int64_t slots,
                                       const std::string& log, int64_t device_isa) {
  std::vector<Candidate> candidates;
  std::map<std::string, size_t> first; ///< of that code
  for (int64_t slot = 0; slot < std::max(slots, int64_t(plan.slots.size())); ++slot) {
    const std::string path = slot_path(directory, slot);
    Candidate c = load_candidate(path, log, device_isa);
    check_against_plan(c.file, plan, slot, path);
    if (c.file.status == "empty") continue;
    c.record.stage = "r" + std::to_string(plan.round);
    c.record.slot = slot;
    c.at = plan.slots[size_t(slot)].at;
    if (c.open()) {
      auto [earlier, is_new] = first.emplace(c.record.sha256, candidates.size());
      if (!is_new) {
        Candidate& same = candidates[earlier->second];
        if (!same.at.empty()) same.at.insert(same.at.end(), c.at.begin(), c.at.end());
        if (c.at.empty()) same.at.clear();
        c.decide("duplicate", "the same code as " + c.record.stage + "/" + std::to_string(same.record.slot));
      }
    }
    candidates.push_back(std::move(c));
  }
  return candidates;
}

} // namespace deepgen
