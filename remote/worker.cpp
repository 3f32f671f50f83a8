#include "remote/worker.h"

#include "base/files/files.h"
#include "base/files/lock_folder.h"
#include "base/text/failure.h"
#include "base/text/text.h"
#include "remote/scratch.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <iostream>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

namespace fs = std::filesystem;

namespace deepgen {
namespace {

constexpr size_t kMostOfText = 64 << 10; ///< of what a command says: the end of it
constexpr int kGrace = 2;                ///< seconds for a command to end by itself
constexpr int kKilled = 128;             ///< and the signal's number, as shells say it

/// Whoever started this worker is gone, or told it to end: nobody reads an answer.
struct Abandoned {};

std::string variable(const char* name) {
  const char* value = std::getenv(name);
  return value ? value : "";
}

std::string node() {
  if (const std::string name = variable("SLURMD_NODENAME"); !name.empty()) return name;
  std::array<char, 256> name = {};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

std::string job() {
  const std::string id = variable("SLURM_JOB_ID"), step = variable("SLURM_STEP_ID");
  return id.empty() || step.empty() ? id : id + "." + step;
}

void send(const std::string& bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t n = write(STDOUT_FILENO, bytes.data() + at, bytes.size() - at);
    if (n < 0 && errno != EINTR) throw Abandoned();
    if (n > 0) at += size_t(n);
  }
}

/// Signals become something that poll(2) waits for.
int signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGINT, SIGHUP, SIGCHLD}) sigaddset(&set, signal);
  sigprocmask(SIG_BLOCK, &set, nullptr);
  std::signal(SIGPIPE, SIG_IGN);
  return signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
}

/// Whether one came that asks to end.
bool told_to_end(int fd) {
  signalfd_siginfo info = {};
  while (read(fd, &info, sizeof info) == ssize_t(sizeof info))
    if (info.ssi_signo != SIGCHLD) return true;
  return false;
}

/// What a start of another program would close.
void close_inherited() {
  const int most = int(std::min<long>(sysconf(_SC_OPEN_MAX), 1024));
  for (int fd = STDERR_FILENO + 1; fd < most; ++fd)
    if (const int flags = fcntl(fd, F_GETFD); flags >= 0 && (flags & FD_CLOEXEC)) close(fd);
}

/// Whether a word of a command may name a file that is not in the worker's folder.
bool leads_outside(const std::string& word) {
  const std::string inside = "/" + word + "/";
  return word.starts_with("/") || word.find("=/") != std::string::npos ||
         inside.find("/../") != std::string::npos || word.find("=../") != std::string::npos;
}

class Session {
  using Clock = std::chrono::steady_clock;

public:
  explicit Session(const WorkerProgram& program) : program_(program), signals_(signals()) {}

  void serve() {
    send(Started{program_.version, visible(node()), visible(job()), int64_t(getpid())}.line());
    Bundle answer;
    Response response;
    try {
      const Bundle bundle = receive();
      const Request request = Request::from_json(bundle.head, "a worker's request");
      response.text = why_refused(request);
      if (!response.text.empty())
        response.status = "refused";
      else
        response = run(request, bundle, answer);
    } catch (const Error& e) {
      response.status = "failed", response.text = e.what();
    }
    answer.head = response.to_json();
    send(answer.serialize());
  }

private:
  /// Waits for input or news; says now and then that the worker is there.
  void wait_for(std::array<pollfd, 3>& fds) {
    const int n = poll(fds.data(), fds.size(), int(kBeatSeconds * 1000));
    if (const auto now = Clock::now(); now - beat_ >= std::chrono::duration<double>(kBeatSeconds)) {
      send(kBeat);
      beat_ = now;
    }
    if (n > 0 && fds[0].revents && told_to_end(signals_)) throw Abandoned();
  }

  Bundle receive() {
    std::string text;
    std::optional<size_t> size;
    while (!size || text.size() < *size) {
      std::array<pollfd, 3> fds{{{signals_, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}, {-1, 0, 0}}};
      wait_for(fds);
      if (!fds[1].revents) continue;
      std::array<char, 1 << 16> buffer;
      const size_t most = size ? std::min(buffer.size(), *size - text.size()) : size_t(1);
      const ssize_t n = read(STDIN_FILENO, buffer.data(), most); // not a byte beyond the bundle
      if (n == 0) throw Abandoned();
      if (n < 0 && errno != EINTR && errno != EAGAIN) throw Abandoned();
      if (n > 0) text.append(buffer.data(), size_t(n));
      if (!size) size = bundle_size(text, "a worker's input");
    }
    return Bundle::parse(text, "a worker's input");
  }

  std::string why_refused(const Request& request) const {
    if (const std::string id = program_.id(request.arch); request.id != id)
      return "this is " + id + ", and asked for is " + request.id;
    if (request.command.empty() || std::find(program_.commands.begin(), program_.commands.end(),
                                             request.command.front()) == program_.commands.end())
      return "a worker runs no such command: " + (request.command.empty() ? "" : request.command.front());
    for (const std::string& word : request.command)
      if (leads_outside(word))
        return "a command of a worker names files of its own folder alone: " + visible(word);
    return program_.why_not ? program_.why_not(request) : "";
  }

