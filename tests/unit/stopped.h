// A process group that is stopped, as by Ctrl-Z, while work is under way in it, and goes on afterwards.
#pragma once

#include <chrono>
#include <csignal>
#include <functional>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

namespace deepgen {

/// Says that it has begun, and returns true when it is told to go on: after the stop.
using Work = std::function<bool()>;

/// Runs `body(work)` in a process group of its own, which is stopped for so long once `work` has begun, in
/// whatever process. Returns what `body` did: the group's exit status.
inline int status_after_stop(std::chrono::milliseconds time, const std::function<int(const Work&)>& body) {
  int working[2], go_on[2];
  if (pipe(working) != 0 || pipe(go_on) != 0) return -1;
  const pid_t group = fork();
  if (group == 0) {
    setpgid(0, 0);
    _exit(body([&] {
      char x = 'x';
      return write(working[1], &x, 1) == 1 && read(go_on[0], &x, 1) == 1;
    }));
  }
  char x = 0;
  EXPECT_EQ(read(working[0], &x, 1), 1);
  kill(-group, SIGSTOP);
  std::this_thread::sleep_for(time);
  kill(-group, SIGCONT);
  EXPECT_EQ(write(go_on[1], &x, 1), 1);
  int status = -1;
  waitpid(group, &status, 0);
  for (int fd : {working[0], working[1], go_on[0], go_on[1]}) close(fd);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

} // namespace deepgen
