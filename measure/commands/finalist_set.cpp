#include "measure/commands/finalist_set.h"

#include "base/kernel/device.h"
#include "base/search/sum_orders.h"
#include "base/text/error.h"
#include "measure/race/candidates.h"

#include <algorithm>

namespace deepgen {

FinalistSet::FinalistSet(const std::vector<std::string>& records, const std::vector<std::string>& awkward,
                         const std::string& output) {
  const std::vector<LoggedRecord> all = read_records(records);
  const LoggedRecord* standard = default_of(all);
  has_default_ = standard && standard->record.ok();
  for (const LoggedRecord& r : finalists_of(all)) finalists_.push_back(load(r, output));
  if (standard && !has_default_) {
    failed_.push_back(standard->record);
    failed_.back().stage = "final";
    failed_.back().kernel_file = relative_to_log(kernel_path(standard->record, standard->log), output);
  }
  for (const std::string& path : awkward) awkward_.push_back(KernelFile::read(path));
}

Finalist FinalistSet::load(const LoggedRecord& r, const std::string& output) const {
  const std::string path = kernel_path(r.record, r.log);
  Finalist f{r.record, KernelFile::read(path), r.record.timing ? r.record.timing->seconds : 0};
  check_unchanged(f.file, r.record, path, r.log);
  f.record.stage = "final";
  f.record.detail.clear();
  f.record.timing.reset(), f.record.bursts.reset();
  f.record.cached = false;
  f.record.kernel_file = relative_to_log(path, output);
  return f;
}

void FinalistSet::keep_first(size_t count) {
  if (count < finalists_.size())
    finalists_.erase(finalists_.begin() + std::ptrdiff_t(count), finalists_.end());
}

std::vector<KernelFile> FinalistSet::unverified() {
  std::vector<KernelFile> files;
  const std::vector<Finalist> all = finalists_; // rejecting shortens the list
  for (const Finalist& f : all) {
    // Verified in its round; with ranges at awkward sizes, too.
    if (!is_gpu(f.file.arch) || f.file.find("awkward") || f.file.problem.ranged()) continue;
    const auto twin = std::find_if(awkward_.begin(), awkward_.end(), [&](const KernelFile& a) {
      return a.status != "empty" && a.problem == f.file.problem && a.arch == f.file.arch &&
             a.choice == f.record.choice;
    });
    if (twin == awkward_.end())
      throw Error("a finalist was not verified on an awkward shape", f.record.choice.text(),
                  "its kernel file has the kernel of the tuned shape alone",
                  "pass with --awkward what `deepgen compile --finalist I --records ...` writes");
    if (twin->status == "ok" && twin->find("awkward"))
      files.push_back(*twin);
    else
      reject(f.record.choice, "compile_error", "awkward kernel: " + twin->detail);
  }
  return files;
}

void FinalistSet::reject_others() {
  std::vector<Record> records;
  for (const Finalist& f : finalists_) records.push_back(f.record);
  std::vector<Record*> list;
  for (Record& r : records) list.push_back(&r);
  reject_other_bits(list);
  for (const Record& r : records)
    if (!r.ok()) reject(r.choice, r.status, r.detail);
}

void FinalistSet::accept(const Choice& choice, double error) {
  for (Finalist& f : finalists_)
    if (f.record.choice == choice) f.record.error = std::max(f.record.error, error);
}

void FinalistSet::reject(const Choice& choice, const std::string& status, const std::string& detail) {
  const auto at = std::find_if(finalists_.begin(), finalists_.end(),
                               [&](const Finalist& f) { return f.record.choice == choice; });
  if (at == finalists_.end()) return;
  if (at == finalists_.begin()) has_default_ = false;
  failed_.push_back(at->record);
  failed_.back().status = status, failed_.back().detail = detail;
  finalists_.erase(at);
}

} // namespace deepgen
