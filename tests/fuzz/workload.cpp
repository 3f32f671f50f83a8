#include "tests/fuzz/target.h"
#include "workload/import.h"
#include "workload/summary.h"

namespace deepgen {
namespace {

void run_workload(const std::string& input) {
  fuzz::round_trip(
      input, [](const std::string& text) { return Workload::parse(text, "workload"); },
      [](const Workload& w) { return w.serialize(); });
}
const fuzz::Target workload_target("workload", run_workload);

/// A log of any kind, packed or not: what is read of it can be written, and that can be read.
void run_log(const std::string& input) {
  Importer importer;
  try {
    const std::unique_ptr<LogBytes> bytes = log_of(input, "log");
    importer.read(*bytes, "log");
  } catch (const HostFault&) {
    throw;
  } catch (const Error& e) {
    fuzz::require(e.what()[0] != 0, "an error without a message");
    return;
  }
  Workload w = importer.workload();
  const double all = w.seconds();
  const std::vector<WorkloadProblem> below = w.drop_below(0.1);
  fuzz::require(w.seconds() <= all * 1.0001 && w.seconds() >= all * 0.9999, "the threshold loses time");
  const std::string text = w.serialize();
  fuzz::require(Workload::parse(text, "again").serialize() == text,
                "a workload changes when it is read again");
  workload_csv(w, below), workload_table(w, 5);
}
const fuzz::Target log_target("log", run_log);

} // namespace
} // namespace deepgen
