// What a compile edge is asked for, and where the cache has it: one rule for who compiles here and who has it
// compiled elsewhere.
#pragma once

#include "base/files/cache.h"
#include "base/kernel/kernel.h"
#include "base/search/plan.h"

#include <optional>
#include <string>
#include <vector>

namespace deepgen {

struct CompileJob {
  Problem problem;
  std::string arch;
  Choice choice;
  std::string origin;

  static CompileJob of_slot(const Plan&, size_t slot); ///< the plan has the slot
  /// Whether code that is not worth running is a failure. The lock's config is built in any case: with its
  /// own ptxas it was sound.
  bool reject() const { return origin != "lock"; }
};

/// What is compiled of a candidate.
struct CompiledParts {
  bool main = true, awkward = false, fallbacks = false;
};

std::string cache_key(const CompileJob&, const CompiledParts&);
/// Nothing where the entry is not what compiling could have made: another candidate's, or other code than the
/// lock's (`expected`, unless empty), which the compiler then decides.
std::optional<KernelFile> find_cached(Cache&, const std::string& key, const CompileJob&,
                                      const std::string& expected = "");

/// What a slot beyond the end of its plan compiles to.
KernelFile empty_slot(const Problem&, const std::string& arch);

/// The candidates' logs say which one is finalist number `index`; nothing when there are fewer. `none` is
/// then what is written.
struct FinalistJob {
  std::optional<CompileJob> job;
  KernelFile none;
};
FinalistJob finalist_job(const std::vector<std::string>& records, size_t index);

/// "hash  s07.dgk": what a list of kernel files says of one.
std::string list_line(const std::string& bytes, const std::string& name);

} // namespace deepgen
