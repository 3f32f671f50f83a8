#include "generator/cli/isolate.h"

#include "base/files/patience.h"
#include "base/text/memory.h"

#include "llvm/Support/ErrorHandling.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <new>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace deepgen {
namespace {

constexpr int kExceptionStatus = 97, kHostStatus = 98, kMemoryStatus = 99;

void write_all(int fd, const std::string& bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t n = write(fd, bytes.data() + at, bytes.size() - at);
    if (n < 0 && errno != EINTR) _exit(1);
    if (n > 0) at += size_t(n);
  }
}

[[noreturn]] void end_without_memory() { _exit(kMemoryStatus); }

[[noreturn]] void child(const std::function<std::string()>& work, pid_t parent, int out, int err) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);  // or it would hold the inherited locks for as long as it runs
  if (getppid() != parent) _exit(1); // the parent died before the line above
  const rlimit no_core{0, 0};
  setrlimit(RLIMIT_CORE, &no_core); // a core file of a bad candidate would litter the build folder
  dup2(err, STDERR_FILENO);
  std::set_new_handler(end_without_memory); // what a code generator without exceptions asks for
  llvm::install_bad_alloc_error_handler([](void*, const char*, bool) { end_without_memory(); });
  int status = 0;
  try {
    write_all(out, work());
  } catch (const HostFault& e) {
    write_all(STDERR_FILENO, e.what());
    status = kHostStatus;
  } catch (const std::bad_alloc&) { // of a size that the handler above is not asked about
    status = kMemoryStatus;
  } catch (const std::exception& e) {
    write_all(STDERR_FILENO, e.what());
    status = kExceptionStatus;
  }
  std::fflush(nullptr);
  _exit(status); // no destructors of the parent's objects
}

/// Reads both pipes until their ends; false when the time is up first.
bool drain(const std::array<int, 2>& fds, std::array<std::string*, 2> texts, double seconds) {
  Patience patience(seconds);
  std::array<pollfd, 2> polled{{{fds[0], POLLIN, 0}, {fds[1], POLLIN, 0}}};
  while (polled[0].fd >= 0 || polled[1].fd >= 0) {
    if (patience.left() <= 0) return false;
    if (poll(polled.data(), 2, patience.milliseconds()) < 0 && errno != EINTR) return false;
    for (size_t i = 0; i < 2; ++i) {
      if (polled[i].fd < 0 || !polled[i].revents) continue;
      char buffer[1 << 16];
      const ssize_t n = read(polled[i].fd, buffer, sizeof buffer);
      if (n > 0) texts[i]->append(buffer, size_t(n));
      if (n == 0 || (n < 0 && errno != EINTR)) polled[i].fd = -1;
    }
  }
  return true;
}

std::string death(int status) {
  if (!WIFSIGNALED(status)) return "ended with status " + std::to_string(WEXITSTATUS(status));
  const int signal = WTERMSIG(status);
  return "was killed by signal " + std::to_string(signal) + " (" + strsignal(signal) + ")";
}

} // namespace

Isolated run_isolated(const std::function<std::string()>& work, double seconds) {
  std::array<int, 2> out, err;
  if (pipe2(out.data(), O_CLOEXEC) != 0 || pipe2(err.data(), O_CLOEXEC) != 0)
    throw HostFault("cannot create a pipe", "", std::strerror(errno),
                    "raise the limit on open files (ulimit -n), and run the same command again");
  std::fflush(nullptr);
  const pid_t parent = getpid(), pid = fork();
  if (pid < 0)
    throw HostFault(
        "cannot start a process", "fork", std::strerror(errno) + ("; " + memory_text()),
        "free memory or end processes (ulimit -u), and run the same command again: it goes on here");
  if (pid == 0) child(work, parent, out[1], err[1]);
  close(out[1]);
  close(err[1]);
  Isolated isolated;
  const bool in_time = drain({out[0], err[0]}, {&isolated.result, &isolated.errors}, seconds);
  if (!in_time) kill(pid, SIGKILL);
  int status = 0;
  rusage usage = {};
  while (wait4(pid, &status, 0, &usage) < 0 && errno == EINTR) {
  }
  close(out[0]);
  close(err[0]);
  isolated.threw = in_time && WIFEXITED(status) && WEXITSTATUS(status) == kExceptionStatus;
  isolated.killed = in_time && WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
  isolated.peak_bytes = int64_t(usage.ru_maxrss) << 10;
  const int ended = in_time && WIFEXITED(status) ? WEXITSTATUS(status) : 0;
  if (ended == kHostStatus) isolated.host = isolated.errors;
  if (ended == kMemoryStatus)
    isolated.host =
        no_memory("not enough memory", "a child process, which had " + bytes_text(isolated.peak_bytes), 0)
            .what();
  if (!in_time)
    isolated.failure = "took longer than " + std::to_string(int(seconds)) + " s";
  else if (status != 0)
    isolated.failure = death(status);
  return isolated;
}

} // namespace deepgen
