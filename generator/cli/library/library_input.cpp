#include "generator/cli/library/library_input.h"

#include "base/text/error.h"
#include "generator/cli/inputs.h"
#include "generator/codegen/compile.h"
#include "generator/lock/lock_file.h"
#include "generator/lock/locked.h"
#include "generator/lock/vendored.h"

#include <filesystem>
#include <optional>

namespace deepgen {
namespace {

/// The kernels that lie beside the lock; what is wrong with them is told of all functions at once.
class VendoredFolder {
public:
  explicit VendoredFolder(const std::string& lock) : path_(lock) {}

  void add(const std::string& arch, LibraryFunction& f, std::map<std::string, std::string>& toolchain) {
    if (path_.empty())
      throw Error("--vendored without a lock", f.file.label(), "it is the lock that names the kernels",
                  "pass --locked-by");
    if (!lock_) lock_ = Lock::read(path_);
    try {
      VendoredKernels v = vendored_for(*lock_, real_path(path_), f.file, arch);
      for (const Kernel& k : v.kernels.kernels) toolchain[k.sha256] = v.toolchain;
      f.kernels.push_back(std::move(v.kernels));
      f.verified.merge(v.verified);
      f.calls.insert(f.calls.end(), v.calls.begin(), v.calls.end());
    } catch (const Error& e) {
      failures_ += "\n" + std::string(e.what());
    }
  }
  void require_all() const {
    if (!failures_.empty())
      throw Error("a frozen build needs the vendored kernels of every problem" + failures_);
  }

private:
  std::string path_, failures_;
  std::optional<Lock> lock_;
};

/// The vendors' calls of a function: a frozen build has those of its lock, whatever happened to the files
/// between.
void add_calls(const std::string& lock, const Group& group, LibraryFunction& f) {
  if (!f.file.fallback) return;
  for (const std::string& path : group.many("--choice")) {
    ChoiceFile choice = ChoiceFile::read(path);
    if (!lock.empty())
      choice = select(Mode::frozen, Lock::read(lock), lock,
                      {{f.file, choice.arch, generic_device(choice.arch), {}}})
                   .front()
                   .choice;
    for (LinkedCall& call : choice.calls()) f.calls.push_back(std::move(call));
  }
}

} // namespace

LibraryOutput read_library(const LibraryInput& in, const std::vector<Group>& groups) {
  LibraryOutput out{{in.target, file_name(in.header), {}}, {}};
  VendoredFolder folder(in.lock);
  std::vector<EmbeddedFile> to_check; // what the lock does not give itself
  for (const Group& group : groups) {
    LibraryFunction f{ProblemFile::read(group.one("--problem")), {}};
    for (const std::string& path : group.many("--kernel")) {
      f.kernels.push_back(KernelFile::read(path));
      to_check.push_back({f.file, f.kernels.back()});
      for (const Kernel& k : f.kernels.back().kernels)
        out.toolchain[k.sha256] = toolchain(f.kernels.back().arch);
    }
    for (const std::string& path : group.many("--verified")) f.verified.merge(read_verified(path));
    for (const std::string& arch : group.many("--vendored")) folder.add(arch, f, out.toolchain);
    add_calls(in.lock, group, f);
    out.library.functions.push_back(std::move(f));
  }
  folder.require_all();
  validate(out.library);
  if (!in.lock.empty() && !to_check.empty()) check_locked(in.lock, to_check);
  return out;
}

std::string file_name(const std::string& path) { return std::filesystem::path(path).filename().string(); }

} // namespace deepgen
