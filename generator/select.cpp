#include "generator/select.h"

#include "base/error.h"
#include "generator/decide.h"
#include "generator/final_log.h"
#include "generator/space.h"

#include <limits>

namespace deepgen {
namespace {

struct Context {
  Mode mode;
  Device device; ///< of the ladder
  const Lock& lock;
};

/// What a frozen build is for is not known, so it has every level: the best entry is linked, and with it the
/// fallbacks for lesser CPUs.
Device best_device(const std::string& arch) {
  Device device = generic_device(arch);
  device.name.clear();
  device.isa = std::numeric_limits<int64_t>::max();
  return device;
}

Selection make(const SelectRequest& r, const Choice& choice, int64_t revision, std::string origin,
               std::string sha256 = "", std::string note = "") {
  if (!note.empty())
    note = "deepgen: " + r.file.label() + ": " + note;
  return {{r.file.problem, r.arch, choice, revision, std::move(origin), std::move(sha256)}, std::move(note)};
}

Selection take_default(const Context& c, const SelectRequest& r, const std::string& note) {
  const Device device = c.mode == Mode::automatic ? c.device : generic_device(r.arch);
  const Choice choice = Space(r.file.problem, r.arch, device).default_choice();
  return make(r, choice, find_template(choice.template_name).revision(), "default", "", note);
}

Selection take_entry(const SelectRequest& r, const LockEntry& e) {
  return make(r, e.choice, e.revision, "lock", e.sha256);
}

/// `stale` may be a whole error report; the note is one line.
std::string stale_text(const std::string& stale) {
  return "the lock entry is stale (" + stale.substr(0, stale.find('\n')) + "); ";
}

/// What the search found, or the default when there was none.
Selection from_records(const Context& c, const SelectRequest& r, const std::string& stale) {
  const RecordLog* final = final_log(r.logs, r.file.problem.key(), r.arch);
  if (!final) {
    const std::string why = !stale.empty()   ? stale_text(stale) + "using the default config"
                            : r.logs.empty() ? "untuned for " + r.arch
                                             : "no candidate could be measured on " + r.arch;
    return take_default(c, r, why + "; run `ninja tune`");
  }
  const Decision decision = decide(*final);
  if (!decision.found)
    throw Error("the search found no correct kernel", r.file.label() + ", " + r.file.problem.key(),
                decision.reason, "see `deepgen report --records ...`; the template may have a defect");
  const Record& w = decision.winner;
  return make(r, w.choice, w.revision, "search", "",
              stale.empty() ? "" : stale_text(stale) + "using this build's search");
}

std::string missing_text(const SelectRequest& r) {
  return r.file.label() + ": missing: no entry for " + r.file.problem.key() + " on " + r.arch;
}

} // namespace

Mode parse_mode(const std::string& text) {
  if (text == "auto")
    return Mode::automatic;
  if (text == "lock")
    return Mode::lock;
  if (text == "frozen")
    return Mode::frozen;
  throw Error("unknown mode '" + text + "'", "--mode", "", "use auto, lock or frozen");
}

Device generic_device(const std::string& arch) {
  Device device;
  device.arch = arch;
  device.present = false;
  device.name = "generic";
  device.isa = 3;
  return device;
}

std::vector<Selection> select(Mode mode, const Device& device, const Lock& lock, const std::string& lock_path,
                              const std::vector<SelectRequest>& requests) {
  const bool frozen = mode == Mode::frozen;
  const Context c{mode, frozen ? best_device(device.arch) : device, lock};
  std::vector<Selection> selections;
  std::string failures;
  for (const SelectRequest& r : requests) {
    if (r.file.untuned) {
      selections.push_back(take_default(c, r, ""));
      continue;
    }
    const LockEntry* entry = lock.find(r.file.problem.key(), r.arch, c.device);
    const std::string stale = entry ? why_stale(*entry) : "";
    if (entry && stale.empty())
      selections.push_back(take_entry(r, *entry));
    else if (frozen)
      failures += "\n  " + (entry ? r.file.label() + ": stale: " + stale.substr(0, stale.find('\n'))
                                  : missing_text(r));
    else if (mode == Mode::automatic)
      selections.push_back(from_records(c, r, stale));
    else if (entry)
      selections.push_back(
          take_default(c, r, stale_text(stale) + "using the default config; run `ninja tune`"));
    else
      selections.push_back(take_default(c, r, "untuned for " + r.arch + "; run `ninja tune`"));
  }
  if (!failures.empty())
    throw Error("a frozen build needs a good lock entry for every problem" + failures, lock_path, "",
                "run `ninja tune` where the device is attached and commit the lock");
  return selections;
}

} // namespace deepgen
