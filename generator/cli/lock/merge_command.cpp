#include "generator/cli/lock/merge_command.h"

#include "base/text/error.h"
#include "generator/cli/inputs.h"
#include "generator/lock/evidence.h"
#include "generator/lock/lock_file.h"
#include "generator/lock/lock_merge.h"
#include "generator/lock/vendored_state.h"

#include <CLI/CLI.hpp>
#include <iostream>
#include <map>

namespace deepgen {
namespace {

MergeForce parse_force(const std::string& text) {
  return text == "theirs" ? MergeForce::theirs : text == "ours" ? MergeForce::ours : MergeForce::none;
}

bool changes(const MergedEntry& m) { return m.taken() || m.outcome == MergeOutcome::undecided; }

/// What `lock` has for the problem, arch and device.
const LockEntry* there(const Lock& lock, const LockEntry& e) {
  for (const LockEntry* x : lock.find_all(e.problem, e.arch))
    if (x->device.name == e.device.name && x->device.isa == e.device.isa) return x;
  return nullptr;
}

void print_entry(const MergedEntry& m, const Lock& lock, int verbosity) {
  if (verbosity == 0 || (verbosity == 1 && !changes(m))) return;
  std::cout << "  " << text_of(m.outcome) << ": " << m.entry.place() << (m.why.empty() ? "" : ": ") << m.why
            << "\n";
  if (verbosity < 2) return;
  std::cout << "    theirs: " << m.entry.choice.text() << "; " << statement(m.entry.evidence, m.entry.device)
            << "\n";
  if (const LockEntry* e = there(lock, m.entry))
    std::cout << "    ours:   " << e->choice.text() << "; " << statement(e->evidence, e->device) << "\n";
}

/// "3 added, 1 replaced, 12 same"
std::string counted(const std::vector<MergedEntry>& merged) {
  std::map<MergeOutcome, size_t> counts;
  for (const MergedEntry& m : merged) ++counts[m.outcome];
  std::string text;
  for (const auto& [outcome, count] : counts)
    text += (text.empty() ? "" : ", ") + std::to_string(count) + " " + text_of(outcome);
  return text.empty() ? "no entries" : text;
}

using Kernels = std::vector<std::pair<LockEntry, VendoredKernels>>;

/// The kernels of an entry that lie beside its lock.
void take_kernels(const LockEntry& e, const std::string& lock, Kernels& kernels) {
  if (e.kernels.empty()) return;
  try {
    kernels.push_back({e, read_vendored(real_path(lock), e)});
  } catch (const Error& error) {
    std::cerr << "deepgen: merged without its vendored kernels: " << error.what() << "\n";
  }
}

/// Whether the lock has the decision, and names no kernels of it.
bool wants_kernels(const Lock& lock, const MergedEntry& m) {
  const LockEntry* ours = there(lock, m.entry);
  return m.taken() || (m.outcome == MergeOutcome::same && ours && ours->kernels.empty());
}

/// All locks into `lock`, in their order; prints what becomes of each entry.
void merge_all(Lock& lock, const MergeLocksOptions& o, Kernels& kernels) {
  for (const std::string& from : o.from) {
    const Lock other = Lock::read(from);
    const Lock before = lock;
    const std::vector<MergedEntry> merged = merge_locks(lock, other, parse_force(o.force));
    std::cout << from << ": " << counted(merged) << "\n";
    for (const MergedEntry& m : merged) print_entry(m, before, o.verbosity);
    for (const MergedEntry& m : merged) {
      if (wants_kernels(before, m)) take_kernels(m.entry, from, kernels);
      if (m.taken()) lock.set_kernels(m.entry, ""); // until they are here
    }
  }
}

} // namespace

void add_merge_locks_options(CLI::App& merge, MergeLocksOptions& o) {
  CLI::Option* from = merge.add_option(
      "--from", o.from,
      "other lock files, instead of searches: a faster entry is never replaced by a slower one");
  merge.add_option("-o", o.output, "with --from: lock file to write; --lock itself unless given")
      ->needs(from);
  merge.add_flag("--dry-run", o.dry_run, "with --from: say what would be done, and write nothing")
      ->needs(from);
  merge
      .add_option("-v,--verbosity", o.verbosity,
                  "with --from: 0: sums, 1: what changes, 2: every entry with its evidence")
      ->needs(from)
      ->capture_default_str()
      ->check(CLI::Range(0, 2));
  merge.add_option("--force", o.force, "with --from: ours or theirs: that entry, whatever the evidence says")
      ->needs(from)
      ->check(CLI::IsMember({"ours", "theirs"}));
}

int merge_locks(const MergeLocksOptions& o) {
  for (const std::string& path : o.from)
    require_file(path, "there is no lock file to merge", "correct the path");
  const std::string output = o.output.empty() ? o.lock : o.output;
  const std::string base = Lock::read(o.lock).serialize();
  Kernels kernels;
  if (const Lock ours = Lock::parse(base, o.lock); !o.output.empty()) // it has a folder of its own
    for (const LockEntry& e : ours.entries()) take_kernels(e, o.lock, kernels);
  if (o.dry_run) {
    Lock lock = Lock::parse(base, o.lock);
    merge_all(lock, o, kernels);
    std::cout << output << ": nothing was written (--dry-run)\n";
    return 0;
  }
  const bool changed = change_lock(output, [&](Lock& lock, const std::string&) {
    if (!o.output.empty()) lock = Lock::parse(base, o.lock);
    merge_all(lock, o, kernels);
  });
  if (!kernels.empty()) keep_vendored(output, kernels);
  std::cout << output << ": " << Lock::read(output).entries().size() << " entries"
            << (changed ? "" : ", unchanged") << "\n";
  return 0;
}

} // namespace deepgen
