#include "generator/codegen/ptxas.h"

#include "base/files/patience.h"
#include "base/text/error.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <fcntl.h>
#include <filesystem>
#include <map>
#include <poll.h>
#include <regex>
#include <sstream>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <utility>

namespace deepgen {
namespace {

namespace fs = std::filesystem;
constexpr size_t kLongestPtxasMessage = 1500;
constexpr int kNotStarted = 127;
constexpr const char* kAgain = "free memory, files and processes, and build again: it goes on here";

std::string errno_text() { return std::strerror(errno); }

int memory_file(const char* name) {
  const int fd = memfd_create(name, 0); // not close-on-exec: ptxas opens it by its number
  if (fd < 0) throw HostFault("cannot create a memory file", name, errno_text(), kAgain);
  return fd;
}

void replace_all(std::string& text, const std::string& from, const std::string& to) {
  for (size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
}

std::string descriptor_path(int fd) { return "/proc/self/fd/" + std::to_string(fd); }

void write_all(int fd, const std::string& bytes) {
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t n = write(fd, bytes.data() + at, bytes.size() - at);
    if (n < 0 && errno != EINTR) throw HostFault("cannot write a memory file", "", errno_text(), kAgain);
    if (n > 0) at += size_t(n);
  }
}

std::string read_whole(int fd) {
  std::string bytes(size_t(std::max<off_t>(0, lseek(fd, 0, SEEK_END))), '\0');
  for (size_t at = 0; at < bytes.size();) {
    const ssize_t n = pread(fd, bytes.data() + at, bytes.size() - at, off_t(at));
    if (n == 0 || (n < 0 && errno != EINTR))
      throw HostFault("cannot read a memory file", "", errno_text(), kAgain);
    if (n > 0) at += size_t(n);
  }
  return bytes;
}

void close_all(std::initializer_list<int*> descriptors) {
  for (int* fd : descriptors) {
    if (*fd >= 0) close(*fd);
    *fd = -1;
  }
}

/// Starts a program with stdout and stderr on `messages`; the child dies with this process.
pid_t start(std::vector<std::string> words, int messages) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  const pid_t parent = getpid(), child = fork();
  if (child < 0) throw HostFault("cannot start a process", words[0], errno_text(), kAgain);
  if (child > 0) return child;
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  dup2(messages, STDOUT_FILENO);
  dup2(messages, STDERR_FILENO);
  execv(argv[0], argv.data());
  _exit(kNotStarted);
}

/// Reads the pipe to its end; false when the time is up first.
bool drain(int fd, std::string& text, double seconds) {
  for (Patience patience(seconds); patience.left() > 0;) {
    pollfd polled{fd, POLLIN, 0};
    if (poll(&polled, 1, patience.milliseconds()) <= 0) continue;
    char buffer[1 << 14];
    const ssize_t n = read(fd, buffer, sizeof buffer);
    if (n == 0) return true;
    if (n > 0)
      text.append(buffer, size_t(n));
    else if (errno != EINTR)
      return false;
  }
  return false;
}

int wait_for(pid_t process) {
  int status = 0;
  while (waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

/// Of an assembler that failed: what the host did to it is not the kernel's fault. ptxas itself says when it
/// has no memory.
void check_host(int status, const std::string& program, const std::string& text) {
  static const std::regex no_memory("memory allocation fail|out of memory", std::regex::icase);
  if (WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL)
    throw HostFault("ptxas was killed from elsewhere", program, "by the kernel for lack of memory, perhaps",
                    kAgain);
  if (WIFEXITED(status) && WEXITSTATUS(status) == kNotStarted && text.empty())
    throw HostFault("ptxas cannot be started", program, "", "set DEEPGEN_PTXAS to a ptxas that runs here");
  if (status != 0 && std::regex_search(text, no_memory))
    throw HostFault("ptxas had not enough memory", program, text, kAgain);
}

bool is_program(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) && access(path.c_str(), X_OK) == 0;
}

std::vector<fs::path> candidates() {
  std::vector<fs::path> found;
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* value = std::getenv(name); value && *value)
      found.push_back(fs::path(value) / "bin/ptxas");
  const char* path = std::getenv("PATH");
  std::istringstream folders(path ? path : "");
  for (std::string folder; std::getline(folders, folder, ':');)
    if (!folder.empty()) found.push_back(fs::path(folder) / "ptxas");
  found.push_back("/usr/local/cuda/bin/ptxas");
  std::vector<fs::path> versions;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator("/usr/local", ignored))
    if (entry.path().filename().string().rfind("cuda-", 0) == 0)
      versions.push_back(entry.path() / "bin/ptxas");
  std::sort(versions.rbegin(), versions.rend());
  found.insert(found.end(), versions.begin(), versions.end());
  return found;
}

