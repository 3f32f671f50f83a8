// Calls in children of fork(), in signal handlers, and in a library that comes and goes.
#include "process.h"

#include <atomic>
#include <csignal>
#include <dlfcn.h>
#include <fstream>
#include <string>
#include <sys/time.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace {

process::Product* in_handler = nullptr;
std::atomic<int> handled{0};

void call(int) {
  in_handler->run();
  REQUIRE(in_handler->is_right());
  handled++;
}

long status_of(const std::string& name) {
  std::ifstream file("/proc/self/status");
  for (std::string line; std::getline(file, line);)
    if (line.rfind(name + ":", 0) == 0) return std::stol(line.substr(name.size() + 1));
  return -1;
}

} // namespace

/// While other threads call.
void process::forks() {
  std::atomic<bool> over{false};
  std::thread others([&] {
    Product product;
    while (!over) product.run();
  });
  Product product;
  for (int i = 0; i < 200; ++i) {
    product.run();
    const pid_t child = fork();
    if (child == 0) {
      alarm(30);
      product.run();
      REQUIRE(product.is_right());
      _exit(0);
    }
    int status = -1;
    REQUIRE(waitpid(child, &status, 0) == child);
    REQUIRE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  }
  over = true;
  others.join();
}

void process::signal_handlers() {
  Product interrupted, other;
  in_handler = &other;
  struct sigaction action = {}, old;
  action.sa_handler = call, action.sa_flags = SA_RESTART;
  REQUIRE(sigaction(SIGALRM, &action, &old) == 0);
  const itimerval often = {{0, 20'000}, {0, 1'000}}, never = {};
  REQUIRE(setitimer(ITIMER_REAL, &often, nullptr) == 0);
  while (handled < 20) {
    interrupted.run();
    REQUIRE(interrupted.is_right());
  }
  REQUIRE(setitimer(ITIMER_REAL, &never, nullptr) == 0);
  sigaction(SIGALRM, &old, nullptr);
}

void process::plugins() {
  const auto round = []() CALLS_WHAT_CFI_DOES_NOT_KNOW {
    void* library = dlopen(PLUGIN, RTLD_NOW | RTLD_LOCAL);
    if (!library) std::puts(dlerror());
    REQUIRE(library);
    Product product;
    const auto run =
        reinterpret_cast<int (*)(const float*, const float*, float*)>(dlsym(library, "plugin_product"));
    REQUIRE(run(product.a.data(), product.b.data(), product.d.data()) == 0);
    REQUIRE(product.is_right());
    REQUIRE(dlclose(library) == 0);
    REQUIRE(!dlopen(PLUGIN, RTLD_NOLOAD | RTLD_NOW));
  };
  for (int i = 0; i < 20; ++i) round();
  const long size = status_of("VmSize"), resident = status_of("VmRSS"), threads = status_of("Threads");
  for (int i = 0; i < 200; ++i) round();
  REQUIRE(status_of("Threads") == threads);
  REQUIRE(status_of("VmSize") - size < 1024); // KiB
  REQUIRE(status_of("VmRSS") - resident < 1024);
}
