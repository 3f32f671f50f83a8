#include "measure/process/sandbox.h"

#include "base/json/json.h"
#include "measure/process/seccomp_filter.h"
#include "measure/process/worker.h"

#include <algorithm>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace deepgen::sandbox {
namespace {

constexpr int64_t kSlack = int64_t(1) << 30; ///< stacks and arenas of threads
constexpr int64_t kMost = int64_t(1) << 46;  ///< the address space has no more

int statm = -1; ///< of this process, open since enter()
int64_t most_bytes = 0;

/// Private memory that can be written, as RLIMIT_DATA counts it, and stacks; 0 when it cannot be read.
int64_t private_bytes() {
  char text[128];
  const ssize_t size = statm >= 0 ? pread(statm, text, sizeof text - 1, 0) : 0;
  long long pages = 0;
  if (size > 0) {
    text[size] = 0;
    std::sscanf(text, "%*u %*u %*u %*u %*u %lld", &pages);
  }
  return pages * sysconf(_SC_PAGESIZE);
}

/// Lowers a limit for good; one that is lower already stays.
bool lower(__rlimit_resource resource, uint64_t value, uint64_t hard) {
  rlimit limit = {};
  if (getrlimit(resource, &limit) != 0) return false;
  limit.rlim_max = std::min<rlim_t>(limit.rlim_max, hard);
  limit.rlim_cur = std::min({limit.rlim_cur, limit.rlim_max, rlim_t(value)});
  return setrlimit(resource, &limit) == 0;
}

bool set_limits(const Limits& limits) {
  std::signal(SIGXFSZ, SIG_IGN); // a line for standard error is lost then, where that is a file
  bool good = lower(RLIMIT_CORE, 0, 0) & lower(RLIMIT_FSIZE, 0, 0);
  if (limits.cpu_seconds > 0) { // SIGXCPU, then SIGKILL
    const auto seconds = uint64_t(std::ceil(limits.cpu_seconds));
    good &= lower(RLIMIT_CPU, seconds, seconds + 5);
  }
  statm = open("/proc/self/statm", O_RDONLY | O_CLOEXEC);
  const int64_t now = private_bytes();
  if (!now) return false; // no limit is better than one that means nothing
  most_bytes = 2 * now + std::min(limits.bytes, kMost) + kSlack;
  return good & lower(RLIMIT_DATA, uint64_t(most_bytes), uint64_t(most_bytes));
}

// Debian 12's headers are older than what current kernels can refuse.
struct LandlockRules {
  uint64_t files = 0, network = 0, scopes = 0;
};
constexpr long kCreateRuleset = 444, kRestrictSelf = 446;

/// Refuses all files, TCP, abstract sockets and signals, as far as the kernel knows how to. Returns its ABI.
int enter_landlock() {
  constexpr uint64_t kFiles[] = {0, 0x1fff, 0x3fff, 0x7fff, 0x7fff, 0xffff}; // rights that ABI 1, 2, ... know
  const long abi = syscall(kCreateRuleset, nullptr, size_t(0), 1u);
  if (abi < 1) return 0;
  LandlockRules rules;
  rules.files = kFiles[std::min(abi, 5L)];
  rules.network = abi >= 4 ? 3 : 0;
  rules.scopes = abi >= 6 ? 3 : 0;
  const size_t size = abi >= 6 ? sizeof rules : abi >= 4 ? 2 * sizeof(uint64_t) : sizeof(uint64_t);
  const long ruleset = syscall(kCreateRuleset, &rules, size, 0u);
  if (ruleset < 0) return 0;
  const bool good = syscall(kRestrictSelf, int(ruleset), 0u) == 0;
  close(int(ruleset));
  return good ? int(abi) : 0;
}

void miss(State& state, const std::string& what) {
  state.missing += (state.missing.empty() ? "" : "; ") + what;
}

} // namespace

std::string State::text() const {
  std::string text;
  const auto add = [&](const std::string& part) { text += (text.empty() ? "" : ", ") + part; };
  if (landlock) add("Landlock (ABI " + std::to_string(landlock) + ")");
  if (seccomp) add("seccomp");
  if (limits) add("limits of memory and time");
  if (text.empty()) text = "none";
  return missing.empty() ? text : text + "; not in force: " + missing;
}

State enter(int answers, const Limits& limits) {
  State state;
  if (const char* wish = std::getenv("DEEPGEN_SANDBOX"); wish && std::strcmp(wish, "off") == 0) {
    miss(state, "all of it, DEEPGEN_SANDBOX=off");
    return state;
  }
#ifdef __SANITIZE_ADDRESS__
  miss(state, "all of it, since the sanitizers' checks make system calls of their own");
  return state;
#endif
  state.limits = set_limits(limits);
  if (!state.limits) miss(state, "limits, which the system refuses");
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) {
    miss(state, std::string("Landlock and seccomp, since no_new_privs: ") + std::strerror(errno));
    return state;
  }
  errno = 0;
  state.landlock = enter_landlock();
  if (!state.landlock) miss(state, std::string("Landlock: ") + (errno ? std::strerror(errno) : "unknown"));
  state.seccomp = enter_seccomp(answers);
  if (!state.seccomp) miss(state, std::string("seccomp: ") + std::strerror(errno));
  return state;
}

double enough_seconds(double left) {
  constexpr double kHour = 3600;
  return 2 * std::max(left, 0.0) + kHour;
}

State probe() {
  State state;
  const WorkerEnd end = run_worker(
      [](Channel& channel) {
        const State inside = channel.confine({});
        channel.send({{"landlock", inside.landlock},
                      {"seccomp", inside.seccomp},
                      {"limits", inside.limits},
                      {"missing", inside.missing}});
      },
      [&](const Json& m) {
        state.landlock = m.value("landlock", 0), state.seccomp = m.value("seccomp", false);
        state.limits = m.value("limits", false), state.missing = m.value("missing", "");
      });
  if (end.kind != WorkerEnd::done) miss(state, "the attempt ended with " + end.detail);
  return state;
}

bool memory_is_used_up() {
  constexpr int64_t kNear = kSlack / 4; // the process has its slack still when the host is short of memory
  return most_bytes && private_bytes() + kNear > most_bytes;
}

} // namespace deepgen::sandbox
