// Runs kernel files for AMD GPUs on the simulated device:  amd_sim_run <seed> [--all] [--lds] <file.dgk>...
// Prints a verdict a kernel and case, with --lds also the bank conflicts of every LDS access; exits with 1
// when one is wrong. The LLVM IR is made anew from the problem and config in the file.
#include "base/text/error.h"
#include "tests/amd_sim/check/check.h"
#include "tests/amd_sim/check/compiled.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace deepgen {
namespace {

struct Options {
  uint64_t seed = 1;
  bool all = false, lds = false;
};

void print_banks(const amd_sim::Report& report) {
  for (const amd_sim::LdsAccess& a : report.lds)
    std::printf("  %5.2f x %llu %s of %u bytes: %s\n", a.conflict_factor,
                static_cast<unsigned long long>(a.accesses), a.write ? "writes" : "reads", a.bytes,
                a.instruction.c_str());
}

bool check(const char* path, const Kernel& k, const std::string& arch, const Options& o) {
  bool good = true;
  const std::string ir = amd_sim::compile(k.problem, arch, k.choice).ir;
  for (const ptx_sim::Check& c : ptx_sim::checks(k, o.seed, o.all)) {
    amd_sim::Report report;
    const ptx_sim::Outcome outcome = c.on(amd_sim::runner(k, ir, report));
    const bool right = outcome.fault.empty();
    std::printf("%s %s %s '%s' error %.2g\n", right ? "ok   " : "WRONG", path, k.role.c_str(), c.name.c_str(),
                outcome.error);
    if (!right)
      std::printf("  %s\n  %s | %s\n", outcome.fault.c_str(), k.problem.key().c_str(),
                  k.choice.text().c_str());
    if (o.lds) print_banks(report);
    std::fflush(stdout);
    good &= right;
  }
  return good;
}

bool check_file(const char* path, const Options& o) try {
  const KernelFile file = KernelFile::read(path);
  if (file.status != "ok") throw Error("the candidate is no kernel", path, file.detail);
  bool good = true;
  for (const Kernel& k : file.kernels) good &= check(path, k, file.arch, o);
  return good;
} catch (const std::exception& e) {
  std::printf("WRONG %s: %s\n", path, e.what());
  return false;
}

} // namespace
} // namespace deepgen

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: amd_sim_run <seed> [--all] [--lds] <file.dgk>...\n");
    return 2;
  }
  deepgen::Options options;
  options.seed = std::strtoull(argv[1], nullptr, 0);
  bool good = true;
  for (int i = 2; i < argc; ++i)
    if (!std::strcmp(argv[i], "--all"))
      options.all = true;
    else if (!std::strcmp(argv[i], "--lds"))
      options.lds = true;
    else
      good &= deepgen::check_file(argv[i], options);
  return good ? 0 : 1;
}
