#include "measure/process/worker.h"

#include "base/files/patience.h"
#include "base/json/json.h"
#include "base/text/error.h"
#include "base/text/memory.h"
#include "measure/process/awake.h"
#include "measure/process/fault.h"
#include "measure/process/stopwatch.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <new>
#include <optional>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace deepgen {
namespace {

constexpr double kStartLimit = 30; ///< seconds until the first step; fork copies page tables

std::atomic<pid_t> running{0};
int report_fd = -1;

void write_all(int fd, const char* data, size_t size) {
  while (size) {
    const ssize_t written = write(fd, data, size);
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) _exit(1); // the parent is gone
    data += written, size -= size_t(written);
  }
}

void send_line(int fd, const Json& json) {
  const std::string line = dump_json(json) + "\n";
  write_all(fd, line.data(), line.size());
}

/// In a signal handler of a process that is about to die: no allocation.
void report_fault(const char* description) {
  char line[256];
  const int size = std::snprintf(line, sizeof line, "{\"fault\":\"%s\"}\n", description);
  write_all(report_fd, line, size_t(size));
}

/// The new-handler of a worker, whose code may be unable to bear an exception. It has no memory to tell more.
/// Who has used up its own limit is to blame, and gets the exception.
[[noreturn]] void report_no_memory() {
  if (sandbox::memory_is_used_up()) throw std::bad_alloc();
  constexpr char kLine[] = "{\"short\":true}\n";
  write_all(report_fd, kLine, sizeof kLine - 1);
  _exit(1);
}

void kill_and_die(int signal) {
  if (const pid_t pid = running) {
    kill(pid, SIGKILL);
    waitpid(pid, nullptr, 0);
  }
  std::signal(signal, SIG_DFL);
  raise(signal);
}

/// The child's whole life.
[[noreturn]] void live(int fd, pid_t parent, const std::function<void(Channel&)>& body) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1); // it died before the line above
  for (int signal : {SIGINT, SIGTERM}) std::signal(signal, SIG_DFL);
  const rlimit no_core = {0, 0};
  setrlimit(RLIMIT_CORE, &no_core);
  report_fd = fd;
  fault::install(report_fault);
  std::set_new_handler(report_no_memory);
  awake::follow();
  Channel channel(fd);
  try {
    body(channel);
    send_line(fd, {{"done", true}});
  } catch (const HostFault& e) {
    send_line(fd, {{"host", e.what()}});
  } catch (
      const std::exception& e) { // of lack of memory tells the new-handler, unless it is the worker's own
    send_line(fd, {{"error", e.what()}});
  }
  _exit(0);
}

/// What the parent knows of a worker from its messages.
struct Listener {
  explicit Listener(const std::function<void(const Json&)>& handler) : on_message(handler) {}
  const std::function<void(const Json&)>& on_message;
  std::string step = "start", buffer, fault;
  double limit = kStartLimit;
  Patience patience{kStartLimit};
  bool done = false, short_of_memory = false;
  std::optional<std::string> error, host;

  void take(const std::string& text) {
    const Json line = Json::parse(text, nullptr, false);
    if (!line.is_object()) return; // torn by a crash, or written by the candidate
    if (line.contains("message")) on_message(line["message"]);
    if (line.contains("step")) step = line.value("step", ""), limit = line.value("limit", kStartLimit);
    if (line.contains("done")) done = true;
    if (line.contains("error")) error = line.value("error", "");
    if (line.contains("host")) host = line.value("host", "");
    if (line.contains("short")) short_of_memory = true;
    if (line.contains("fault")) fault = line.value("fault", "");
    patience.restart(limit);
  }

  void feed(const char* data, size_t size) {
    buffer.append(data, size);
    size_t begin = 0;
    for (size_t end; (end = buffer.find('\n', begin)) != std::string::npos; begin = end + 1)
      take(buffer.substr(begin, end - begin));
    buffer.erase(0, begin);
  }
};

/// How long to wait for a message at most.
int wait_milliseconds(Listener& listener, double end) {
  const double left = std::ceil(1000 * std::max(0.0, end - wall_seconds()));
  return int(std::min(left, double(listener.patience.milliseconds())));
}

/// Until the worker closes its end, which its death does, or until it overruns its step or its time.
WorkerEnd::Kind listen(int fd, Listener& listener, double end) {
  char data[4096];
  while (true) {
    awake::tick();
    pollfd wait = {fd, POLLIN, 0};
    const int ready = poll(&wait, 1, wait_milliseconds(listener, end));
    awake::tick();
    if (wall_seconds() >= end) return WorkerEnd::late;
    if (ready <= 0 && listener.patience.left() <= 0) return WorkerEnd::timeout;
    if (ready <= 0) continue;
    const ssize_t size = read(fd, data, sizeof data);
    if (size == 0) return WorkerEnd::done;
    if (size > 0) listener.feed(data, size_t(size));
  }
}

