// Each grammar of a log by itself, line by line: what is read is a problem in its one spelling, with numbers
// that can be counted.
#include "tests/fuzz/target.h"
#include "workload/log/documents.h"
#include "workload/log/fields.h"
#include "workload/log/tally.h"

#include <cmath>

namespace deepgen {
namespace {

void check_call(const Call& call) {
  fuzz::require(call.calls >= 0 && std::isfinite(call.seconds) && call.seconds >= 0,
                "a call without number or time");
  fuzz::require(std::isfinite(call.flops) && call.flops >= 0, "work that cannot be added up");
  if (call.calls == 0) return;
  const std::string key = call.problem.key();
  validate(call.problem);
  fuzz::require(Problem::parse(key).key() == key, "a problem in another than its one spelling");
}

void check_line(const LogKind& kind, std::string_view line) {
  Call call;
  try {
    if (kind.read(line, call)) check_call(call);
  } catch (const Untranslatable& reason) {
    fuzz::require(!reason.why.empty(), "a reason without words");
    fuzz::require(call.calls >= 0 && std::isfinite(call.seconds) && std::isfinite(call.flops),
                  "what is lost cannot be weighed");
  }
}

/// Damage of a packed file is an Error, too.
template <const LogKind& kind>
void run_lines(const std::string& input) {
  try {
    const std::unique_ptr<LogBytes> bytes = log_of(input, "log");
    LogLines lines(*bytes);
    for (std::string_view line; lines.next(line);)
      if (kind.is(line)) check_line(kind, line);
  } catch (const HostFault&) {
    throw;
  } catch (const Error& e) {
    fuzz::require(e.what()[0] != 0, "an error without a message");
  }
}

template <int64_t (*read)(LogLines&, Tally&)>
void run_document(const std::string& input) {
  Tally tally;
  try {
    const std::unique_ptr<LogBytes> bytes = log_of(input, "log");
    LogLines lines(*bytes);
    fuzz::require(read(lines, tally) >= 0, "fewer calls than none");
  } catch (const HostFault&) {
    throw;
  } catch (const Error& e) {
    fuzz::require(e.what()[0] != 0, "an error without a message");
  }
  for (const auto& [key, count] : tally.problems())
    fuzz::require(Problem::parse(key).key() == key && count.calls >= 0 && std::isfinite(count.seconds),
                  "a problem that cannot be counted");
}

int64_t read_trace(LogLines& lines, Tally& tally) { return read_torch_trace(lines, "log", 0, tally); }
int64_t read_keys(LogLines& lines, Tally& tally) { return read_key_csv(lines, 0, tally); }

const fuzz::Target grammars[] = {{"hipblaslt_profile", run_lines<kHipblasltProfile>},
                                 {"hipblaslt_bench", run_lines<kHipblasltBench>},
                                 {"rocblas_profile", run_lines<kRocblasProfile>},
                                 {"rocblas_bench", run_lines<kRocblasBench>},
                                 {"cublaslt", run_lines<kCublasltTrace>},
                                 {"onednn", run_lines<kOnednnVerbose>},
                                 {"mkl", run_lines<kMklVerbose>},
                                 {"tunableop", run_lines<kTunableOp>},
                                 {"torch_trace", run_document<read_trace>},
                                 {"key_csv", run_document<read_keys>}};

} // namespace
} // namespace deepgen
