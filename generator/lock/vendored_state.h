// The folder of vendored kernels as a whole: what is wrong with it, and how it is kept in step with the lock.
#pragma once

#include "generator/lock/vendored.h"

#include <utility>

namespace deepgen {

struct VendoredSize {
  const LockEntry* entry;
  size_t packed = 0;  ///< bytes of the file
  size_t code = 0;    ///< of machine code and PTX in it
  size_t kernels = 0; ///< in it, the main one included
};

struct VendoredState {
  bool used = false; ///< an entry names kernels, or there is a folder
  std::vector<VendoredSize> sizes;
  std::vector<const LockEntry*> without; ///< entries that name no kernels
  std::vector<std::string> faults;       ///< kernels that are missing, altered, or of another entry
  std::vector<std::string> extra;        ///< paths of what no entry names
};
/// Reads every file and compares it with the lock. The lock must outlive what is returned.
VendoredState vendored_state(const Lock&, const std::string& lock_path);
/// Entries that name kernels which are not there as they should be, or none.
std::vector<LockEntry> to_be_vendored(const Lock&, const std::string& lock_path);

struct Kept {
  size_t entries = 0, bytes = 0;
  std::vector<std::string> removed; ///< files that no entry names any more
};
/// Under the lock's lock: writes the kernels, notes them in the entries that still agree, and removes the
/// kernels that no entry names. Where an entry has become another one meanwhile, its kernels are left out.
Kept keep_vendored(const std::string& lock_path,
                   const std::vector<std::pair<LockEntry, VendoredKernels>>& kernels);

} // namespace deepgen
