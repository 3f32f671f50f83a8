#include "generator/lock/locked.h"

#include "base/text/error.h"

#include <algorithm>

namespace deepgen {
namespace {

bool is(const Kernel& k, const LockedChoice& c) {
  return k.role == "main" && k.device == c.device && k.choice == c.choice && k.sha256 == c.expect_sha256;
}

} // namespace

void check_locked(const KernelFile& file, const ChoiceFile& choice) {
  const auto refuse = [&](const std::string& why) {
    throw Error("the kernels to be linked are not those of the lock", choice.function + " on " + choice.arch,
                why, "delete the build folder of this target and build again");
  };
  if (file.problem != choice.problem || file.arch != choice.arch)
    refuse("the kernel file is of " + file.problem.key() + " on " + file.arch);
  if (choice.origin != "lock") return;
  if (file.revision != choice.main.revision) refuse("the kernel file is of another revision of the template");
  std::vector<LockedChoice> expected = choice.devices;
  expected.insert(expected.end(), choice.ranges.begin(), choice.ranges.end());
  expected.push_back(choice.main);
  for (const LockedChoice& c : expected)
    if (std::none_of(file.kernels.begin(), file.kernels.end(), [&](const Kernel& k) { return is(k, c); }))
      refuse("no kernel of " + c.choice.text() + " has the sha256 " + c.expect_sha256);
  for (const Kernel& k : file.kernels)
    if (k.role == "main" &&
        std::none_of(expected.begin(), expected.end(), [&](const LockedChoice& c) { return is(k, c); }))
      refuse("the lock has no kernel of " + k.choice.text() + " with the sha256 " + k.sha256);
}

void check_locked(const std::string& lock_path, const std::vector<EmbeddedFile>& files) {
  std::vector<SelectRequest> requests;
  for (const EmbeddedFile& f : files)
    requests.push_back({f.function, f.kernels.arch, generic_device(f.kernels.arch), {}});
  const std::vector<Selected> selections = select(Mode::frozen, Lock::read(lock_path), lock_path, requests);
  for (size_t i = 0; i < files.size(); ++i) check_locked(files[i].kernels, selections[i].choice);
}

} // namespace deepgen
