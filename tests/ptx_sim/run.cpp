// Runs kernel files on the simulated device:  ptx_sim <seed> <file.dgk>...
// Prints a verdict a kernel; exits with 1 when one is wrong.
#include "base/text/error.h"
#include "tests/ptx_sim/check.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

int main(int argc, char** argv) {
  using namespace deepgen;
  if (argc < 3) {
    std::fprintf(stderr, "usage: ptx_sim <seed> [--all] <file.dgk>...\n");
    return 2;
  }
  const uint64_t seed = std::strtoull(argv[1], nullptr, 0);
  bool all = false, good = true;
  for (int i = 2; i < argc; ++i) try {
      if (!std::strcmp(argv[i], "--all")) {
        all = true;
        continue;
      }
      const KernelFile file = KernelFile::read(argv[i]);
      if (file.status != "ok") throw Error("the candidate is no kernel", argv[i], file.detail);
      for (const Kernel& k : file.kernels)
        for (const cuda::CallCase& c :
             all ? cuda::call_cases(k.problem.gemm()) : ptx_sim::chosen_cases(k.problem.gemm(), seed)) {
          const ptx_sim::Outcome outcome = ptx_sim::check_case(k, c, seed);
          good &= outcome.fault.empty();
          std::printf("%s %s %s '%s' error %.2g%s%s\n", outcome.fault.empty() ? "ok   " : "WRONG", argv[i],
                      k.role.c_str(), c.name, outcome.error, outcome.fault.empty() ? "" : "\n  ",
                      outcome.fault.c_str());
          if (!outcome.fault.empty())
            std::printf("  %s | %s\n", k.problem.key().c_str(), k.choice.text().c_str());
          std::fflush(stdout);
        }
    } catch (const std::exception& e) {
      std::printf("WRONG %s: %s\n", argv[i], e.what());
      good = false;
    }
  return good ? 0 : 1;
}
