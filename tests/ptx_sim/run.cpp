// Runs kernel files on the simulated device:  ptx_sim_run <seed> [--all] <file.dgk>...
// Prints a verdict a kernel and case; exits with 1 when one is wrong.
#include "base/text/error.h"
#include "tests/ptx_sim/check/check.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace deepgen {
namespace {

bool check(const char* path, const Kernel& k, uint64_t seed, bool all) {
  bool good = true;
  for (const ptx_sim::Check& c : ptx_sim::checks(k, seed, all)) {
    const ptx_sim::Outcome outcome = c.on(ptx_sim::runner(k));
    const bool right = outcome.fault.empty();
    std::printf("%s %s %s '%s' error %.2g\n", right ? "ok   " : "WRONG", path, k.role.c_str(), c.name.c_str(),
                outcome.error);
    if (!right)
      std::printf("  %s\n  %s | %s\n", outcome.fault.c_str(), k.problem.key().c_str(),
                  k.choice.text().c_str());
    std::fflush(stdout);
    good &= right;
  }
  return good;
}

bool check_file(const char* path, uint64_t seed, bool all) try {
  const KernelFile file = KernelFile::read(path);
  if (file.status != "ok") throw Error("the candidate is no kernel", path, file.detail);
  bool good = true;
  for (const Kernel& k : file.kernels) good &= check(path, k, seed, all);
  return good;
} catch (const std::exception& e) {
  std::printf("WRONG %s: %s\n", path, e.what());
  return false;
}

} // namespace
} // namespace deepgen

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: ptx_sim_run <seed> [--all] <file.dgk>...\n");
    return 2;
  }
  const uint64_t seed = std::strtoull(argv[1], nullptr, 0);
  bool all = false, good = true;
  for (int i = 2; i < argc; ++i)
    if (!std::strcmp(argv[i], "--all"))
      all = true;
    else
      good &= deepgen::check_file(argv[i], seed, all);
  return good ? 0 : 1;
}
