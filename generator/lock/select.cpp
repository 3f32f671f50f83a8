#include "generator/lock/select.h"

#include "base/search/decide.h"
#include "base/search/ranged_decision.h"
#include "base/search/vendor_choice.h"
#include "base/text/error.h"
#include "generator/lock/failures.h"
#include "generator/lock/final_log.h"
#include "generator/lock/ranged_entry.h"
#include "generator/search/search.h"
#include "generator/space/ranged_default.h"

#include <limits>

namespace deepgen {
namespace {

constexpr size_t kInstead = 8; ///< configs to try when the default one cannot be compiled

struct Context {
  Mode mode;
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

Selected make(const SelectRequest& r, LockedChoice choice, std::string origin, std::string note = "") {
  if (!note.empty()) note = "deepgen: " + r.file.label() + ": " + note;
  return {{r.file.label(), r.file.problem, r.arch, std::move(choice), std::move(origin), {}, {}, {}},
          std::move(note)};
}

/// The model's best of other kinds: what follows the default in the plan of a first round.
std::vector<Choice> instead_of_default(const SelectRequest& r, const Device& device) {
  SearchInput in;
  in.problem = r.file.problem, in.arch = r.arch, in.device = device;
  in.slots = kInstead + 1;
  std::vector<Choice> choices;
  for (const PlanSlot& slot : next_plan(in).slots)
    if (slot.origin != "default") choices.push_back(slot.choice);
  return choices;
}

LockedChoice untuned(const Problem& p, const Choice& choice) {
  return {choice, find_template(choice.template_name).revision_for(p, choice.config), "", "", ""};
}

TunePoints points_of(const SelectRequest& r) {
  return r.file.points.at.empty() ? default_tune_points(r.file.problem) : r.file.points;
}

/// Of a problem with ranges: a kernel for each part of the sizes, the one for the largest first.
Selected take_ranged_default(const SelectRequest& r, const Device& device, const std::string& note) {
  std::vector<RangedChoice> choices = ranged_default(r.file.problem, r.arch, device, points_of(r));
  const bool several = choices.size() > 1;
  std::vector<LockedChoice> parts;
  for (const RangedChoice& c : choices) {
    parts.push_back(untuned(r.file.problem, c.choice));
    if (several) parts.back().taken = c.taken;
  }
  Selected s = make(r, parts.back(), "default", note);
  parts.pop_back();
  s.choice.ranges = std::move(parts);
  return s;
}

Selected take_default(const Context& c, const SelectRequest& r, const std::string& note) {
  const bool host = c.mode == Mode::automatic && (r.device.present || !is_gpu(r.arch));
  const Device device = host ? r.device : generic_device(r.arch);
  if (r.file.problem.ranged()) return take_ranged_default(r, device, note);
  const Choice choice = Space(r.file.problem, r.arch, device).default_choice();
  Selected s = make(r, untuned(r.file.problem, choice), "default", note);
  if (is_gpu(r.arch)) s.choice.instead = instead_of_default(r, device);
  return s;
}

LockedChoice locked(const LockEntry& e, const SelectRequest& r, const std::string& device = "") {
  return {e.choice,
          e.revision,
          e.sha256,
          e.toolchain,
          device,
          e.taken,
          r.file.fallback ? e.vendor : std::nullopt};
}

std::vector<LockedChoice> locked_ranges(const LockEntry& e, const std::string& device = "") {
  std::vector<LockedChoice> out;
  for (const LockedPart& part : e.ranges)
    out.push_back({part.choice, part.revision, part.sha256, e.toolchain, device, part.taken});
  return out;
}

std::string stale_text(const std::string& stale) {
  return "the lock entry is stale (" + first_line(stale) + "); ";
}

std::string untuned_text(const Context& c, const SelectRequest& r) {
  if (is_gpu(r.arch) && !r.device.present && c.mode == Mode::automatic)
    return "no " + r.arch + " device here: the default config; run `ninja tune` where there is one";
  return "untuned for " + r.arch + "; run `ninja tune`";
}

Selected ranged_from_records(const Context& c, const SelectRequest& r, const RecordLog& final,
                             const std::string& stale) {
  const RangedDecision d = decide_ranges(r.file.problem, final);
  if (!d.found) return take_default(c, r, d.reason + "; run `ninja tune`");
  std::vector<LockedChoice> parts;
  for (const RangedWinner& w : d.parts) {
    parts.push_back({w.record.choice, w.record.revision, "", "", ""});
    if (d.parts.size() > 1) parts.back().taken = w.taken;
  }
  std::string note = stale.empty() ? "" : stale_text(stale) + "using this build's search";
  if (d.bound && !d.bound->kept) note += (note.empty() ? "" : "; ") + d.reason;
  Selected s = make(r, parts.back(), "search", note);
  parts.pop_back();
  s.choice.ranges = std::move(parts);
  return s;
}

/// What the search found, or the default when there was none.
Selected from_records(const Context& c, const SelectRequest& r, const std::string& stale) {
  const RecordLog* final = final_log(r.logs, r.file.problem.key(), r.arch);
  if (!final && stale.empty() && r.logs.empty()) return take_default(c, r, untuned_text(c, r));
  if (!final)
    return take_default(c, r,
                        (stale.empty() ? "no candidate could be measured on " + r.arch
                                       : stale_text(stale) + "using the default config") +
                            "; run `ninja tune`");
  if (const std::string why = out_of_time(*final); !why.empty())
    return take_default(c, r, (stale.empty() ? "" : stale_text(stale)) + why);
  if (r.file.problem.ranged()) return ranged_from_records(c, r, *final, stale);
  const Decision decision = decide(*final);
  const std::string alike = common_failure(r.logs);
  if (!decision.found)
    throw Error("the search found no correct kernel", r.file.label() + ", " + r.file.problem.key(),
                decision.reason + (alike.empty() ? "" : "; " + alike),
                "see `deepgen report --records ...`; the template may have a defect");
  const Record& w = decision.winner;
  LockedChoice choice{w.choice, w.revision, "", "", ""};
  if (r.file.fallback) choice.vendor = vendor_choice(*final, decision, r.device.name).call;
  return make(r, std::move(choice), "search",
              stale.empty()
                  ? alike
                  : stale_text(stale) + "using this build's search" + (alike.empty() ? "" : "; " + alike));
}

std::string missing_text(const SelectRequest& r) {
  return r.file.label() + ": missing: no entry for " + r.file.problem.key() + " on " + r.arch;
}

/// The entries of one problem on one arch that a library links, the general one first, and why others are not
/// good.
struct Found {
  std::vector<const LockEntry*> good;
  std::string stale; ///< why, of the first stale one; empty when there is none
};

/// Stale, or more than KERNELS; empty when it is good.
std::string why_not_linked(const LockEntry& e, const SelectRequest& r) {
  const std::string stale = why_stale(e);
  return stale.empty() ? why_too_many(e, r.file.points.kernels) : stale;
}

/// Of a GPU arch all devices' entries; the first by name also serves the devices that have none.
Found find_for_gpus(const Lock& lock, const SelectRequest& r) {
  Found found;
  for (const LockEntry* e : lock.find_all(r.file.problem.key(), r.arch)) {
    const std::string why = why_not_linked(*e, r);
    if (why.empty())
      found.good.push_back(e);
    else if (found.stale.empty())
      found.stale = e->device.name + ": " + why;
  }
  return found;
}

/// Of entries that come near.
Found other_problem(const Context& c, const SelectRequest& r) {
  if (const LockEntry* e = find_other_invariance(c.lock, r.file.problem, r.arch))
    return {{},
            std::string("it was tuned ") + (r.file.problem.batch_invariant() ? "without" : "with") +
                " BATCH_INVARIANT: " + e->problem};
  const LockEntry* e = find_other_ranges(c.lock, r.file.problem, r.arch);
  if (!e) return {};
  const std::string what = r.file.problem.op() == "gemm" ? "ranges" : "calls";
  return {{}, "it was tuned for other " + what + ": " + e->problem};
}

Found find(const Context& c, const SelectRequest& r) {
  const std::string key = r.file.problem.key();
  if (is_gpu(r.arch)) {
    const Found found = find_for_gpus(c.lock, r);
    return found.good.empty() && found.stale.empty() ? other_problem(c, r) : found;
  }
  const LockEntry* e = c.lock.find(key, r.arch, c.mode == Mode::frozen ? best_device(r.arch) : r.device);
  if (!e) return other_problem(c, r);
  const std::string stale = why_not_linked(*e, r);
  return stale.empty() ? Found{{e}, ""} : Found{{}, stale};
}

/// What to say of an entry that is built from.
std::string note_on(const LockEntry& e, const SelectRequest& r, const std::string& stale) {
  if (!stale.empty()) return stale_text(stale) + "using that of " + e.device.name;
  if (!r.file.own_points) return "";
  const std::string others = tuned_for_others(e, r.file.problem, r.file.points);
  return others.empty() ? ""
                        : "the lock entry was tuned at " + others +
                              ", and TUNE_AT or WEIGHTS say otherwise; run `ninja tune`";
}

Selected take_entries(const SelectRequest& r, const Found& found) {
  const LockEntry& general = *found.good.front();
  Selected s = make(r, locked(general, r), "lock", note_on(general, r, found.stale));
  s.choice.ranges = locked_ranges(general);
  for (const LockEntry* e : found.good)
    if (e->choice != general.choice || e->revision != general.revision || e->sha256 != general.sha256 ||
        e->taken != general.taken || e->ranges != general.ranges ||
        (r.file.fallback && e->vendor != general.vendor)) {
      s.choice.devices.push_back(locked(*e, r, e->device.name));
      for (LockedChoice& part : locked_ranges(*e, e->device.name))
        s.choice.devices.push_back(std::move(part));
    }
  return s;
}

} // namespace

Mode parse_mode(const std::string& text) {
  if (text == "auto") return Mode::automatic;
  if (text == "lock") return Mode::lock;
  if (text == "frozen") return Mode::frozen;
  throw Error("unknown mode '" + text + "'", "--mode", "", "use auto, lock or frozen");
}

Device generic_device(const std::string& arch) {
  if (is_gpu(arch)) return generic_gpu(arch);
  Device device;
  device.arch = arch;
  device.present = false;
  device.name = "generic";
  device.isa = 3;
  return device;
}

std::vector<Selected> select(Mode mode, const Lock& lock, const std::string& lock_path,
                             const std::vector<SelectRequest>& requests) {
  const bool frozen = mode == Mode::frozen;
  const Context c{mode, lock};
  std::vector<Selected> selections;
  std::string failures;
  for (const SelectRequest& r : requests) {
    if (r.file.untuned) {
      selections.push_back(take_default(c, r, ""));
      continue;
    }
    const Found found = find(c, r);
    if (!found.good.empty() && (found.stale.empty() || !frozen))
      selections.push_back(take_entries(r, found));
    else if (frozen)
      failures += "\n  " + (found.stale.empty() ? missing_text(r)
                                                : r.file.label() + ": stale: " + first_line(found.stale));
    else if (mode == Mode::automatic)
      selections.push_back(from_records(c, r, found.stale));
    else if (!found.stale.empty())
      selections.push_back(
          take_default(c, r, stale_text(found.stale) + "using the default config; run `ninja tune`"));
    else
      selections.push_back(take_default(c, r, untuned_text(c, r)));
  }
  if (!failures.empty())
    throw Error("a frozen build needs a good lock entry for every problem" + failures, lock_path, "",
                "run `ninja tune` where the device is attached and commit the lock");
  return selections;
}

} // namespace deepgen
