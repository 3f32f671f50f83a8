// The candidates of one round as files, and what becomes of them as records.
#pragma once

#include "base/kernel/device.h"
#include "base/kernel/kernel.h"
#include "base/search/plan.h"
#include "base/search/record.h"

namespace deepgen {

struct Candidate {
  KernelFile file;
  Record record; ///< status is empty until something decided it
  /// Of a problem with ranges: the sizes at which it is timed; none: wherever the round times anybody.
  std::vector<Sizes> at = {};
  const Kernel& main() const { return *file.find("main"); }
  bool open() const { return record.status.empty(); }
  void decide(const std::string& status, const std::string& detail);
};

/// Reads DIR/sNN.dgk for NN in [0, slots); paths in the records are relative to the folder of `log`. Slots
/// that the plan lacks give no candidate. Failed compiles, code that the device cannot run and code equal to
/// an earlier slot's are decided already. Throws Error when a file is missing, or is not what the plan says.
std::vector<Candidate> load_candidates(const Plan& plan, const std::string& directory, int64_t slots,
                                       const std::string& log, int64_t device_isa);

/// A candidate that is in no plan slot, such as the anchor.
Candidate load_candidate(const std::string& path, const std::string& log, int64_t device_isa);

/// The best of earlier rounds' logs, open again, with stage and slot of the round that they are from. Not the
/// default. Throws Error when the logs are of another problem, or a kernel file has changed.
std::vector<Candidate> load_rivals(const std::vector<std::string>& logs, const Problem&,
                                   const std::string& log, int64_t device_isa);

/// Of a problem with ranges, on a GPU: which grids its calls have.
void tell_grids(const Kernel*, const Device&, Record&);

/// `path` as seen from the folder of `log`.
std::string relative_to_log(const std::string& path, const std::string& log);
/// Throws Error unless the record's kernel file, at `path`, has the code still that was measured; `log` is
/// for the message.
void check_unchanged(const KernelFile&, const Record&, const std::string& path, const std::string& log);
/// The path of a record's kernel file, given the log that holds the record.
std::string kernel_path(const Record& record, const std::string& log);

} // namespace deepgen