std::string signal_name(int signal) {
  const char* name = sigabbrev_np(signal);
  return name ? "SIG" + std::string(name) : "signal " + std::to_string(signal);
}

std::string seconds_text(double seconds) {
  char text[32];
  std::snprintf(text, sizeof text, "%.3g s", seconds);
  return text;
}

/// Restores the handlers, and ends the worker whatever happens in the parent.
class Guardian {
public:
  explicit Guardian(pid_t pid) : pid_(pid) {
    running = pid;
    struct sigaction action = {};
    action.sa_handler = kill_and_die;
    sigaction(SIGINT, &action, &old_int_);
    sigaction(SIGTERM, &action, &old_term_);
  }
  ~Guardian() {
    if (running) kill(pid_, SIGKILL), wait();
    sigaction(SIGINT, &old_int_, nullptr);
    sigaction(SIGTERM, &old_term_, nullptr);
  }
  int wait() {
    int status = 0;
    while (wait4(pid_, &status, 0, &usage_) < 0 && errno == EINTR) {
    }
    running = 0;
    return status;
  }
  int64_t peak_bytes() const { return int64_t(usage_.ru_maxrss) << 10; }

private:
  pid_t pid_;
  rusage usage_ = {};
  struct sigaction old_int_ = {}, old_term_ = {};
};

struct Pipe {
  int ends[2] = {-1, -1};
  Pipe() {
    if (pipe(ends) != 0)
      throw HostFault("cannot create a pipe", "worker process", std::strerror(errno),
                      "raise the limit on open files (ulimit -n), and run the same command again");
  }
  ~Pipe() {
    close_end(0);
    close_end(1);
  }
  void close_end(int i) {
    if (ends[i] >= 0) close(ends[i]);
    ends[i] = -1;
  }
};

} // namespace

HostFault killed_twice(const WorkerEnd& end) {
  return HostFault("a worker process was killed from elsewhere, twice", end.detail,
                   "by the kernel for lack of memory, perhaps: it had " + bytes_text(end.peak_bytes) + "; " +
                       memory_text(),
                   "see the kernel's log (dmesg), free memory or raise the limit, and run the same command "
                   "again: it goes on here");
}

void Channel::send(const Json& message) { send_line(fd_, {{"message", message}}); }

void Channel::step(const std::string& what, double limit) {
  send_line(fd_, {{"step", what}, {"limit", limit}});
}

WorkerEnd run_worker(const std::function<void(Channel&)>& body,
                     const std::function<void(const Json&)>& on_message, double end_of_time) {
  Pipe pipe;
  awake::begin();
  std::fflush(nullptr); // or the child would print it again
  const pid_t parent = getpid(), pid = fork();
  if (pid < 0)
    throw HostFault(
        "cannot start a worker process", "fork", std::strerror(errno) + ("; " + memory_text()),
        "free memory or end processes (ulimit -u), and run the same command again: it goes on here");
  if (pid == 0) {
    pipe.close_end(0);
    live(pipe.ends[1], parent, body);
  }
  Guardian guardian(pid);
  pipe.close_end(1);
  Listener listener(on_message);
  const WorkerEnd::Kind heard = listen(pipe.ends[0], listener, end_of_time);
  if (heard != WorkerEnd::done) kill(pid, SIGKILL);
  const int status = guardian.wait();
  if (listener.host) throw HostFault(*listener.host + "\n  in:     " + listener.step);
  if (listener.short_of_memory)
    throw no_memory("not enough memory to measure", "worker process, in: " + listener.step, 0);
  if (listener.error) throw Error(*listener.error, "worker process, in: " + listener.step);
  WorkerEnd end;
  end.fault = listener.fault;
  if (heard == WorkerEnd::late)
    end = {WorkerEnd::late, "its time was over in: " + listener.step, "", false, 0};
  else if (heard == WorkerEnd::timeout)
    end = {WorkerEnd::timeout, "no answer within " + seconds_text(listener.limit) + " in: " + listener.step,
           "", false, 0};
  else if (WIFSIGNALED(status))
    end.kind = WorkerEnd::crash, end.detail = signal_name(WTERMSIG(status)) + " in: " + listener.step,
    end.killed = WTERMSIG(status) == SIGKILL, end.peak_bytes = guardian.peak_bytes();
  else if (!listener.done)
    end.kind = WorkerEnd::crash, end.detail = "the process ended in: " + listener.step;
  return end;
}

} // namespace deepgen
