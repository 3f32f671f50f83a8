// lock merge, lock show, lock check, lock prune
#include "base/files/files.h"
#include "base/search/decide.h"
#include "base/text/error.h"
#include "base/text/text.h"
#include "generator/cli/build_tree.h"
#include "generator/cli/cli.h"
#include "generator/cli/inputs.h"
#include "generator/cli/lock/merge_command.h"
#include "generator/cli/lock/vendor_command.h"
#include "generator/codegen/compile.h"
#include "generator/lock/evidence.h"
#include "generator/lock/exchange.h"
#include "generator/lock/failures.h"
#include "generator/lock/final_log.h"
#include "generator/lock/lock.h"
#include "generator/lock/ranged_entry.h"
#include "generator/lock/vendored_state.h"
#include "templates/core/template.h"

#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <iostream>
#include <optional>

namespace deepgen {
namespace {

struct MergeOptions {
  std::string lock, stamp;
  std::vector<std::string> devices;
  bool vendored = false;
  std::string cache; ///< with `vendored`
  MergeLocksOptions locks;
};

/// Removes the log: Ninja would hold it for up to date, and no `tune` could ever repeat the playoff.
[[noreturn]] void refuse_unstable(const std::string& path, const ProblemFile& file, const std::string& why) {
  std::error_code failure;
  std::filesystem::remove(path, failure);
  if (failure)
    throw Error("not locked: too much interference for a decision", path,
                "the playoff cannot be repeated, as this file could not be removed: " + failure.message(),
                "remove it, and run `ninja tune` on a quiet machine");
  throw Error("not locked: too much interference for a decision", path,
              "the playoff of " + file.problem.key() + " was unstable" +
                  (why.empty() ? "" : " (" + why + ")") + "; this file was removed",
              "run `ninja tune` again on a quiet machine: it repeats this playoff alone");
}

/// Nothing, where the search had no time for a decision, which is said.
std::optional<LockEntry> entry_of(const Group& group, const ProblemFile& file, const MergeOptions& o) {
  if (file.untuned) throw Error("not locked: the problem is marked untuned", file.label());
  if (group.many("--records").empty())
    throw Error("missing --records", "deepgen lock merge, " + file.label(), "",
                "see `deepgen lock merge --help`");
  const std::string arch = group.one_or("--arch", "cpu");
  const std::vector<std::string> paths = group.many("--records");
  const std::vector<RecordLog> logs = logs_of(paths);
  const RecordLog* final = final_log(logs, file.problem.key(), arch);
  if (const std::string why = final ? out_of_time(*final) : ""; !why.empty()) {
    std::cout << "deepgen: " << file.label() << " on " << arch << ": keeps its default config: " << why
              << "\n";
    return std::nullopt;
  }
  if (final && !final->stable)
    refuse_unstable(paths[size_t(final - logs.data())], file, final->environment.value("unstable", ""));
  if (const std::string alike = common_failure(logs); !alike.empty())
    std::cerr << "deepgen: " << file.label() << ": " << alike << "\n";
  const std::string on = group.one_or("--on", "");
  const Device device = on.empty() ? device_of(o.devices, arch) : device_of(on, arch);
  if (!device.present)
    throw Error("not locked: no device of the arch is attached", file.label(), arch,
                "pass the --device that the search ran on");
  return lock_entry(file.problem.key(), arch, device, toolchain(arch), logs);
}

/// A stamp is a build output, so it must exist; its time says when the lock changed last.
void touch(const std::string& path, bool changed) {
  if (path.empty()) return;
  if (!file_exists(path)) write_atomically(path, "");
  if (changed) std::filesystem::last_write_time(path, std::filesystem::file_time_type::clock::now());
}

/// The lock may lie where nothing can be written; what was measured lies in the build folder.
bool merge_or_say_what_is_kept(const std::string& lock, const std::vector<LockEntry>& entries) {
  try {
    return merge_into_lock(lock, entries);
  } catch (const Error& e) {
    throw Error(
        e.what() +
        std::string(
            "\n  kept:   all measurements; when this is remedied run `ninja tune` again: it only merges"));
  }
}

int run_merge(MergeOptions& o, const CliContext& context) {
  if (!o.locks.from.empty()) {
    if (!context.groups.empty())
      throw Error("--from and --problem together", "deepgen lock merge", "",
                  "merge the locks, and then the searches");
    o.locks.lock = o.lock;
    return merge_locks(o.locks);
  }
  Lock::read(o.lock); // a damaged lock is the first thing to report
  std::vector<LockEntry> entries;
  size_t refused = 0;
  for (const Group& group : context.groups) {
    const ProblemFile file = ProblemFile::read(group.one("--problem"));
    try {
      std::optional<LockEntry> entry = entry_of(group, file, o);
      if (!entry) continue;
      entries.push_back(std::move(*entry));
      std::cout << "deepgen: " << file.label() << " on " << entries.back().arch << ": "
                << statement(entries.back().evidence, entries.back().device) << "\n";
      if (const std::string warning = bound_warning(entries.back()); !warning.empty())
        std::cerr << "deepgen: warning: " << file.label() << ": " << warning << "\n";
    } catch (const Error& e) { // the others may still be good
      std::cerr << "deepgen: " << file.label() << ": " << e.what() << "\n";
      ++refused;
    }
  }
  touch(o.stamp, !entries.empty() && merge_or_say_what_is_kept(o.lock, entries));
  int status = refused ? 1 : 0;
  if (o.vendored) {
    VendorOptions vendored;
    vendored.lock = o.lock, vendored.devices = o.devices, vendored.cache = o.cache;
    if (vendor(vendored) != 0) status = 1;
  }
  return status;
}

Lock read_existing(const std::string& path) {
  require_file(path, "there is no lock file", "run `ninja tune`");
  return Lock::read(path);
}

/// What a function with FALLBACK runs instead; "" where it is the kernel, or the entry is stale.
std::string fallback_text(const LockEntry& e) {
  if (!e.vendor || !why_stale(e).empty()) return "";
  return "    with FALLBACK vendor: " + visible(e.vendor->config(Problem::parse(e.problem))) + "\n";
}

void run_show(const std::string& path) {
  const Lock lock = read_existing(path);
  for (const LockEntry& e : lock.entries())
    std::cout << e.problem << " on " << e.arch << "\n  " << e.choice.text() << "\n  "
              << statement(e.evidence, e.device) << "\n"
              << ranges_text(e) << order_text(e) << fallback_text(e);
}

std::vector<std::string> wrong_with(const VendoredState& state) {
  std::vector<std::string> lines = state.faults;
  for (const LockEntry* e : state.without)
    lines.push_back("not vendored: " + e->place() + ": run `deepgen lock vendor`");
  for (const std::string& file : state.extra)
    lines.push_back("extra: no entry names " + file + ": `deepgen lock vendor` removes kernels");
  return lines;
}

/// What each entry adds to the repository.
void print_sizes(const VendoredState& state) {
  size_t total = 0;
  for (const VendoredSize& size : state.sizes) {
    std::printf("%8zu bytes (code %zu, kernels %zu) %s\n", size.packed, size.code, size.kernels,
                size.entry->place().c_str());
    total += size.packed;
  }
  std::printf("%8zu bytes of vendored kernels, of %zu entries\n", total, state.sizes.size());
  std::fflush(stdout);
}

int run_check(const std::string& path, const CliContext& context) {
  const Lock lock = read_existing(path);
  int bad = 0;
  auto complain = [&](const std::string& what) {
    std::cerr << "deepgen: " << path << ": " << what << "\n";
    ++bad;
  };
  const VendoredState state = vendored_state(lock, path);
  const auto note = [&](const std::string& what) { std::cout << path << ": " << what << "\n"; };
  for (const LockEntry& e : lock.entries())
    if (std::string why = why_stale(e); !why.empty()) {
      const std::string stale = "stale: " + e.place() + ": " + why;
      e.kernels.empty() ? complain(stale) : note(stale + "; its vendored kernels can be linked all the same");
    }
  if (state.used)
    for (const std::string& what : wrong_with(state)) complain(what);
  for (const Group& group :
       context.groups) // a shell's pattern gives many problems, which then share the arch
    for (const std::string& problem : group.at_least_one("--problem")) {
      const ProblemFile file = ProblemFile::read(problem);
      const std::string arch = group.one_or("--arch", "cpu");
      const LockEntry* entry = file.untuned ? nullptr : lock.find(file.problem.key(), arch, Device());
      if (!file.untuned && !entry)
        complain("missing: " + file.label() + ": " + file.problem.key() + " on " + arch);
      if (const std::string why = entry ? why_too_many(*entry, file.points.kernels) : ""; !why.empty())
        complain("stale: " + file.label() + ": " + why);
    }
  if (state.used) print_sizes(state);
  if (bad == 0) std::cout << path << ": " << lock.entries().size() << " entries, all good\n";
  return bad ? 1 : 0;
}

struct PruneOptions {
  std::string lock;
  std::vector<std::string> builds, problems;
  bool remove = false;
};

/// Entries go by their problem alone: another host may have the device of another arch.
void run_prune(const PruneOptions& o) {
  const Lock lock = read_existing(o.lock);
  std::vector<std::string> files = o.problems;
  for (const std::string& build : o.builds) {
    const std::vector<std::string> found = search_build_tree(build).problems;
    files.insert(files.end(), found.begin(), found.end());
  }
  std::set<std::string> problems;
  for (const std::string& path : files) problems.insert(ProblemFile::read(path).problem.key());
  if (problems.empty())
    throw Error("no problem to keep: all entries would go", "deepgen lock prune",
                "there is no problem.json in what was given",
                "pass --build with a configured build folder of everything that uses the lock, or --problem");
  const std::vector<LockEntry> gone = prune_lock(o.lock, problems, o.remove);
  for (const LockEntry& e : gone)
    std::cout << (o.remove ? "removed: " : "would be removed: ") << e.place() << "\n";
  std::cout << o.lock << ": " << gone.size() << " of " << lock.entries().size()
            << " entries are of no problem given";
  std::cout << (gone.empty() || o.remove ? "\n" : "; --remove removes them\n");
}

void add_prune_command(CLI::App& lock) {
  auto o = std::make_shared<PruneOptions>();
  CLI::App* c = lock.add_subcommand("prune", "remove entries of problems that no build has any more");
  c->add_option("--lock", o->lock, "lock file")->required();
  c->add_option("--build", o->builds,
                "configured build folders, whose problems are kept; name all that use the lock");
  c->add_option("--problem", o->problems, "problem.json of problems that are kept, any number");
  c->add_flag("--remove", o->remove, "remove them; else they are only listed");
  c->footer("An entry is kept for every device and arch when its problem is.\n"
            "Example:\n  deepgen lock prune --lock deepgen.lock.json --build build --remove");
  c->callback([o] { run_prune(*o); });
}

} // namespace

void add_lock_command(CLI::App& app, CliContext& context) {
  CLI::App* lock = app.add_subcommand("lock", "write, show, check, vendor or prune the committed lock file");
  lock->require_subcommand(1);
  lock->footer("Example:\n  deepgen lock check --lock deepgen.lock.json");

  auto o = std::make_shared<MergeOptions>();
  CLI::App* merge =
      lock->add_subcommand("merge", "add the winners of finished searches, or other locks, to the lock");
  merge->add_option("--lock", o->lock, "lock file; created if absent")->required();
  merge->add_option("--device", o->devices, "device.json of each arch; this host's CPU if absent");
  merge->add_option("--stamp", o->stamp, "file to touch when the lock changed");
  merge->add_flag("--vendored", o->vendored,
                  "then keep the compiled kernels of all entries beside the lock, as `lock vendor` does");
  merge->add_option("--cache", o->cache, "with --vendored: folder of the cache");
  add_merge_locks_options(*merge, o->locks);
  merge->footer(
      "then, any number of times:\n  --problem problem.json [--arch cpu] [--on device.json] "
      "--records FILE ...\n\n--on is the device of a search elsewhere, where several have the arch.\n"
      "An unstable or unverified result is refused: the others are merged, and the command fails.\n"
      "The log of an unstable playoff is removed, so that the next `tune` repeats it.\n"
      "Example:\n  deepgen lock merge --lock deepgen.lock.json --device device.json "
      "--problem problem.json --arch cpu --records r0/records.jsonl final.jsonl\n"
      "  deepgen lock merge --lock deepgen.lock.json --from theirs.lock.json --dry-run");
  merge->callback([o, &context] { context.status = run_merge(*o, context); });

  auto path = std::make_shared<std::string>();
  CLI::App* show =
      lock->add_subcommand("show", "what was chosen for each problem and device, and by what evidence");
  show->add_option("--lock", *path, "lock file")->required();
  show->footer("Example:\n  deepgen lock show --lock deepgen.lock.json");
  show->callback([path] { run_show(*path); });

  CLI::App* check = lock->add_subcommand("check", "list stale entries, and problems that the lock lacks");
  check->add_option("--lock", *path, "lock file")->required();
  check->footer("then, any number of times:\n  --problem problem.json ... [--arch cpu]\n\n"
                "Example:\n  deepgen lock check --lock deepgen.lock.json --problem problem.json --arch cpu");
  check->callback([path, &context] { context.status = run_check(*path, context); });
  add_prune_command(*lock);
  add_vendor_command(*lock);
}

} // namespace deepgen
