// Libraries with runtimes of different versions in one process, in any order and whatever the scope of their
// symbols.
#include "loaded.h"
#include "tests/paths.h"

#include <algorithm>
#include <array>
#include <memory>
#include <sys/wait.h>
#include <unistd.h>

namespace paths = deepgen::paths;

namespace {

using abi_tests::Loaded;

struct File {
  const char* path;
  int number;
};
const File k01 = {paths::library_1, 1}, kPresent = {paths::library_2, 2}, kNext = {paths::library_3, 3},
           kPresentAgain = {paths::library_5, 5};

/// In a process of its own: symbols that are bound once stay bound.
bool all_compute(const std::vector<File>& files, int mode) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(30);
    std::vector<std::unique_ptr<Loaded>> loaded;
    for (const File& file : files)
      loaded.push_back(std::make_unique<Loaded>(file.path, file.number, RTLD_NOW | mode));
    bool good = true;
    for (int round = 0; round < 3; ++round)
      for (auto& library : loaded) good = good && library->computes();
    while (!loaded.empty()) { // the others go on when one is gone
      loaded.erase(loaded.begin());
      for (auto& library : loaded) good = good && library->computes();
    }
    exit(good ? 0 : 1);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(SideBySide, RuntimesOfSeveralVersionsServeTheirOwnLibraries) {
  std::array<int, 4> order = {0, 1, 2, 3};
  const std::array<File, 4> files = {k01, kPresent, kNext, kPresentAgain};
  do {
    std::vector<File> ordered;
    for (int i : order) ordered.push_back(files[size_t(i)]);
    for (int mode : {RTLD_GLOBAL, RTLD_LOCAL})
      EXPECT_TRUE(all_compute(ordered, mode))
          << ordered[0].number << ordered[1].number << ordered[2].number << ordered[3].number
          << (mode == RTLD_GLOBAL ? " global" : " local");
  } while (std::next_permutation(order.begin(), order.end()));
}

TEST(SideBySide, ALibraryOf01IsRefusedWithWordsByARuntimeOfToday) {
  Loaded library(paths::library_1_refused, 1, RTLD_NOW);
  std::vector<float> a(64, 1), d(64, -1);
  EXPECT_NE(library.registered(), 0);
  const int status = library.run(a.data(), d.data());
  EXPECT_EQ(library.words(status),
            "the library, the program and the runtime are of different versions of DeepGen: build all "
            "of them with one, and in C begin deepgen_gemm_args with DEEPGEN_GEMM_ARGS");
  EXPECT_EQ(d, std::vector<float>(64, -1)) << "something was computed";
}

} // namespace
