#include "generator/cli/lock/vendor_command.h"

#include "base/files/files.h"
#include "base/text/error.h"
#include "base/text/numbers.h"
#include "generator/cli/compile_one.h"
#include "generator/cli/inputs.h"
#include "generator/codegen/compile.h"
#include "generator/lock/vendored_state.h"

#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdio>
#include <iostream>
#include <thread>

namespace deepgen {
namespace {

/// One of the entry's kernels, with its fallbacks or without.
KernelFile compiled_part(const LockEntry& e, const LockedPart& part, bool fallbacks, const VendorOptions& o,
                         const std::string& remedy) {
  KernelFile file = compile_for_linking(
      {Problem::parse(e.problem), e.arch, part.choice, fallbacks, part.sha256, o.cache, o.timeout});
  const Kernel* main = file.find("main");
  if (file.status != "ok" || !main)
    throw Error("not vendored: the config cannot be compiled", e.place(), file.detail, remedy);
  if (main->sha256 != part.sha256)
    throw Error("not vendored: the compiled kernel is not the one that was locked", e.place(),
                "locked by " + e.toolchain + ", sha256 " + part.sha256 + "; compiled by " +
                    toolchain(e.arch) + ", sha256 " + main->sha256,
                remedy);
  return file;
}

/// Compiled by this toolchain, and verified where this host can. Throws Error when that is not what was
/// locked.
VendoredKernels compiled_again(const LockEntry& e, const VendorOptions& o) {
  const std::string remedy = "vendor it where the lock's toolchain is, or run `ninja tune` here";
  if (const std::string stale = why_stale(e); !stale.empty())
    throw Error("not vendored: the entry is stale", e.place(), first_line(stale), remedy);
  const LockedPart whole{e.choice, e.revision, e.sha256, {}};
  VendoredKernels v;
  v.kernels = compiled_part(e, whole, true, o, remedy);
  for (Kernel& k : v.kernels.kernels)
    if (k.role == "main") k.taken = e.taken;
  for (const LockedPart& part : e.ranges) {
    v.kernels.kernels.push_back(*compiled_part(e, part, false, o, remedy).find("main"));
    v.kernels.kernels.back().taken = part.taken;
  }
  v.verified = verified_of(v.kernels, o.devices);
  v.toolchain = toolchain(e.arch);
  return v;
}

/// The entries at `part` "i/n" of those that want kernels: each n-th from the i-th on.
std::vector<LockEntry> part_of(const std::vector<LockEntry>& entries, const std::string& part) {
  if (part.empty()) return entries;
  size_t i = 0, n = 0;
  if (std::sscanf(part.c_str(), "%zu/%zu", &i, &n) != 2 || n == 0 || i >= n)
    throw Error("not a part", part, "", "use i/n with i from 0 to n - 1");
  std::vector<LockEntry> mine;
  for (; i < entries.size(); i += n) mine.push_back(entries[i]);
  return mine;
}

int vendor_here(const std::vector<LockEntry>& entries, const VendorOptions& o) {
  int status = 0;
  for (const LockEntry& e : entries) try {
      const VendoredKernels v = compiled_again(e, o);
      if (const Kept kept = keep_vendored(o.lock, {{e, v}}); kept.entries)
        std::cout << "deepgen: vendored " + e.place() + ": " + std::to_string(v.kernels.kernels.size()) +
                         " kernels, " + std::to_string(kept.bytes) + " bytes\n"
                  << std::flush;
    } catch (const Error& error) { // the others may still be good
      std::cerr << "deepgen: " << error.what() << "\n";
      status = 1;
    }
  return status;
}

/// Programs of their own: the compiler forks, which a thread must not. Each notes its entries in the lock.
int vendor_in_parts(size_t parts, const VendorOptions& o) {
  std::atomic<int> failed = 0;
  std::vector<std::thread> threads;
  for (size_t i = 0; i < parts; ++i)
    threads.emplace_back([&, i] {
      std::vector<std::string> words = {own_program(),
                                        "lock",
                                        "vendor",
                                        "--lock",
                                        o.lock,
                                        "--part",
                                        std::to_string(i) + "/" + std::to_string(parts),
                                        "--timeout",
                                        std::to_string(o.timeout)};
      if (!o.cache.empty()) words.insert(words.end(), {"--cache", o.cache});
      for (const std::string& device : o.devices) words.insert(words.end(), {"--device", device});
      if (run_program(words) != 0) failed = 1;
    });
  for (std::thread& t : threads) t.join();
  return failed;
}

} // namespace

int vendor(const VendorOptions& o) {
  const Lock lock = Lock::read(o.lock);
  const std::vector<LockEntry> entries = to_be_vendored(lock, o.lock);
  if (!o.part.empty()) return vendor_here(part_of(entries, o.part), o);
  const size_t cores = std::max(1u, std::thread::hardware_concurrency());
  const size_t parts = std::min(entries.size(), o.jobs ? o.jobs : cores);
  const int status = parts > 1 ? vendor_in_parts(parts, o) : vendor_here(entries, o);
  for (const std::string& path : keep_vendored(o.lock, {}).removed)
    std::cout << "deepgen: removed " << path << ", which no entry of the lock names\n";
  const Lock now = Lock::read(o.lock);
  const VendoredState state = vendored_state(now, o.lock);
  size_t bytes = 0;
  for (const VendoredSize& size : state.sizes) bytes += size.packed;
  std::cout << "deepgen: " << vendored_folder(o.lock) << ": kernels of " << state.sizes.size() << " of "
            << now.entries().size() << " entries, " << bytes << " bytes\n";
  return status;
}

void add_vendor_command(CLI::App& lock) {
  auto o = std::make_shared<VendorOptions>();
  CLI::App* c = lock.add_subcommand(
      "vendor", "keep the compiled kernels of all entries beside the lock, for builds without a compiler");
  c->add_option("--lock", o->lock, "lock file")->required();
  c->add_option("--device", o->devices, "device.json of GPUs that are attached, to verify fallbacks on");
  c->add_option("--cache", o->cache, "folder of the cache; else DEEPGEN_CACHE_DIR or the user's");
  c->add_option("--timeout", o->timeout, "seconds for the compiler")
      ->capture_default_str()
      ->check(within(0.001, 86400));
  c->add_option("-j,--jobs", o->jobs, "kernels that are compiled at once; 0: as many as there are cores")
      ->capture_default_str()
      ->check(CLI::Range(size_t(0), size_t(1024)));
  c->add_option("--part", o->part, "i/n: each n-th of the entries that want kernels, from the i-th on")
      ->group("");
  c->footer("Entries whose kernels are there are left alone. An entry that this toolchain compiles to other\n"
            "code is named, and the command fails; the others are kept.\n"
            "Example:\n  deepgen lock vendor --lock deepgen.lock.json");
  c->callback([o] {
    require_file(o->lock, "there is no lock file", "run `ninja tune`");
    if (vendor(*o) != 0)
      throw Error("not all entries could be vendored", o->lock, "see above",
                  "a frozen build of these needs the lock's toolchain");
  });
}

} // namespace deepgen
