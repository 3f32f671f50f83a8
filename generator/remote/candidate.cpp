#include "generator/remote/candidate.h"

#include "base/search/finalists.h"
#include "base/text/error.h"
#include "base/text/sha256.h"
#include "generator/codegen/cache_key.h"

namespace deepgen {

CompileJob CompileJob::of_slot(const Plan& plan, size_t slot) {
  const PlanSlot& s = plan.slots[slot];
  return {plan.problem, plan.arch, s.choice, s.origin};
}

std::string cache_key(const CompileJob& job, const CompiledParts& parts) {
  return kernel_cache_key(job.problem, job.arch, job.choice, parts.awkward, parts.fallbacks, job.reject()) +
         (parts.main ? "" : "awkward alone\n");
}

std::optional<KernelFile> find_cached(Cache& cache, const std::string& key, const CompileJob& job,
                                      const std::string& expected) {
  const std::optional<std::string> bytes = cache.find(CacheKind::kernel, key);
  if (!bytes) return std::nullopt;
  try {
    KernelFile file = KernelFile::parse(*bytes, "the cache's entry");
    if (file.problem != job.problem || file.arch != job.arch || file.choice != job.choice)
      return std::nullopt;
    const Kernel* main = file.find("main");
    if (!expected.empty() && (!main || main->sha256 != expected)) return std::nullopt;
    return file;
  } catch (const Error&) {
    return std::nullopt;
  }
}

KernelFile empty_slot(const Problem& problem, const std::string& arch) {
  KernelFile file;
  file.status = "empty";
  file.problem = problem;
  file.arch = arch;
  return file;
}

FinalistJob finalist_job(const std::vector<std::string>& paths, size_t index) {
  const std::vector<LoggedRecord> records = read_records(paths), finalists = finalists_of(records);
  FinalistJob found;
  found.none.status = "empty";
  if (!records.empty())
    found.none = empty_slot(Problem::parse(records.front().record.problem), records.front().record.arch);
  if (index < finalists.size()) {
    const Record& r = finalists[index].record;
    found.job = CompileJob{Problem::parse(r.problem), r.arch, r.choice, r.origin};
  }
  return found;
}

std::string list_line(const std::string& bytes, const std::string& name) {
  return sha256_hex(bytes) + "  " + name + "\n";
}

} // namespace deepgen
