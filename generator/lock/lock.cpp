#include "generator/lock/lock.h"

#include "base/files/files.h"
#include "base/json/json.h"
#include "base/json/json_text.h"
#include "base/kernel/cpu_isa.h"
#include "base/kernel/span_json.h"
#include "base/problem/packed_b.h"
#include "base/search/decide.h"
#include "base/search/vendor_choice.h"
#include "base/text/text.h"
#include "generator/lock/evidence.h"
#include "generator/lock/final_log.h"
#include "generator/lock/lock_file.h"
#include "generator/lock/ranged_entry.h"
#include "generator/space/space.h"

#include <algorithm>
#include <tuple>

namespace deepgen {
namespace {

constexpr const char* kLockSchema = "deepgen.lock/1";

auto identity(const LockEntry& e) { return std::tie(e.problem, e.arch, e.device.name, e.device.isa); }

/// The facts of a device on which legality may depend: of a GPU, no clocks and no bandwidth.
std::vector<std::pair<const char*, int64_t Device::*>> facts_of(const std::string& arch) {
  if (is_gpu(arch))
    return {{"cores", &Device::cores},
            {"l2", &Device::l2},
            {"shared_block", &Device::shared_block},
            {"shared_multiprocessor", &Device::shared_multiprocessor}};
  return {{"isa", &Device::isa}, {"l1d", &Device::l1d}, {"l2", &Device::l2}, {"l3", &Device::l3}};
}

Json device_json(const Device& device, const std::string& arch) {
  Json json = {{"name", device.name}};
  for (auto [name, fact] : facts_of(arch)) json[name] = device.*fact;
  return json;
}

/// What an entry does not keep. A later version's arch makes its entries stale, but not the file.
Device facts_left_out(const std::string& arch) {
  try {
    return is_gpu(arch) ? generic_gpu(arch) : Device();
  } catch (const Error&) {
    return Device();
  }
}

Device device_from_json(const Json& json, const std::string& arch, const std::string& where) {
  Device device = facts_left_out(arch);
  device.arch = arch;
  device.name = get_name(json, "name", where);
  for (auto [name, fact] : facts_of(arch)) device.*fact = get_count(json, name, where);
  // Its features are not in the file. It has had what its kernels need, or they would not have been timed
  // there.
  if (arch == "cpu") add_features(device);
  return device;
}

bool same_facts(const LockEntry& x, const LockEntry& y) {
  for (auto [name, fact] : facts_of(x.arch))
    if (x.device.*fact != y.device.*fact) return false;
  return true;
}

Json part_json(const LockedPart& p) {
  return {{"template", p.choice.template_name},
          {"revision", p.revision},
          {"config", p.choice.config.to_json()},
          {"sha256", p.sha256},
          {"taken", span_json(p.taken)}};
}

LockedPart part_from_json(const Json& json, const std::string& where) {
  LockedPart p;
  p.choice = {get_word(json, "template", where), Config::from_json(get<Json>(json, "config", where))};
  p.revision = get<int64_t>(json, "revision", where);
  p.sha256 = get_name(json, "sha256", where);
  const std::optional<SizeSpan> taken = get_span(json, "taken", where);
  if (!taken) throw Error("a kernel for some sizes does not say which", where, excerpt(json));
  p.taken = *taken;
  return p;
}

LockEntry entry_from_json(const Json& json, const std::string& where) {
  LockEntry e;
  e.problem = get_name(json, "problem", where, 4096);
  e.arch = get_word(json, "arch", where);
  const Json device = get<Json>(json, "device", where);
  e.device = device_from_json(device, e.arch, where);
  e.choice.template_name = get_word(json, "template", where);
  e.revision = get<int64_t>(json, "revision", where);
  e.choice.config = Config::from_json(get<Json>(json, "config", where));
  e.sha256 = get_name(json, "sha256", where);
  e.toolchain = get_name(json, "toolchain", where);
  e.taken = get_span(json, "taken", where);
  if (json.contains("ranges"))
    for (const Json& item : get<std::vector<Json>>(json, "ranges", where))
      e.ranges.push_back(part_from_json(item, where));
  if (json.contains("kernels")) e.kernels = get_name(json, "kernels", where);
  if (json.contains("packed_b")) e.packed_b = get_word(json, "packed_b", where);
  e.vendor = get_vendor_call(json, "vendor", where);
  if (e.vendor) e.vendor->device = e.device.name;
  if (json.contains("evidence")) e.evidence = json["evidence"]; // whatever it is: it decides nothing
  return e;
}

} // namespace

std::string LockEntry::line() const {
  Json json = {{"problem", problem},
               {"arch", arch},
               {"device", device_json(device, arch)},
               {"template", choice.template_name},
               {"revision", revision},
               {"config", choice.config.to_json()},
               {"sha256", sha256},
               {"toolchain", toolchain}};
  if (!kernels.empty()) json["kernels"] = kernels;
  if (taken) json["taken"] = span_json(*taken);
  for (const LockedPart& part : ranges) json["ranges"].push_back(part_json(part));
  if (!packed_b.empty()) json["packed_b"] = packed_b;
  if (vendor) json["vendor"] = to_json(*vendor);
  json["evidence"] = evidence;
  return dump_json(json);
}

std::string LockEntry::place() const { return problem + " on " + arch + " (" + device.name + ")"; }

bool LockEntry::agrees_with(const LockEntry& e) const {
  auto decision = [](const LockEntry& x) {
    return std::tie(x.choice.template_name, x.choice.config.values, x.revision, x.sha256, x.toolchain,
                    x.taken, x.ranges, x.vendor, x.packed_b);
  };
  return identity(*this) == identity(e) && decision(*this) == decision(e) && same_facts(*this, e);
}

Lock Lock::parse(const std::string& text, const std::string& where) {
  const Json json = parse_json(text, where);
  check_schema(json, kLockSchema, where);
  const auto list = get<std::vector<Json>>(json, "entries", where);
  Lock lock;
  for (size_t i = 0; i < list.size(); ++i)
    lock.entries_.push_back(entry_from_json(list[i], where + ", entry " + std::to_string(i + 1)));
  auto& entries = lock.entries_;
  std::sort(entries.begin(), entries.end(),
            [](const auto& x, const auto& y) { return identity(x) < identity(y); });
  auto twice = std::adjacent_find(entries.begin(), entries.end(),
                                  [](const auto& x, const auto& y) { return identity(x) == identity(y); });
  if (twice != entries.end())
    throw Error("two entries for one problem and device", where, twice->problem + " on " + twice->device.name,
                "delete one of the two lines, or tune again");
  return lock;
}

Lock Lock::read(const std::string& path) { return file_exists(path) ? parse(read_file(path), path) : Lock(); }

std::string Lock::serialize() const {
  std::string out = "{\n\"schema\":\"" + std::string(kLockSchema) + "\",\n\"entries\":[\n";
  for (size_t i = 0; i < entries_.size(); ++i)
    out += entries_[i].line() + (i + 1 < entries_.size() ? ",\n" : "\n");
  return out + "]\n}\n";
}

const LockEntry* Lock::find(const std::string& problem, const std::string& arch, const Device& device) const {
  const LockEntry* best = nullptr;
  auto rank = [&](const LockEntry& e) {
    const bool exact = e.device.name == device.name && e.device.isa == device.isa;
    const bool runs = e.device.isa <= device.isa;
    const bool stale = !why_stale(e).empty();
    return std::tuple(stale, !exact, !runs, runs ? -e.device.isa : e.device.isa, e.device.name);
  };
  for (const LockEntry& e : entries_)
    if (e.problem == problem && e.arch == arch && (!best || rank(e) < rank(*best))) best = &e;
  return best;
}

std::vector<const LockEntry*> Lock::find_all(const std::string& problem, const std::string& arch) const {
  std::vector<const LockEntry*> found;
  for (const LockEntry& e : entries_) // sorted
    if (e.problem == problem && e.arch == arch) found.push_back(&e);
  return found;
}

bool Lock::put(LockEntry entry) {
  auto at = std::lower_bound(entries_.begin(), entries_.end(), entry,
                             [](const auto& x, const auto& y) { return identity(x) < identity(y); });
  if (at == entries_.end() || identity(*at) != identity(entry)) {
    entries_.insert(at, std::move(entry));
    return true;
  }
  if (at->agrees_with(entry)) return false;
  *at = std::move(entry);
  return true;
}

bool Lock::set_kernels(const LockEntry& entry, const std::string& kernels) {
  for (LockEntry& e : entries_)
    if (e.agrees_with(entry)) {
      e.kernels = kernels;
      return true;
    }
  return false;
}

std::vector<LockEntry> Lock::keep_only(const std::set<std::string>& problems) {
  std::vector<LockEntry> gone;
  std::erase_if(entries_, [&](const LockEntry& e) {
    const bool goes = !problems.contains(e.problem);
    if (goes) gone.push_back(e);
    return goes;
  });
  return gone;
}

namespace {

std::string layout_of(const Problem& p) { return p.op() == "gemm" ? packed_layout_text(p.gemm()) : ""; }

/// Weights that users have packed go with the kernels that were tuned.
std::string why_stale_layout(const LockEntry& e) {
  const std::string own = layout_of(Problem::parse(e.problem));
  if (own == e.packed_b) return "";
  return "its kernels read a packed B of layout " + (e.packed_b.empty() ? "(none)" : e.packed_b) +
         ", this version has " + (own.empty() ? "(none)" : own);
}

} // namespace

std::string why_stale(const LockEntry& e) {
  if (!is_sha256(e.sha256))
    return "its sha256 is not 64 lower-case hex digits, so it does not say which code was verified";
  try {
    const Template& t = find_template(e.choice.template_name);
    if (const int64_t revision = t.revision_for(Problem::parse(e.problem), e.choice.config);
        revision != e.revision)
      return "template " + t.name() + " has revision " + std::to_string(revision) +
             ", the entry was tuned with " + std::to_string(e.revision);
    if (std::string why = why_illegal(Problem::parse(e.problem), e.arch, e.device, e.choice); !why.empty())
      return why;
    if (std::string why = why_stale_layout(e); !why.empty()) return why;
    if (e.vendor)
      if (std::string why = why_unusable(*e.vendor, Problem::parse(e.problem), e.arch); !why.empty())
        return why;
    return why_stale_ranges(e);
  } catch (const Error& error) { // unknown template, or a problem key that this version does not know
    return error.what();
  }
}

LockEntry lock_entry(const std::string& problem, const std::string& arch, const Device& device,
                     const std::string& toolchain, const std::vector<RecordLog>& logs) {
  const RecordLog* final = final_log(logs, problem, arch);
  const std::string remedy = "tune again on a quiet machine";
  if (!final) throw Error("not locked: the records hold no finals", problem, "", "let the search finish");
  if (!final->stable)
    throw Error("not locked: too much interference for a decision", problem,
                final->environment.value("unstable", ""), remedy);
  const Problem p = Problem::parse(problem);
  if (p.ranged()) {
    LockEntry e = ranged_entry(p, arch, device, toolchain, *final, logs);
    e.packed_b = layout_of(p);
    return e;
  }
  const Decision decision = decide(*final);
  if (!decision.found) throw Error("not locked: " + decision.reason, problem);
  const Record& w = decision.winner;
  if (!is_sha256(w.sha256) || !(w.error <= 1))
    throw Error("not locked: the winner was not verified", problem, w.choice.text());
  LockEntry e{problem,    arch,     device,    w.choice,
              w.revision, w.sha256, toolchain, evidence_of(decision, *final, logs, {problem, arch, device})};
  e.packed_b = layout_of(p);
  e.vendor = vendor_choice(*final, decision, device.name).call;
  return e;
}

std::vector<LockEntry> prune_lock(const std::string& path, const std::set<std::string>& problems,
                                  bool remove) {
  if (!remove) return Lock::read(path).keep_only(problems);
  std::vector<LockEntry> gone;
  change_lock(path, [&](Lock& lock, const std::string&) { gone = lock.keep_only(problems); });
  return gone;
}

bool merge_into_lock(const std::string& path, const std::vector<LockEntry>& entries) {
  return change_lock(path, [&](Lock& lock, const std::string&) {
    for (const LockEntry& e : entries) lock.put(e);
  });
}

} // namespace deepgen
