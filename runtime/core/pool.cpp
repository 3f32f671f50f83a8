#include "runtime/core/pool.h"

#include "runtime/core/cpus.h"
#include "runtime/core/scratch.h"

#include <atomic>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <initializer_list>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

namespace deepgen::pool {
inline namespace DEEPGEN_ABI_NAMESPACE {
namespace {

constexpr int kMaxThreads = 1024;
/// Waking a sleeper costs 4 to 28 us, so idle threads first look out for the next call of a burst.
constexpr int64_t kSpinNanoseconds = 50'000;

std::atomic<int> thread_count{0}; ///< 0: not asked yet
std::atomic<int> usable_cpus{0};

std::atomic<deepgen_parallel_for> hook{nullptr};
std::atomic<void*> hook_user{nullptr};
std::atomic<int> hook_threads{1};

/// What idle threads look at, what all take tasks from, and what is counted down lie on lines of the cache of
/// their own: or each of these would stop all others.
constexpr size_t kLine = 64;

/// The present job. `tickets` holds the count of its tasks above the number of the next one, which whoever
/// takes a task adds 1 to: so a slow thread gets a task of the job that there is, or learns that none is
/// left. task and context stay valid while a task is pending.
alignas(kLine) std::atomic<uint64_t> tickets{0};
deepgen_task job_task = nullptr;
void* job_context = nullptr;
alignas(kLine) std::atomic<uint32_t> job{0};     ///< its number, the futex word of the idle workers
alignas(kLine) std::atomic<uint32_t> pending{0}; ///< futex word of the caller: tasks not finished

alignas(kLine) std::atomic<uint32_t> busy{0}; ///< owns everything below, and the right to start a job
std::atomic<uint32_t> sleepers{0}, caller_sleeps{0}, stopping{0};
pthread_t workers[kMaxThreads];
int worker_count = 0;
bool creation_failed = false;

void futex_wait(std::atomic<uint32_t>& word, uint32_t value) {
  syscall(SYS_futex, &word, FUTEX_WAIT_PRIVATE, value, nullptr, nullptr, 0);
}

void futex_wake(std::atomic<uint32_t>& word, int count) {
  syscall(SYS_futex, &word, FUTEX_WAKE_PRIVATE, count, nullptr, nullptr, 0);
}

int64_t nanoseconds() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return int64_t(t.tv_sec) * 1'000'000'000 + t.tv_nsec;
}

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

/// Whether `ready` came true within the spin time. More threads than CPUs must not spin: they hold up the
/// rest.
template <typename Ready>
bool spin_until(Ready ready) {
  if (ready()) return true;
  if (thread_count.load(std::memory_order_relaxed) > usable_cpus.load(std::memory_order_relaxed))
    return false;
  const int64_t end = nanoseconds() + kSpinNanoseconds;
  do {
    for (int i = 0; i < 32; ++i) {
      if (ready()) return true;
      pause();
    }
  } while (nanoseconds() < end);
  return false;
}

bool is_taken(uint64_t ticket) { return uint32_t(ticket) >= uint32_t(ticket >> 32); }

/// Runs one task of the present job, if one is left. Looks before it adds, which would take the line away
/// from the others: beyond a job's tasks each thread adds once at most.
bool run_one() {
  if (is_taken(tickets.load(std::memory_order_acquire))) return false;
  const uint64_t ticket = tickets.fetch_add(1, std::memory_order_acq_rel);
  if (is_taken(ticket)) return false;
  job_task(job_context, int(uint32_t(ticket)));
  if (pending.fetch_sub(1) == 1 && caller_sleeps.load()) futex_wake(pending, 1);
  return true;
}

void* work(void*) {
  while (!stopping.load()) {
    const uint32_t seen = job.load();
    if (run_one()) continue;
    if (spin_until([seen] { return job.load(std::memory_order_acquire) != seen; })) continue;
    sleepers.fetch_add(1);
    if (!stopping.load()) futex_wait(job, seen);
    sleepers.fetch_sub(1);
  }
  return nullptr;
}

/// Signals that an instruction of the thread itself raises. Blocked, they kill the process, whatever handler
/// it has: one that resolves faults (userfaultfd, mprotect, a JIT compiler's) must work in a kernel too.
constexpr int kOwnSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGSYS};

/// With `busy` held. Signals from outside stay with the application's threads.
void grow(int wanted) {
  if (worker_count >= wanted || creation_failed) return;
  sigset_t blocked, old;
  sigfillset(&blocked);
  for (int signal : kOwnSignals) sigdelset(&blocked, signal);
  pthread_sigmask(SIG_SETMASK, &blocked, &old);
  while (worker_count < wanted && !creation_failed)
    if (pthread_create(&workers[worker_count], nullptr, work, nullptr) == 0)
      ++worker_count;
    else
      creation_failed = true; // the threads that exist do all the work
  pthread_sigmask(SIG_SETMASK, &old, nullptr);
}

void start(int count, deepgen_task task, void* context) {
  job_task = task;
  job_context = context;
  pending.store(uint32_t(count));
  tickets.store(uint64_t(count) << 32);
  job.fetch_add(1);
  if (sleepers.load()) futex_wake(job, count - 1);
}

void finish() {
  while (run_one()) {
  }
  if (spin_until([] { return pending.load(std::memory_order_acquire) == 0; })) return;
  caller_sleeps.store(1);
  while (uint32_t left = pending.load()) futex_wait(pending, left);
  caller_sleeps.store(0);
}

int threads() {
  int count = thread_count.load(std::memory_order_relaxed);
  if (count) return count;
  count = cpus::usable();
  usable_cpus.store(count, std::memory_order_relaxed);
  if (count > kMaxThreads) count = kMaxThreads;
  if (const char* text = std::getenv("DEEPGEN_NUM_THREADS")) {
    char* end = nullptr;
    const long value = std::strtol(text, &end, 10);
    if (end != text && !*end && value >= 1 && value <= kMaxThreads) count = int(value);
  }
  int none = 0; // a concurrent deepgen_set_num_threads() wins
  return thread_count.compare_exchange_strong(none, count) ? count : none;
}

void reset_in_child() {
  worker_count = 0;
  creation_failed = false;
  for (std::atomic<uint32_t>* word : {&busy, &sleepers, &caller_sleeps, &pending}) word->store(0);
  tickets.store(0);
  scratch::reset_after_fork();
}

std::atomic<uint32_t> exiting{0}, stopped{0};

/// When a shared library that holds the runtime is unloaded, no thread may run unmapped code, and nothing
/// stays behind. At exit the memory stays: other threads may still compute.
__attribute__((destructor)) void stop() {
  if (busy.exchange(1)) return; // a call is running during exit: leave it its threads
  stopping.store(1);
  job.fetch_add(1);
  futex_wake(job, INT_MAX);
  for (int i = 0; i < worker_count; ++i) pthread_join(workers[i], nullptr);
  worker_count = 0; // stays busy: calls from later destructors run on their own thread
  stopped.store(1);
  if (!exiting.load()) scratch::release();
}

/// An atexit() handler. At exit it runs before every destructor of a library; when its library is unloaded,
/// behind stop(), and behind static objects' destructors, whose calls may have mapped scratch again.
void at_exit() {
  if (stopped.load())
    scratch::release();
  else
    exiting.store(1);
}

} // namespace

