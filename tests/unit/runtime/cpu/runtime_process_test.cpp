// The runtime as a guest in a process: signals, floating-point state, versions of its structs.
#include "deepgen/kernel_abi.h"
#include "deepgen/runtime.h"
#include "tests/unit/runtime/gemm_operands.h"

#include <gtest/gtest.h>

#include <cfenv>
#include <csignal>
#include <cstring>
#include <set>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>
#include <vector>
#include <xmmintrin.h>

namespace {

constexpr int kTiles = 64;
constexpr uint8_t kArgs[] = {DEEPGEN_ARG_A, DEEPGEN_ARG_D, DEEPGEN_ARG_M0, DEEPGEN_ARG_M1};

/// A function of kTiles tiles, each of which the kernel takes for its own.
class Process : public ::testing::Test {
protected:
  deepgen_kernel kernel{};
  const deepgen_kernel* selected = nullptr;
  deepgen_function function{};
  deepgen::RuntimeOperands operands;
  deepgen_gemm_args args;
  std::vector<float> b = std::vector<float>(1), d = std::vector<float>(kTiles);

  void set_up(deepgen_cpu_entry entry, const void* a) {
    kernel.arch = "cpu", kernel.config = "test", kernel.isa = 1, kernel.entry = entry;
    kernel.args = kArgs, kernel.arg_count = sizeof kArgs;
    kernel.tiles_m = kTiles, kernel.tiles_n = kernel.tiles_b = kernel.grain_m = kernel.grain_n = 1;
    function.name = "test", function.problem = "gemm ...";
    deepgen::Gemm p;
    p.m = kTiles;
    operands.set(function, p);
    function.work = 1e9; // enough to be split
    function.kernels = &kernel, function.kernel_count = 1, function.selected = &selected;
    args.a = a, args.b = b.data(), args.d = d.data();
    ASSERT_EQ(deepgen_set_num_threads(4), DEEPGEN_OK);
  }
  deepgen_status run() { return deepgen_run_gemm(&function, &args); }
};

// --- faults of operands

constexpr size_t kPage = 4096;

void read_a_page_a_tile(const uint64_t* x) {
  for (uint64_t m = x[2]; m < x[3]; ++m) {
    usleep(500); // so that every thread gets tasks
    reinterpret_cast<float*>(x[1])[m] = *reinterpret_cast<const volatile float*>(x[0] + m * kPage);
  }
}

char* lazy_pages = nullptr;
std::atomic<int> faults{0};
std::atomic<long> faulting_threads[kTiles];

/// As a program does that loads operands when they are first read.
void make_readable(int signal, siginfo_t* info, void*) {
  const auto offset = size_t(static_cast<char*>(info->si_addr) - lazy_pages);
  if (offset >= kTiles * kPage ||
      mprotect(lazy_pages + offset / kPage * kPage, kPage, PROT_READ | PROT_WRITE) != 0) {
    std::signal(signal, SIG_DFL);
    return;
  }
  faulting_threads[faults.fetch_add(1)] = syscall(SYS_gettid);
}

TEST_F(Process, FaultsOfOperandsReachTheProgramsHandlerOnEveryThread) {
  lazy_pages =
      static_cast<char*>(mmap(nullptr, kTiles * kPage, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
  ASSERT_NE(lazy_pages, MAP_FAILED);
  struct sigaction action = {}, old;
  action.sa_sigaction = make_readable, action.sa_flags = SA_SIGINFO;
  ASSERT_EQ(sigaction(SIGSEGV, &action, &old), 0);
  set_up(read_a_page_a_tile, lazy_pages);
  EXPECT_EQ(run(), DEEPGEN_OK);
  sigaction(SIGSEGV, &old, nullptr);
  EXPECT_EQ(faults, kTiles);
  std::set<long> threads(faulting_threads, faulting_threads + faults);
  EXPECT_GT(threads.size(), 1u) << "no thread of the pool had a fault";
  munmap(lazy_pages, kTiles * kPage);
}

std::atomic<long> signalled_thread{0};

/// While a call runs on four threads, signals for the process go to the thread of the application.
TEST_F(Process, SignalsFromOutsideStayWithTheApplication) {
  std::vector<float> a(kTiles * kPage / sizeof(float));
  set_up(read_a_page_a_tile, a.data());
  std::signal(SIGUSR1, [](int) { signalled_thread = syscall(SYS_gettid); });
  for (int i = 0; i < 20; ++i) {
    signalled_thread = 0;
    std::thread sender([] {
      sigset_t all;
      sigfillset(&all);
      pthread_sigmask(SIG_SETMASK, &all, nullptr);
      usleep(300);
      kill(getpid(), SIGUSR1);
    });
    EXPECT_EQ(run(), DEEPGEN_OK);
    sender.join();
    EXPECT_EQ(signalled_thread, syscall(SYS_gettid));
  }
  std::signal(SIGUSR1, SIG_DFL);
}

// --- floating point

constexpr uint32_t kFlags = 0x3f, kDaz = 1 << 6, kFtz = 1 << 15, kDown = 1 << 13, kUp = 2 << 13,
                   kZero = 3 << 13;
constexpr uint32_t kModes[] = {0, kFtz, kDaz, kFtz | kDaz, kDown, kUp, kZero, kUp | kFtz};

/// Subnormal products and sums, and quotients that are rounded.
void compute_subnormals(const uint64_t* x) {
  auto* a = reinterpret_cast<const volatile float*>(x[0]);
  auto* d = reinterpret_cast<volatile float*>(x[1]);
  for (uint64_t m = x[2]; m < x[3]; ++m) {
    float sum = 0;
    for (int i = 0; i < 1000; ++i) sum += a[m] * 0.75f + a[(m + 1) % kTiles] / 3.0f;
    d[m] = sum;
  }
}

std::vector<float> subnormals() {
  std::vector<float> a(kTiles);
  for (int i = 0; i < kTiles; ++i) a[size_t(i)] = i % 2 ? 1e-39f * float(i + 1) : 1e-38f + 1e-40f * float(i);
  return a;
}

/// With the bits of MXCSR added to the default ones.
class MxcsrScope {
public:
  explicit MxcsrScope(uint32_t bits) : old_(_mm_getcsr()) { _mm_setcsr((old_ & ~kFlags) | bits); }
  ~MxcsrScope() { _mm_setcsr(old_); }

private:
  uint32_t old_;
};

TEST_F(Process, EveryThreadComputesWithTheCallersFloatingPointState) {
  const std::vector<float> a = subnormals();
  set_up(compute_subnormals, a.data());
  std::set<std::vector<float>> results;
  for (uint32_t mode : kModes) {
    MxcsrScope scope(mode);
    ASSERT_EQ(deepgen_set_num_threads(1), DEEPGEN_OK);
    ASSERT_EQ(run(), DEEPGEN_OK);
    const std::vector<float> expected = d;
    results.insert(expected);
    ASSERT_EQ(deepgen_set_num_threads(4), DEEPGEN_OK);
    int different = 0;
    for (int i = 0; i < 200; ++i) {
      d.assign(kTiles, -1);
      ASSERT_EQ(run(), DEEPGEN_OK);
      different += std::memcmp(d.data(), expected.data(), kTiles * sizeof(float)) != 0;
    }
    EXPECT_EQ(different, 0) << "of 200, with MXCSR bits " << std::hex << mode;
    EXPECT_EQ(_mm_getcsr() & ~kFlags, mode | 0x1f80u) << "the caller's state changed";
  }
  EXPECT_GE(results.size(), 5u) << "the modes are to differ";
}

void on_other_threads(void*, int count, deepgen_task task, void* context) {
  for (int i = 0; i < count; ++i)
    std::thread([=] {
      _mm_setcsr(0x1f80); // a new thread has its creator's
      const uint32_t before = _mm_getcsr();
      task(context, i);
      EXPECT_EQ(_mm_getcsr(), before) << "a thread of the application lost its state";
    }).join();
}

TEST_F(Process, ThreadsOfTheApplicationComputeWithTheCallersState) {
  const std::vector<float> a = subnormals();
  set_up(compute_subnormals, a.data());
  ASSERT_EQ(deepgen_set_num_threads(1), DEEPGEN_OK);
  MxcsrScope scope(kFtz | kDaz | kUp);
  ASSERT_EQ(run(), DEEPGEN_OK);
  const std::vector<float> expected = d;
  ASSERT_EQ(deepgen_set_parallel_for(on_other_threads, nullptr, 4), DEEPGEN_OK);
  EXPECT_EQ(run(), DEEPGEN_OK);
  EXPECT_EQ(std::memcmp(d.data(), expected.data(), kTiles * sizeof(float)), 0);
  deepgen_set_parallel_for(nullptr, nullptr, 0);
}

void divide_by_zero_in_the_last_tile(const uint64_t* x) {
  auto* a = reinterpret_cast<const volatile float*>(x[0]);
  for (uint64_t m = x[2]; m < x[3]; ++m) reinterpret_cast<volatile float*>(x[1])[m] = 1 / a[m];
}

/// Whoever computes the tile, fetestexcept() of the caller tells of it, as after a call on one thread.
TEST_F(Process, RaisedFlagsReachTheCaller) {
  std::vector<float> a(kTiles, 1.0f);
  a.back() = 0;
  set_up(divide_by_zero_in_the_last_tile, a.data());
  for (int i = 0; i < 200; ++i) {
    std::feclearexcept(FE_ALL_EXCEPT);
    ASSERT_EQ(run(), DEEPGEN_OK);
    ASSERT_TRUE(std::fetestexcept(FE_DIVBYZERO)) << "call " << i;
  }
  std::feclearexcept(FE_ALL_EXCEPT);
  a.back() = 1;
  ASSERT_EQ(run(), DEEPGEN_OK);
  EXPECT_FALSE(std::fetestexcept(FE_DIVBYZERO)) << "a flag of an earlier call came back";
}

// --- versions of the structs

TEST_F(Process, StructsOfAnotherVersionAreRefused) {
  const std::vector<float> a = subnormals();
  set_up(compute_subnormals, a.data());
  for (uint32_t deepgen_gemm_args::* member : {&deepgen_gemm_args::size, &deepgen_gemm_args::abi}) {
    deepgen_gemm_args other = args;
    ++(other.*member);
    EXPECT_EQ(deepgen_run_gemm(&function, &other), DEEPGEN_ERROR_VERSION);
    EXPECT_EQ(deepgen_launch_gemm(&function, &other, nullptr), DEEPGEN_ERROR_VERSION);
  }
  std::memset(static_cast<void*>(&args), 0,
              sizeof args); // as of a caller in C who did not begin with DEEPGEN_GEMM_ARGS
  EXPECT_EQ(run(), DEEPGEN_ERROR_VERSION);
  for (uint32_t deepgen_layout::* member :
       {&deepgen_layout::function, &deepgen_layout::abi, &deepgen_layout::kernel, &deepgen_layout::launch,
        &deepgen_layout::map, &deepgen_layout::code, &deepgen_layout::operand, &deepgen_layout::requirement,
        &deepgen_layout::vendor}) {
    deepgen_function other = function;
    --(other.layout.*member);
    selected = nullptr;
    EXPECT_EQ(deepgen_register(&other, 1), DEEPGEN_ERROR_VERSION);
    EXPECT_EQ(selected, nullptr);
    EXPECT_EQ(deepgen_run_gemm(&other, &args), DEEPGEN_ERROR_VERSION);
    EXPECT_EQ(deepgen_launch_gemm(&other, &args, nullptr), DEEPGEN_ERROR_VERSION);
    EXPECT_EQ(deepgen_prepare(&other), DEEPGEN_ERROR_VERSION);
    EXPECT_EQ(deepgen_verify(&other, nullptr, 0), DEEPGEN_ERROR_VERSION);
    EXPECT_EQ(deepgen_workspace_size(&other), 0u);
    EXPECT_EQ(deepgen_launch_workspace_size(&other), 0u);
    EXPECT_EQ(deepgen_selected_config(&other), nullptr);
    EXPECT_EQ(deepgen_launch_config(&other), nullptr);
  }
}

} // namespace