  Response run(const Request& request, const Bundle& bundle, Bundle& answer) {
    const Scratch scratch;
    const fs::path files = fs::path(scratch.path()) / "files", temporary = fs::path(scratch.path()) / "tmp";
    fs::create_directories(files);
    fs::create_directories(temporary);
    for (const BundleFile& file : bundle.files) write_atomically((files / file.name).string(), file.bytes);
    for (const std::string& name : request.outputs) fs::create_directories((files / name).parent_path());
    Response response;
    response.exit = execute(request.command, files.string(), temporary.string(), response.text);
    for (const std::string& name : request.outputs)
      if (const std::string path = (files / name).string(); response.exit == 0 && file_exists(path))
        answer.files.push_back({name, read_file(path)});
    return response;
  }

  /// The command has a TMPDIR of its own, and the locks that all on this host share must not lie there.
  static void share_locks() {
    struct stat info = {};
    // Launchers bring the environment of another host along.
    if (const std::string runtime = variable("XDG_RUNTIME_DIR");
        !runtime.empty() && stat(runtime.c_str(), &info) != 0)
      unsetenv("XDG_RUNTIME_DIR");
    setenv("DEEPGEN_LOCKS", machine_lock_dir().c_str(), 1);
  }

  [[noreturn]] void child(const std::vector<std::string>& words, const std::string& folder,
                          const std::string& temporary, pid_t parent, int out) const {
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    std::signal(SIGPIPE, SIG_DFL);
    const int null = open("/dev/null", O_RDONLY);
    dup2(null, STDIN_FILENO), dup2(out, STDOUT_FILENO), dup2(out, STDERR_FILENO);
    setenv("TMPDIR", temporary.c_str(), 1);
    if (chdir(folder.c_str()) != 0) _exit(1);
    if (program_.run) {
      close_inherited();
      const int status = program_.run({words.begin() + 1, words.end()});
      std::cout.flush(), std::cerr.flush(), std::fflush(nullptr);
      _exit(status); // nothing of the worker is destroyed in its child
    }
    std::vector<char*> argv;
    for (const std::string& word : words) argv.push_back(const_cast<char*>(word.c_str()));
    argv.push_back(nullptr);
    execv("/proc/self/exe", argv.data()); // this very program, also where its file has been replaced
    execv(words.front().c_str(), argv.data());
    _exit(127);
  }

  /// The status of the command; `text` is what it says.
  int execute(const std::vector<std::string>& command, const std::string& folder,
              const std::string& temporary, std::string& text) {
    std::array<int, 2> out;
    if (pipe2(out.data(), O_CLOEXEC) != 0)
      throw HostFault("a worker cannot create a pipe", node(), std::strerror(errno), "raise ulimit -n there");
    share_locks();
    std::vector<std::string> words = {own_program()};
    words.insert(words.end(), command.begin(), command.end());
    const pid_t parent = getpid(), pid = fork();
    if (pid == 0) child(words, folder, temporary, parent, out[1]);
    close(out[1]);
    if (pid < 0)
      throw HostFault("a worker cannot start a process", node(), std::strerror(errno),
                      "raise ulimit -u there");
    try {
      const int status = watch(pid, out[0], text);
      close(out[0]);
      return WIFSIGNALED(status) ? kKilled + WTERMSIG(status) : WEXITSTATUS(status);
    } catch (const Abandoned&) {
      end(pid);
      throw;
    }
  }

  /// Reads what the command says until it has ended. The end of this process's input means that nobody waits.
  int watch(pid_t pid, int out, std::string& text) {
    while (true) {
      std::array<pollfd, 3> fds{{{signals_, POLLIN, 0}, {STDIN_FILENO, POLLIN, 0}, {out, POLLIN, 0}}};
      wait_for(fds);
      std::array<char, 1 << 14> buffer;
      if (fds[1].revents) {
        const ssize_t n = read(STDIN_FILENO, buffer.data(), buffer.size());
        if (n == 0 || (n < 0 && errno != EINTR && errno != EAGAIN)) throw Abandoned();
      }
      ssize_t n = 0;
      if (fds[2].revents && (n = read(out, buffer.data(), buffer.size())) > 0) {
        text.append(buffer.data(), size_t(n));
        if (text.size() > 2 * kMostOfText) text.erase(0, text.size() - kMostOfText);
      }
      int status = 0;
      if (n <= 0 && waitpid(pid, &status, WNOHANG) == pid) return status;
      if (fds[2].revents && n == 0) out = -1; // it has closed it, and runs on
    }
  }

  /// First in a way that lets the command end its own children.
  static void end(pid_t pid) {
    kill(-pid, SIGTERM);
    for (int i = 0; i < kGrace * 100; ++i) {
      if (waitpid(pid, nullptr, WNOHANG) == pid) {
        kill(-pid, SIGKILL);
        return;
      }
      usleep(10000);
    }
    kill(-pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }

  const WorkerProgram& program_;
  int signals_;
  Clock::time_point beat_ = Clock::now();
};

} // namespace

int serve(const WorkerProgram& program) {
  try {
    Session(program).serve();
    return 0;
  } catch (const Abandoned&) {
    return 3;
  }
}

} // namespace deepgen
