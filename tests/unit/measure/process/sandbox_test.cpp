// The sandbox around candidates on the CPU: what it refuses, what it leaves, and that every candidate lives
// in it.
#include "base/text/error.h"
#include "measure/process/sandbox.h"
#include "measure/process/worker.h"
#include "measure/race/race.h"
#include "tests/unit/measure/verified.h"

#include <gtest/gtest.h>

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <thread>
#include <vector>

namespace deepgen::sandbox_test {
namespace {

namespace fs = std::filesystem;
using namespace test_kernels;

/// A folder that the attempts below would change, and a file that is open when a worker starts.
struct Bait {
  fs::path folder = fs::path(testing::TempDir()) / ("sandbox." + std::to_string(getpid()));
  std::string fresh = folder / "fresh", old = folder / "old";
  int file = -1;
  Bait() {
    fs::create_directories(folder);
    file = open(old.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    EXPECT_EQ(write(file, "text", 4), 4);
  }
  ~Bait() {
    close(file);
    fs::remove_all(folder);
  }
  /// Whether nothing has been changed.
  bool is_intact() const { return !fs::exists(fresh) && fs::exists(old) && fs::file_size(old) == 4; }
};

struct Attempt {
  const char* name;
  long (*make)(const Bait&); ///< -1 with errno when it is refused
};

long forked(long pid) {
  if (pid == 0) _exit(0);
  if (pid > 0) waitpid(pid_t(pid), nullptr, 0);
  return pid;
}

const Attempt kRefused[] = {
    {"creates a file", [](const Bait& b) -> long { return open(b.fresh.c_str(), O_WRONLY | O_CREAT, 0600); }},
    {"reads a file", [](const Bait&) -> long { return open("/etc/passwd", O_RDONLY); }},
    {"lists a folder", [](const Bait&) -> long { return open("/", O_RDONLY | O_DIRECTORY); }},
    {"makes a folder", [](const Bait& b) -> long { return mkdir(b.fresh.c_str(), 0700); }},
    {"links", [](const Bait& b) -> long { return symlink("/", b.fresh.c_str()); }},
    {"removes", [](const Bait& b) -> long { return unlink(b.old.c_str()); }},
    {"renames", [](const Bait& b) -> long { return rename(b.old.c_str(), b.fresh.c_str()); }},
    {"changes a mode", [](const Bait& b) -> long { return chmod(b.old.c_str(), 0777); }},
    {"cuts a file by name", [](const Bait& b) -> long { return truncate(b.old.c_str(), 0); }},
    {"cuts an open file", [](const Bait& b) -> long { return ftruncate(b.file, 0); }},
    {"writes to an open file", [](const Bait& b) -> long { return pwrite(b.file, "evil", 4, 100); }},
    {"writes behind", [](const Bait& b) -> long { return write(b.file, "evil", 4); }},
    {"maps an open file",
     [](const Bait& b) -> long {
       void* at = mmap(nullptr, 4, PROT_READ | PROT_WRITE, MAP_SHARED, b.file, 0);
       return at == MAP_FAILED ? -1 : 0;
     }},
    {"duplicates the pipe", [](const Bait& b) -> long { return dup2(b.file, 2); }},
    {"opens a socket", [](const Bait&) -> long { return socket(AF_INET, SOCK_STREAM, 0); }},
    {"opens a local socket", [](const Bait&) -> long { return socket(AF_UNIX, SOCK_STREAM, 0); }},
    {"forks", [](const Bait&) -> long { return forked(syscall(SYS_fork)); }},
    {"forks by clone", [](const Bait&) -> long { return forked(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)); }},
    {"starts a program",
     [](const Bait&) -> long {
       char* words[] = {const_cast<char*>("/bin/true"), nullptr};
       return execv(words[0], words);
     }},
    {"signals its parent", [](const Bait&) -> long { return kill(getppid(), 0); }},
    {"signals a thread of its parent",
     [](const Bait&) -> long { return syscall(SYS_tgkill, getppid(), getppid(), 0); }},
    {"traces", [](const Bait&) -> long { return ptrace(PTRACE_ATTACH, getppid(), 0, 0); }},
    {"raises a limit",
     [](const Bait&) -> long {
       const rlimit none = {RLIM_INFINITY, RLIM_INFINITY};
       return setrlimit(RLIMIT_CORE, &none);
     }},
    {"outlives its parent", [](const Bait&) -> long { return prctl(PR_SET_PDEATHSIG, 0); }},
    {"talks to a device", [](const Bait&) -> long { return syscall(SYS_ioctl, 0, 0x5412, "x"); }},
    {"other system calls", [](const Bait&) -> long { return syscall(SYS_io_uring_setup, 1, nullptr); }},
};

/// Whether this kernel has all parts. The tests of what is refused need them, and where they are missing say
/// so.
bool has_all() { return sandbox::probe().complete(); }

TEST(Sandbox, RefusesWhatComputingDoesNotNeed) {
  if (!has_all()) GTEST_SKIP() << sandbox::probe().text();
  const Bait bait;
  std::vector<std::string> made;
  size_t tried = 0;
  const WorkerEnd end = run_worker(
      [&](Channel& channel) {
        channel.confine({});
        for (const Attempt& attempt : kRefused) {
          channel.step(attempt.name, 5);
          errno = 0;
          const long result = attempt.make(bait);
          channel.send({{"attempt", attempt.name}, {"result", result}, {"errno", errno}});
        }
      },
      [&](const Json& m) {
        ++tried;
        if (m.value("result", 0L) != -1 || m.value("errno", 0) != EPERM) made.push_back(m.dump());
      });
  EXPECT_EQ(end.kind, WorkerEnd::done) << end.detail;
  EXPECT_EQ(tried, std::size(kRefused));
  EXPECT_EQ(made, std::vector<std::string>());
  EXPECT_TRUE(bait.is_intact());
}

TEST(Sandbox, LeavesWhatComputingNeeds) {
  std::vector<std::string> done;
  const WorkerEnd end = run_worker(
      [&](Channel& channel) {
        const Stopwatch watch;
        channel.confine({});
        std::vector<int> sums(4);
        std::vector<std::thread> threads;
        for (int& sum : sums)
          threads.emplace_back([&sum] { sum = int(std::vector<char>(1 << 20, 1).size()); });
        for (std::thread& t : threads) t.join();
        if (sums == std::vector<int>(4, 1 << 20)) channel.send("threads");
        std::vector<char> memory(100 << 20, 1);
        if (memory.back() == 1) channel.send("memory");
        const LoadedKernel code(kernel_of(std::string("\xc3", 1)));
        code.call(SlotValues());
        channel.send("code");
        double x = 1;
        const Sample sample = watch.time(
            [&] {
              for (int i = 0; i < 100000; ++i) x *= 1.0000001;
            },
            10);
        if (sample.seconds > 0 && x > 1 && watch.stolen() >= 0) channel.send("time");
        rlimit limit = {};
        if (getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_max == 0) channel.send("limits");
        std::this_thread::sleep_for(std::chrono::milliseconds(1));
        channel.send("sleep");
        std::abort();
      },
      [&](const Json& m) { done.push_back(m.get<std::string>()); });
  EXPECT_EQ(done, (std::vector<std::string>{"threads", "memory", "code", "time", "limits", "sleep"}));
  EXPECT_EQ(end.detail.substr(0, 7), "SIGABRT");
}

// What the kernels below try, and what came of it; the memory is the worker's and ours.
struct Shared {
  char path[256];
  int tries, successes;
};
Shared* shared = nullptr;

void create_file() {
  ++shared->tries;
  const int fd = open(shared->path, O_WRONLY | O_CREAT, 0600);
  shared->successes += fd >= 0;
  if (fd >= 0) close(fd);
}
void good_and_creates(const uint64_t* x) {
  create_file();
  gemm(x, {});
}

struct SandboxedCandidate : testing::Test {
  SandboxedCandidate() {
    if (!shared)
      shared = static_cast<Shared*>(
          mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
    *shared = {};
    std::snprintf(shared->path, sizeof shared->path, "%s", bait.fresh.c_str());
  }
  ~SandboxedCandidate() override { unsetenv("DEEPGEN_SANDBOX"); }
  Bait bait;
};

std::vector<ArmResult> raced() {
  const auto make = [] { return std::function<void()>(create_file); };
  RaceOptions options;
  options.sample_seconds = 0.0005;
  options.deadline = wall_seconds() + 1;
  Progress progress("test");
  return full_race({{"anchor", make}, {"other", make}}, 3, 3, options, progress);
}

TEST_F(SandboxedCandidate, CreatesNoFileWhenItIsVerified) {
  if (!has_all()) GTEST_SKIP() << sandbox::probe().text();
  EXPECT_EQ(verified({kernel_of(good_and_creates)}).status, "");
  EXPECT_GT(shared->tries, 0);
  EXPECT_EQ(shared->successes, 0);
  EXPECT_TRUE(bait.is_intact());
}

TEST_F(SandboxedCandidate, CreatesNoFileWhenItIsTimed) {
  if (!has_all()) GTEST_SKIP() << sandbox::probe().text();
  EXPECT_TRUE(raced().back().timed());
  EXPECT_GT(shared->tries, 0);
  EXPECT_EQ(shared->successes, 0);
  EXPECT_TRUE(bait.is_intact());
}

TEST_F(SandboxedCandidate, IsFreeOnlyWhenTheUserSaysSo) {
  setenv("DEEPGEN_SANDBOX", "off", 1);
  EXPECT_EQ(sandbox::probe().text(), "none; not in force: all of it, DEEPGEN_SANDBOX=off");
  verified({kernel_of(good_and_creates)});
  EXPECT_EQ(shared->successes, shared->tries);
  EXPECT_FALSE(bait.is_intact());
}

/// Takes memory until there is no more.
void good_and_greedy(const uint64_t* x) {
  for (size_t bytes = 64 << 20; bytes >= 4096; bytes /= 2)
    while (mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0) !=
           MAP_FAILED)
      ++shared->tries;
  gemm(x, {});
}

TEST_F(SandboxedCandidate, AnswersForMemoryThatItTakes) {
  if (!has_all()) GTEST_SKIP() << sandbox::probe().text();
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the sanitizer's own address space is thousands of GiB, of which a limit means nothing";
#endif
  Kernel awkward =
      kernel_of(jump_to(good_and_greedy), "awkward"); // whose operands are made after the first has run
  awkward.problem.gemm().m += 400;
  const Record r = verified({kernel_of(good_and_greedy), awkward});
  EXPECT_LT(shared->tries, 1 << 10) << "64 GiB are more than twice what this program has";
  EXPECT_EQ(r.status, "crash") << r.detail;
  EXPECT_NE(r.detail.find("more memory than the sandbox allows"), std::string::npos) << r.detail;
}

TEST(Sandbox, EndsWhatComputesForTooLong) {
  if (!has_all()) GTEST_SKIP() << sandbox::probe().text();
  const WorkerEnd end = run_worker(
      [](Channel& channel) {
        channel.confine({0, 1});
        channel.step("spinning", 60);
        while (true) asm volatile("");
      },
      [](const Json&) {});
  EXPECT_EQ(end.kind, WorkerEnd::crash);
  EXPECT_EQ(end.detail, "SIGXCPU in: spinning");
}

} // namespace
} // namespace deepgen::sandbox_test