int64_t number_before(const std::string& line, const std::string& unit) {
  std::smatch match;
  return std::regex_search(line, match, std::regex("([0-9]+) bytes " + unit)) ? std::stoll(match[1]) : 0;
}

} // namespace

PtxasReport parse_ptxas(const std::string& output) {
  PtxasReport report;
  std::istringstream lines(output);
  std::smatch match;
  static const std::regex entry("Compiling entry function '([^']+)'"),
      function("Function properties for (.*)"), used("Used ([0-9]+) registers"),
      warning("(warning *: |info *: (?=\\(C[0-9]+\\)))(.*)");
  bool of_entry = false; // functions that an entry calls have properties too
  for (std::string line; std::getline(lines, line);) {
    if (std::regex_search(line, match, warning)) {
      report.warnings.push_back(match.prefix().str() == "ptxas " ? match[2].str() : line);
    } else if (std::regex_search(line, match, entry)) {
      report.entries.emplace_back().entry = match[1];
    } else if (std::regex_search(line, match, function)) {
      of_entry = !report.entries.empty() && match[1] == report.entries.back().entry;
    } else if (of_entry && line.find("bytes stack frame") != std::string::npos) {
      Launch& l = report.entries.back();
      l.stack = number_before(line, "stack frame");
      l.spill_stores = number_before(line, "spill stores");
      l.spill_loads = number_before(line, "spill loads");
    } else if (of_entry && std::regex_search(line, match, used)) {
      report.entries.back().registers = std::stoll(match[1]);
      report.entries.back().static_shared = number_before(line, "smem");
    }
  }
  return report;
}

std::string find_ptxas() {
  if (const char* chosen = std::getenv("DEEPGEN_PTXAS"); chosen && *chosen) {
    if (chosen == std::string("none")) return "";
    if (!is_program(chosen))
      throw HostFault("DEEPGEN_PTXAS names no program", chosen, "",
                      "set it to the path of ptxas or to none, or unset it");
    return chosen;
  }
  for (const fs::path& path : candidates())
    if (is_program(path)) return path.string();
  return "";
}

std::string ptxas_version() {
  static std::map<std::string, std::string> known;
  const std::string program = find_ptxas();
  if (program.empty()) return "";
  if (auto it = known.find(program); it != known.end()) return it->second;
  std::array<int, 2> pipe_ends;
  if (pipe2(pipe_ends.data(), O_CLOEXEC) != 0)
    throw HostFault("cannot create a pipe", "", errno_text(), kAgain);
  const pid_t child = start({program, "--version"}, pipe_ends[1]);
  close(pipe_ends[1]);
  std::string text;
  if (!drain(pipe_ends[0], text, 10)) kill(child, SIGKILL);
  wait_for(child);
  close(pipe_ends[0]);
  std::smatch match;
  if (!std::regex_search(text, match, std::regex("V([0-9]+\\.[0-9]+\\.[0-9]+)")))
    throw HostFault("ptxas does not say its version", program, text.substr(0, kLongestPtxasMessage),
                    "set DEEPGEN_PTXAS to a ptxas of the CUDA Toolkit");
  return known[program] = "ptxas " + match[1].str();
}

