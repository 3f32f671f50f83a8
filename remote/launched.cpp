#include "remote/launched.h"

#include "base/files/patience.h"
#include "remote/attempt.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace deepgen {
namespace {

constexpr size_t kMostOfOutput = (size_t(1) << 30) + (1 << 20), kMostOfErrors = 64 << 10;
constexpr double kLauncherGrace = 3; ///< seconds for a launcher to end what it has started
constexpr int kNotFound = 127;

/// Of the signals that ask to end. They stay blocked: attempts follow one another.
int stop_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP}) sigaddset(&set, signal);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/// Whoever reads this process's messages through a pipe has closed it: that was Ninja.
bool build_is_gone() {
  struct stat info = {};
  if (fstat(STDERR_FILENO, &info) != 0 || !S_ISFIFO(info.st_mode)) return false;
  pollfd fd{STDERR_FILENO, 0, 0};
  return poll(&fd, 1, 0) > 0 && (fd.revents & POLLERR);
}

[[noreturn]] void launch(const std::vector<std::string>& words, int in, int out, int err, pid_t parent) {
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGTERM); // and its input ends
  if (getppid() != parent) _exit(1);
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  std::signal(SIGPIPE, SIG_DFL);
  dup2(in, STDIN_FILENO), dup2(out, STDOUT_FILENO), dup2(err, STDERR_FILENO);
  std::vector<char*> argv;
  for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
  argv.push_back(nullptr);
  execvp(argv[0], argv.data());
  const std::string why = words.front() + ": " + std::strerror(errno) + "\n";
  if (::write(STDERR_FILENO, why.data(), why.size()) < 0) _exit(kNotFound);
  _exit(kNotFound);
}

void close_end(int& fd) {
  if (fd >= 0) close(fd);
  fd = -1;
}

} // namespace

Launched::Launched(const std::vector<std::string>& words) : signals_(stop_signals()) {
  std::array<int, 2> in, out, err;
  const bool good = pipe2(in.data(), O_CLOEXEC) == 0 && pipe2(out.data(), O_CLOEXEC) == 0 &&
                    pipe2(err.data(), O_CLOEXEC) == 0;
  const pid_t parent = getpid();
  if (!good || (pid_ = fork()) < 0)
    throw HostFault(
        "cannot start a launcher", words.front(), std::strerror(errno),
        "raise the limits on open files and processes (ulimit -n, -u), and run the same command again");
  if (pid_ == 0) launch(words, in[0], out[1], err[1], parent);
  close(in[0]), close(out[1]), close(err[1]);
  in_ = in[1], out_ = out[0], err_ = err[0];
  for (const int fd : {in_, out_, err_}) fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
}

Launched::~Launched() {
  end(0);
  close_end(signals_);
}

void Launched::read(int& fd, std::string& text, size_t most) {
  std::array<char, 1 << 16> buffer;
  for (int i = 0; i < 16; ++i) { // then the clocks are looked at
    const ssize_t n = ::read(fd, buffer.data(), buffer.size());
    if (n > 0) text.append(buffer.data(), size_t(n));
    if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) close_end(fd);
    if (n <= 0) break;
  }
  if (text.size() > most) text.erase(0, text.size() - most);
}

void Launched::write(std::string& input) {
  size_t at = 0;
  while (at < input.size()) {
    const ssize_t n = ::write(in_, input.data() + at, input.size() - at);
    if (n < 0 && errno == EINTR) continue;
    if (n < 0 && errno != EAGAIN) close_end(in_), at = input.size(); // its end says why
    if (n <= 0) break;
    at += size_t(n);
  }
  input.erase(0, at);
}

bool Launched::wait(std::string& input) {
  std::array<pollfd, 4> fds{
      {{signals_, POLLIN, 0}, {out_, POLLIN, 0}, {err_, POLLIN, 0}, {input.empty() ? -1 : in_, POLLOUT, 0}}};
  poll(fds.data(), fds.size(), int(Patience::slice * 1000));
  signalfd_siginfo signal = {};
  const bool told = ::read(signals_, &signal, sizeof signal) == ssize_t(sizeof signal);
  if (told || build_is_gone()) {
    end(0);
    throw Stopped("stopped", "", told ? "by signal " + std::to_string(signal.ssi_signo) : "the build is gone",
                  "run the same command again: it goes on here");
  }
  if (out_ >= 0 && fds[1].revents) read(out_, output, kMostOfOutput);
  if (err_ >= 0 && fds[2].revents) read(err_, errors, kMostOfErrors);
  if (in_ >= 0 && fds[3].revents) write(input);
  return out_ >= 0;
}

bool Launched::has_ended(double seconds) {
  Patience patience(seconds);
  useconds_t pause = 200; // mostly it ends at once
  do {
    if (waitpid(pid_, &status_, WNOHANG) == pid_) return true;
    if (err_ >= 0) read(err_, errors, kMostOfErrors);
    usleep(pause);
    pause = std::min<useconds_t>(2 * pause, 5000);
  } while (patience.left() > 0);
  return false;
}

std::string Launched::end(double seconds) {
  if (pid_ < 0) return "";
  close_end(in_); // a worker that sees that ends by itself
  const bool alone = has_ended(seconds > 0 ? seconds : out_ < 0 ? 1 : 0);
  if (!alone) {
    kill(-pid_, SIGTERM);
    if (!has_ended(kLauncherGrace)) {
      kill(-pid_, SIGKILL);
      while (waitpid(pid_, &status_, 0) < 0 && errno == EINTR) {
      }
    }
  }
  kill(-pid_, SIGKILL); // what a launcher that is a script has left behind
  if (err_ >= 0) read(err_, errors, kMostOfErrors);
  pid_ = -1;
  close_end(out_), close_end(err_);
  if (!alone) return "it was ended";
  if (WIFSIGNALED(status_)) return "killed by signal " + std::to_string(WTERMSIG(status_));
  return WEXITSTATUS(status_) ? "exit status " + std::to_string(WEXITSTATUS(status_)) : "";
}

} // namespace deepgen