bool run(int count, deepgen_task task, void* context) {
  if (deepgen_parallel_for parallel_for = hook.load(std::memory_order_acquire)) {
    parallel_for(hook_user.load(std::memory_order_relaxed), count, task, context);
    return true;
  }
  if (busy.load(std::memory_order_relaxed) || busy.exchange(1, std::memory_order_acquire)) return false;
  grow(threads() - 1);
  start(count, task, context);
  finish();
  busy.store(0, std::memory_order_release);
  return true;
}

bool is_exiting() { return exiting.load(); }

void install_handlers() {
  static std::atomic<uint32_t> installed{0};
  if (installed.exchange(1)) return;
  pthread_atfork(nullptr, nullptr, reset_in_child);
  std::atexit(at_exit);
}

} // namespace DEEPGEN_ABI_NAMESPACE
} // namespace deepgen::pool

using namespace deepgen::pool;

deepgen_status deepgen_set_num_threads(int count) {
  if (count < 1 || count > kMaxThreads) return DEEPGEN_ERROR_ARGUMENT;
  threads(); // learns usable_cpus
  thread_count.store(count);
  install_handlers();
  if (!busy.exchange(1, std::memory_order_acquire)) {
    creation_failed = false;
    grow(count - 1);
    busy.store(0, std::memory_order_release);
  }
  return DEEPGEN_OK;
}

int deepgen_get_num_threads(void) {
  return hook.load(std::memory_order_acquire) ? hook_threads.load(std::memory_order_relaxed) : threads();
}

deepgen_status deepgen_set_parallel_for(deepgen_parallel_for function, void* user, int count) {
  if (function && (count < 1 || count > kMaxThreads)) return DEEPGEN_ERROR_ARGUMENT;
  hook_user.store(user, std::memory_order_relaxed);
  hook_threads.store(count, std::memory_order_relaxed);
  hook.store(function, std::memory_order_release);
  return DEEPGEN_OK;
}