Assembly::Assembly(const Kernel& kernel, int level) {
  const std::string program = find_ptxas();
  if (program.empty()) return;
  input_ = memory_file("ptx");
  output_ = memory_file("cubin");
  write_all(input_, kernel.ptx);
  std::array<int, 2> pipe_ends;
  if (pipe2(pipe_ends.data(), O_CLOEXEC) != 0)
    throw HostFault("cannot create a pipe", "", errno_text(), kAgain);
  messages_ = pipe_ends[0];
  process_ = start({program, "-v", "-O" + std::to_string(level), "-arch=" + kernel.target,
                    descriptor_path(input_), "-o", descriptor_path(output_)},
                   pipe_ends[1]);
  close(pipe_ends[1]);
}

Assembly::Assembly(Assembly&& other) noexcept
    : process_(std::exchange(other.process_, -1)), input_(std::exchange(other.input_, -1)),
      output_(std::exchange(other.output_, -1)), messages_(std::exchange(other.messages_, -1)) {}

Assembly::~Assembly() {
  if (process_ > 0) {
    kill(process_, SIGKILL);
    wait_for(process_);
  }
  close_all({&input_, &output_, &messages_});
}

void Assembly::finish(Kernel& kernel, double seconds) {
  if (process_ < 0) return;
  std::string text;
  const bool in_time = drain(messages_, text, seconds);
  if (!in_time) kill(process_, SIGKILL);
  const int status = wait_for(std::exchange(process_, -1));
  replace_all(text, descriptor_path(input_), "kernel.ptx");
  const std::string quoted = text.substr(0, kLongestPtxasMessage);
  if (!in_time)
    throw Error("ptxas took longer than " + std::to_string(int(seconds)) + " s", kernel.target, quoted);
  check_host(status, "ptxas", quoted);
  if (status != 0) throw Error("ptxas refuses the kernel's PTX", kernel.target, quoted);
  kernel.code = read_whole(output_);
  kernel.assembler = ptxas_version();
  const PtxasReport report = parse_ptxas(text);
  kernel.warnings = report.warnings;
  for (Launch& launch : kernel.launches) {
    auto entry = std::find_if(report.entries.begin(), report.entries.end(),
                              [&](const Launch& e) { return e.entry == launch.entry; });
    if (entry == report.entries.end()) throw Error("the template did not define the entry " + launch.entry);
    launch.registers = entry->registers, launch.stack = entry->stack,
    launch.static_shared = entry->static_shared;
    launch.spill_stores = entry->spill_stores, launch.spill_loads = entry->spill_loads;
  }
}

std::string why_rejected(const Kernel& kernel) {
  for (const Launch& l : kernel.launches) {
    const std::string used = l.entry + " uses " + std::to_string(l.registers) + " registers";
    if (l.spill_stores || l.spill_loads || l.stack)
      return used + ", " + std::to_string(l.stack) + " bytes of stack, " + std::to_string(l.spill_stores) +
             " bytes of spill stores, " + std::to_string(l.spill_loads) + " bytes of spill loads";
    const int64_t threads = l.block[0] * l.block[1] * l.block[2];
    if (const int64_t total = (l.registers + 7) / 8 * 8 * threads; total > 65536)
      return used + " in " + std::to_string(threads) + " threads: a multiprocessor has 65536";
  }
  // A wait after each wgmma (7510, 7511, 7514), or waits and arrivals that the template did not ask for
  // (7515, 7517, 7519); setmaxnreg ignored (7508).
  static const std::regex serialised("\\(C75(08|10|11|14|15|17|19)\\)");
  for (const std::string& warning : kernel.warnings)
    if (std::regex_search(warning, serialised)) return "ptxas warns: " + warning;
  return "";
}

} // namespace deepgen
