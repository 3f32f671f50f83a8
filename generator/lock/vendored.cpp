#include "generator/lock/vendored.h"

#include "base/files/files.h"
#include "base/json/json.h"
#include "base/json/json_text.h"
#include "base/kernel/device.h"
#include "base/text/sha256.h"
#include "base/text/text.h"
#include "generator/lock/take_all.h"

#include <algorithm>
#include <filesystem>
#include <zstd.h>

namespace deepgen {
namespace {

constexpr const char* kVendoredSchema = "deepgen.vendored/1";
constexpr unsigned long long kMostUnpacked = 1 << 28; ///< bytes of an unpacked file
const std::string kVendoredRemedy =
    "restore it from version control, or run `deepgen lock vendor` with the lock's "
    "toolchain";

/// Why the file is not of the entry; empty when it is.
std::string why_other(const KernelFile& file, const LockEntry& e) {
  if (file.status != "ok") return "it holds no kernel: " + file.status;
  if (file.problem.key() != e.problem || file.arch != e.arch)
    return "it is of " + file.problem.key() + " on " + file.arch;
  if (file.choice != e.choice || file.revision != e.revision) return "it is of " + file.choice.text();
  std::vector<const Kernel*> mains;
  for (const Kernel& k : file.kernels)
    if (k.role == "main") mains.push_back(&k);
  if (mains.empty() || mains[0]->sha256 != e.sha256 || mains[0]->taken != e.taken)
    return "its main kernel is not the locked one";
  if (mains.size() != 1 + e.ranges.size()) return "it has other ranges";
  for (size_t i = 0; i < e.ranges.size(); ++i)
    if (mains[i + 1]->choice != e.ranges[i].choice || mains[i + 1]->sha256 != e.ranges[i].sha256 ||
        mains[i + 1]->taken != e.ranges[i].taken)
      return "a kernel for some sizes is not the locked one";
  return "";
}

/// In the order in which the build wants them, the general one first.
std::vector<const LockEntry*> linked_entries(const Lock& lock, const std::string& problem,
                                             const std::string& arch) {
  std::vector<const LockEntry*> entries = lock.find_all(problem, arch); // sorted by device name
  if (is_gpu(arch) || entries.empty()) return entries;
  return {*std::max_element(entries.begin(), entries.end(), [](const LockEntry* x, const LockEntry* y) {
    return x->device.isa < y->device.isa; // the first of equal ones
  })};
}

bool same_decision(const LockEntry& x, const LockEntry& y) {
  return x.choice == y.choice && x.revision == y.revision && x.sha256 == y.sha256 && x.taken == y.taken &&
         x.ranges == y.ranges;
}

/// Nothing in this version may know how the call is made any more: then the kernel runs.
void add_call(const LockEntry& e, const ProblemFile& file, const std::string& device, VendoredKernels& all) {
  if (file.fallback && e.vendor && why_unusable(*e.vendor, file.problem, e.arch).empty())
    all.calls.push_back({e.arch, device, *e.vendor});
}

} // namespace

std::string VendoredKernels::serialize() const {
  return dump_json({{"schema", kVendoredSchema}, {"toolchain", toolchain}, {"verified", verified}}) + "\n" +
         kernels.serialize();
}

VendoredKernels VendoredKernels::parse(const std::string& text, const std::string& where) {
  const size_t line = text.find('\n');
  if (line == std::string::npos)
    throw Error("no vendored kernels", where, "there is no line of JSON", kVendoredRemedy);
  const Json head = parse_json(text.substr(0, line), where);
  check_schema(head, kVendoredSchema, where);
  VendoredKernels v;
  v.toolchain = get_name(head, "toolchain", where);
  for (const std::string& hash : get<std::vector<std::string>>(head, "verified", where)) {
    if (!is_sha256(hash)) throw Error("field 'verified' has what is no SHA-256", where, "", kVendoredRemedy);
    v.verified.insert(hash);
  }
  v.kernels = KernelFile::parse(text.substr(line + 1), where);
  return v;
}

std::string packed(const std::string& text) {
  constexpr int kLevel = 19;
  std::string bytes(ZSTD_compressBound(text.size()), '\0');
  const size_t size = ZSTD_compress(bytes.data(), bytes.size(), text.data(), text.size(), kLevel);
  if (ZSTD_isError(size)) throw Error("cannot compress kernels", "", ZSTD_getErrorName(size));
  bytes.resize(size);
  return bytes;
}

std::string unpacked(const std::string& bytes, const std::string& where) {
  const auto size = ZSTD_getFrameContentSize(bytes.data(), bytes.size());
  if (size == ZSTD_CONTENTSIZE_ERROR || size == ZSTD_CONTENTSIZE_UNKNOWN || size > kMostUnpacked)
    throw Error("vendored kernels cannot be unpacked", where,
                "it is no zstd frame with its size, or too large", kVendoredRemedy);
  std::string text(size_t(size), '\0');
  const size_t got = ZSTD_decompress(text.data(), text.size(), bytes.data(), bytes.size());
  if (ZSTD_isError(got) || got != size)
    throw Error("vendored kernels cannot be unpacked", where, ZSTD_isError(got) ? ZSTD_getErrorName(got) : "",
                kVendoredRemedy);
  return text;
}

std::string vendored_folder(const std::string& lock_path) {
  constexpr std::string_view kUsual = ".lock.json";
  const std::filesystem::path path = lock_path;
  std::string name = path.filename().string();
  if (name.ends_with(kUsual))
    name = name.substr(0, name.size() - kUsual.size()) + ".kernels";
  else
    name += "-kernels";
  return (path.parent_path() / name).string();
}

std::string vendored_path(const std::string& lock_path, const std::string& sha256) {
  return vendored_folder(lock_path) + "/" + sha256 + ".dgk.zst";
}

VendoredKernels read_vendored(const std::string& lock_path, const LockEntry& e) {
  if (!is_sha256(e.kernels))
    throw Error("the lock names no vendored kernels", e.place(),
                "the entry's field 'kernels' is missing, or no SHA-256",
                "run `ninja tune`, or `deepgen lock vendor --lock " + lock_path + "`, and commit both");
  const std::string path = vendored_path(lock_path, e.kernels);
  if (!file_exists(path))
    throw Error("vendored kernels are missing", path, "the lock wants them for " + e.place(),
                kVendoredRemedy);
  const std::string text = unpacked(read_file(path), path);
  if (const std::string found = sha256_hex(text); found != e.kernels)
    throw Error("vendored kernels were altered", path, "their SHA-256 is " + found, kVendoredRemedy);
  VendoredKernels v = VendoredKernels::parse(text, path);
  if (const std::string why = why_other(v.kernels, e); !why.empty())
    throw Error("vendored kernels are not those of the lock's entry", path,
                why + "; the entry is " + e.place(), kVendoredRemedy);
  v.kernels.origin = "lock";
  return v;
}

VendoredKernels vendored_for(const Lock& lock, const std::string& lock_path, const ProblemFile& file,
                             const std::string& arch) {
  const std::vector<const LockEntry*> entries = linked_entries(lock, file.problem.key(), arch);
  if (entries.empty())
    throw Error("a frozen build needs a lock entry for every problem", lock_path,
                file.label() + ": missing: no entry for " + file.problem.key() + " on " + arch,
                "run `ninja tune` where the device is attached and commit the lock");
  VendoredKernels all = read_vendored(lock_path, *entries.front());
  add_call(*entries.front(), file, "", all);
  for (size_t i = 1; i < entries.size(); ++i) {
    const bool same_call = !file.fallback || entries[i]->vendor == entries.front()->vendor;
    if (same_decision(*entries[i], *entries.front()) && same_call) continue;
    add_call(*entries[i], file, entries[i]->device.name, all);
    const VendoredKernels other = read_vendored(lock_path, *entries[i]);
    all.verified.insert(other.verified.begin(), other.verified.end());
    for (const Kernel& k : other.kernels.kernels)
      if (k.role == "main") {
        all.kernels.kernels.push_back(k);
        all.kernels.kernels.back().device = entries[i]->device.name;
      }
  }
  let_one_take_all(all.kernels);
  return all;
}

} // namespace deepgen
