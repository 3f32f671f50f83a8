#include "measure/process/fault.h"

#include <csignal>
#include <cstdio>
#include <cstring>

namespace deepgen::fault {
namespace {

struct Region {
  const char* name = nullptr;
  const char *begin = nullptr, *end = nullptr, *first = nullptr, *last = nullptr;
};

constexpr int kRegions = 512; // a plain array: the handler may not lock or allocate
Region regions[kRegions];
void (*reporter)(const char*) = nullptr;
alignas(64) char handler_stack[64 << 10];

void handle(int signal, siginfo_t* info, void*) {
  char text[160];
  if (reporter && info->si_code > 0 && describe(info->si_addr, text, sizeof text)) reporter(text);
  std::signal(signal, SIG_DFL); // the faulting instruction runs again, and the process dies of it
}

} // namespace

int add_region(const char* name, const char* begin, const char* end, const char* first, const char* last) {
  for (int i = 0; i < kRegions; ++i)
    if (!regions[i].name) {
      regions[i] = {name, begin, end, first, last};
      return i;
    }
  return -1; // a fault there stays a plain crash
}

void remove_region(int handle) {
  if (handle >= 0) regions[handle] = {};
}

bool describe(const void* address, char* text, size_t size) {
  const char* at = static_cast<const char*>(address);
  for (const Region& r : regions) {
    if (!r.name || at < r.begin || at >= r.end) continue;
    if (at >= r.last)
      std::snprintf(text, size, "access %zd bytes behind the end of %s", at - r.last, r.name);
    else if (at < r.first)
      std::snprintf(text, size, "access %zd bytes before the start of %s", r.first - at, r.name);
    else
      std::snprintf(text, size, "write to the input %s", r.name);
    return true;
  }
  return false;
}

void install(void (*report)(const char*)) {
  reporter = report;
  stack_t stack = {};
  stack.ss_sp = handler_stack;
  stack.ss_size = sizeof handler_stack;
  sigaltstack(&stack, nullptr); // the kernel may have overrun the ordinary one
  struct sigaction action = {};
  action.sa_sigaction = handle;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGSEGV, &action, nullptr);
  sigaction(SIGBUS, &action, nullptr);
}

} // namespace deepgen::fault
