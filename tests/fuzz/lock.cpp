#include "generator/lock/lock.h"
#include "base/json/json.h"
#include "generator/lock/evidence.h"
#include "generator/space/space.h"
#include "tests/fuzz/target.h"

namespace deepgen {

// The tool's templates need MLIR. Without them every entry is stale, which find() has to bear too, and
// nothing is tuned.
const Template& find_template(const std::string& name) { throw Error("unknown template", name); }
Json evidence_of(const Decision&, const RecordLog&, const std::vector<RecordLog>&, const Tuned&) {
  return Json::object();
}
std::string why_illegal(const Problem&, const std::string&, const Device&, const Choice& choice) {
  throw Error("unknown template", choice.template_name);
}

namespace {

void run_lock(const std::string& input) {
  fuzz::round_trip(
      input, [](const std::string& text) { return Lock::parse(text, "lock"); },
      [](const Lock& lock) {
        Lock copy = lock;
        for (const LockEntry& e : lock.entries()) {
          fuzz::require(lock.find(e.problem, e.arch, e.device) != nullptr, "an entry is not found");
          fuzz::require(!statement(e.evidence, e.device).empty(), "evidence without a statement");
          fuzz::require(!copy.put(e), "putting an entry again changes the lock");
        }
        return lock.serialize();
      });
}
const fuzz::Target lock_target("lock", run_lock);

} // namespace
} // namespace deepgen
