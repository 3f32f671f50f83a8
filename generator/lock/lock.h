// Lock: the committed file of chosen configs (docs/reference/formats.md). Holds decisions and their evidence;
// no dates, hosts, paths.
#pragma once

#include "base/json/json.h"
#include "base/kernel/device.h"
#include "base/search/record.h"
#include "base/search/vendor_call.h"

#include <optional>
#include <set>

namespace deepgen {

/// One of several kernels of a problem with ranges.
struct LockedPart {
  Choice choice;
  int64_t revision = 0;
  std::string sha256;
  SizeSpan taken; ///< the calls that take it
  bool operator==(const LockedPart&) const = default;
};

struct LockEntry {
  std::string problem, arch;
  Device device; ///< name and the facts on which legality depends: see lock.cpp
  Choice choice;
  int64_t revision = 0; ///< of the template
  std::string sha256;   ///< of the main kernel's code; anything but 64 hex digits makes the entry stale
  std::string toolchain;
  Json evidence = Json::object();
  std::optional<SizeSpan> taken = {};  ///< of a problem with ranges and several kernels: the above one's
  std::vector<LockedPart> ranges = {}; ///< the others
  std::string kernels = {};  ///< SHA-256 of what generator/lock/vendored.h keeps of the entry; empty: nothing
  std::string packed_b = {}; ///< the layout in which its kernels read B; empty: as stored
  /// What is faster than the kernel: functions with FALLBACK call it.
  std::optional<VendorCall> vendor = {};

  std::string line() const;
  std::string place() const; ///< "gemm m=512 ... on cpu (AMD EPYC 9654)", for messages
  /// Same decision, whatever the evidence.
  bool agrees_with(const LockEntry&) const;
};

/// One entry for each (problem, arch, device name, isa), sorted by these.
class Lock {
public:
  /// An absent file is an empty lock; a damaged one or one of another schema throws Error and is left as it
  /// is.
  static Lock read(const std::string& path);
  static Lock parse(const std::string& text, const std::string& where);
  std::string serialize() const; ///< one entry a line

  const std::vector<LockEntry>& entries() const { return entries_; }
  /// Exact device (name and isa), else one of the same arch: the highest isa that the device has, else the
  /// lowest one; then by name. A stale one only when no good one is left. nullptr when the problem is not
  /// locked for the arch.
  const LockEntry* find(const std::string& problem, const std::string& arch, const Device&) const;
  /// All entries of the problem on the arch, by device name.
  std::vector<const LockEntry*> find_all(const std::string& problem, const std::string& arch) const;
  /// Adds or replaces; keeps an entry that agrees, so that tuning again with the same outcome changes
  /// nothing. Returns whether the lock changed.
  bool put(LockEntry);
  /// Notes what is kept of the kernels of an entry that agrees; false when there is none any more.
  bool set_kernels(const LockEntry&, const std::string& kernels);
  /// Removes the entries of other problems, and returns them.
  std::vector<LockEntry> keep_only(const std::set<std::string>& problems);

private:
  std::vector<LockEntry> entries_;
};

/// Why an entry cannot be built from: it does not say which code was verified, its template is gone or has
/// another revision, or the config is illegal on the entry's own device (never this host's). Empty when it is
/// good.
std::string why_stale(const LockEntry&);

/// The entry for what a finished search chose. Throws Error when it must not be locked: unstable, or not
/// verified.
LockEntry lock_entry(const std::string& problem, const std::string& arch, const Device&,
                     const std::string& toolchain, const std::vector<RecordLog>& logs);

/// Merges into the file under an exclusive lock of its folder: reads it again, adds, replaces it atomically.
/// Concurrent writers lose nothing. Returns whether the file changed.
bool merge_into_lock(const std::string& path, const std::vector<LockEntry>& entries);

/// The entries of problems that are not among `problems`, by their keys; with `remove`, under the same lock,
/// they go.
std::vector<LockEntry> prune_lock(const std::string& path, const std::set<std::string>& problems,
                                  bool remove);

} // namespace deepgen
