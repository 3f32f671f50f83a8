#include "base/text/sha256.h"
#include "tests/fuzz/target.h"
#include "workload/mlir/memref_source.h"
#include "workload/mlir/scheduler.h"

namespace deepgen {
namespace {

/// What is accepted survives being written, and becomes a source.
void run_manifest(const std::string& input) {
  fuzz::round_trip(
      input, [](const std::string& text) { return tensors::Manifest::parse(text, "manifest"); },
      [](const tensors::Manifest& m) {
        const std::string source = tensors::memref_source(m, "kernels", "kernels.h");
        fuzz::require(source.find("*/") == std::string::npos, "a name has left its comment");
        return m.serialize();
      });
}
const fuzz::Target manifest_target("manifest", run_manifest);

/// Whatever an INI asks for can be written as a search file and read again.
void run_scheduler(const std::string& input) {
  tensors::ScheduledSearch search;
  try {
    const tensors::Scheduler s = tensors::Scheduler::parse(input, "auto-scheduler.cfg");
    Gemm half;
    half.a = half.b = half.d = Type::f16;
    complete(half);
    search = tensors::search_of(s, {Gemm(), half});
  } catch (const Error& e) {
    fuzz::require(e.what()[0] != 0, "an error without a message");
    return;
  }
  const std::string text = search.options.serialize();
  fuzz::require(SearchOptions::parse(text, "again").serialize() == text,
                "a search changes when it is read again");
}
const fuzz::Target scheduler_target("scheduler", run_scheduler);

} // namespace
} // namespace deepgen
