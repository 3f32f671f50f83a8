// Libraries that come and go: nothing of the runtime stays behind, and nothing goes while it is needed.
#include "loaded.h"
#include "tests/paths.h"

#include <atomic>
#include <cstdlib>
#include <fstream>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace paths = deepgen::paths;

namespace {

using abi_tests::Loaded;

/// What /proc/self/status has under a name: KiB, or a count.
long status_of(const std::string& name) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.rfind(name + ":", 0) == 0) return std::stol(line.substr(name.size() + 1));
  return -1;
}

template <typename Body>
int exit_code_of_child(Body body) {
  const pid_t child = fork();
  if (child == 0) {
    alarm(60);
    body();
    exit(0);
  }
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

/// A library with a MiB of scratch for each thread reserves 256 MiB of address space.
TEST(Unload, TwoHundredRoundsLeaveNothing) {
  const auto round = [] {
    Loaded library(paths::library_2, 2, RTLD_NOW | RTLD_LOCAL);
    EXPECT_TRUE(library.computes());
  };
  for (int i = 0; i < 20; ++i) round(); // what the C library keeps: stacks of threads, its heap
  const long size = status_of("VmSize"), resident = status_of("VmRSS");
  for (int i = 0; i < 200; ++i) round();
  EXPECT_EQ(dlopen(paths::library_2, RTLD_NOLOAD | RTLD_NOW), nullptr) << "the library stays in the process";
  EXPECT_EQ(status_of("Threads"), 1);
  EXPECT_LT(status_of("VmSize") - size, 1024) << "KiB of address space";
  EXPECT_LT(status_of("VmRSS") - resident, 1024) << "KiB of memory";
}

TEST(Unload, AChildOfForkUnloadsWhatItsParentUsed) {
  Loaded library(paths::library_2, 2, RTLD_NOW | RTLD_LOCAL);
  ASSERT_TRUE(library.computes());
  for (int i = 0; i < 20; ++i)
    EXPECT_EQ(exit_code_of_child([&] {
                const long before = status_of("VmSize");
                if (i % 2 && !library.computes()) _exit(1);
                void* again = dlopen(paths::library_2, RTLD_NOLOAD | RTLD_NOW);
                dlclose(again);
                dlclose(again); // the parent's own
                if (dlopen(paths::library_2, RTLD_NOLOAD | RTLD_NOW)) _exit(2);
                _exit(before - status_of("VmSize") > 200 * 1024 ? 0 : 3);
              }),
              0);
  EXPECT_TRUE(library.computes());
}

Loaded* late = nullptr;
void call_late() {
  if (!late->computes()) _exit(1);
}
struct CallsWhenDestroyed {
  bool armed = false;
  ~CallsWhenDestroyed() {
    if (armed) call_late();
  }
};
CallsWhenDestroyed static_object;
thread_local CallsWhenDestroyed thread_object;

/// Calls from destructors of static and thread-local objects and from atexit() handlers, registered before
/// and after the library was loaded.
TEST(Unload, CallsDuringExit) {
  EXPECT_EQ(exit_code_of_child([] {
              std::atexit(call_late);
              late = new Loaded(paths::library_2, 2, RTLD_NOW | RTLD_LOCAL);
              std::atexit(call_late);
              static_object.armed = thread_object.armed = true;
              std::thread([] {
                thread_object.armed = true;
                call_late();
              }).join();
            }),
            0);
}

/// exit() while other threads call: their scratch stays.
TEST(Unload, ExitWhileThreadsCall) {
  for (int i = 0; i < 50; ++i)
    EXPECT_EQ(exit_code_of_child([&] {
                late = new Loaded(paths::library_2, 2, RTLD_NOW | RTLD_LOCAL);
                late->set_threads(1 + i % 3);
                for (int t = 0; t < 3; ++t)
                  std::thread([] {
                    float a[64] = {}, d[64];
                    for (;;) late->run(a, d);
                  }).detach();
                usleep(useconds_t(i * 100));
              }),
              0)
        << "round " << i;
}

} // namespace
