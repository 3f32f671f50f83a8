#include "generator/lock/vendored_state.h"

#include "base/files/files.h"
#include "base/text/sha256.h"
#include "base/text/text.h"
#include "generator/lock/lock_file.h"

#include <algorithm>
#include <filesystem>

namespace fs = std::filesystem;

namespace deepgen {
namespace {

constexpr const char* kAttributes = ".gitattributes"; ///< in the folder: its files are no text

std::set<std::string> named_by(const Lock& lock, const std::string& lock_path) {
  std::set<std::string> paths;
  for (const LockEntry& e : lock.entries())
    if (is_sha256(e.kernels)) paths.insert(vendored_path(lock_path, e.kernels));
  return paths;
}

std::vector<std::string> extra_files(const Lock& lock, const std::string& lock_path) {
  const std::set<std::string> named = named_by(lock, lock_path);
  std::vector<std::string> extra;
  std::error_code absent;
  const std::string folder = vendored_folder(lock_path);
  for (const fs::directory_entry& file : fs::directory_iterator(folder, absent)) {
    const std::string name = file.path().filename().string(), path = folder + "/" + name;
    if (name != kAttributes && !named.contains(path)) extra.push_back(path);
  }
  std::sort(extra.begin(), extra.end());
  return extra;
}

/// Nothing else in the folder is removed.
bool is_ours(const std::string& path) {
  constexpr std::string_view kEnd = ".dgk.zst";
  const std::string name = fs::path(path).filename().string();
  return name.ends_with(kEnd) && is_sha256(name.substr(0, name.size() - kEnd.size()));
}

VendoredSize sizes_of(const LockEntry& e, const VendoredKernels& v, const std::string& lock_path) {
  VendoredSize size{&e, size_t(fs::file_size(vendored_path(lock_path, e.kernels))), 0, 0};
  for (const Kernel& k : v.kernels.kernels) size.code += k.code.size() + k.ptx.size(), ++size.kernels;
  return size;
}

} // namespace

VendoredState vendored_state(const Lock& lock, const std::string& lock_path) {
  const std::string real = real_path(lock_path);
  VendoredState state;
  state.used = file_exists(vendored_folder(real));
  for (const LockEntry& e : lock.entries()) {
    if (e.kernels.empty()) {
      state.without.push_back(&e);
      continue;
    }
    state.used = true;
    try {
      state.sizes.push_back(sizes_of(e, read_vendored(real, e), real));
    } catch (const Error& error) {
      state.faults.push_back(error.what());
    }
  }
  state.extra = extra_files(lock, real);
  return state;
}

std::vector<LockEntry> to_be_vendored(const Lock& lock, const std::string& lock_path) {
  const std::string real = real_path(lock_path);
  std::vector<LockEntry> entries;
  for (const LockEntry& e : lock.entries()) try {
      read_vendored(real, e);
    } catch (const Error&) { // what is wrong with it is remedied, or is said then
      entries.push_back(e);
    }
  return entries;
}

Kept keep_vendored(const std::string& lock_path,
                   const std::vector<std::pair<LockEntry, VendoredKernels>>& kernels) {
  Kept kept;
  change_lock(lock_path, [&](Lock& lock, const std::string& real) {
    for (const auto& [entry, vendored] : kernels) {
      const std::string text = vendored.serialize(), sha256 = sha256_hex(text);
      if (!lock.set_kernels(entry, sha256)) continue;
      const std::string bytes = packed(text);
      write_if_changed(vendored_folder(real) + "/" + kAttributes, "*.zst -text -diff\n");
      write_if_changed(vendored_path(real, sha256), bytes);
      ++kept.entries, kept.bytes += bytes.size();
    }
    for (const std::string& path : extra_files(lock, real))
      if (is_ours(path) && fs::remove(path)) kept.removed.push_back(path);
  });
  return kept;
}

} // namespace deepgen
