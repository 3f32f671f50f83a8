// The runtime around a fake kernel that counts the tiles it is asked for.
#include "deepgen/kernel_abi.h"
#include "deepgen/runtime.h"
#include "runtime/cpu/cpu.h"
#include "tests/unit/runtime/counted_allocations.h"
#include "tests/unit/runtime/gemm_operands.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <set>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace {

constexpr int kTilesM = 37, kTilesN = 23, kTilesB = 3;

/// How often each tile was computed, and what the kernel saw.
struct Counter {
  std::atomic<int> tiles[kTilesB][kTilesM][kTilesN];
  std::atomic<int> calls, bad_workspace;
  std::atomic<uint64_t> last_alpha, last_ldd, last_stride_a, last_c;
  void clear() { std::memset(static_cast<void*>(this), 0, sizeof *this); }
  bool each_once() const {
    for (auto& plane : tiles)
      for (auto& row : plane)
        for (auto& tile : row)
          if (tile != 1) return false;
    return true;
  }
};
Counter counter;
thread_local bool inside = false;

enum Slot { kM0, kM1, kN0, kN1, kB0, kB1, kWorkspace, kAlpha, kLdd, kStrideA, kC, kSlots };
constexpr uint8_t kArgs[kSlots] = {DEEPGEN_ARG_M0,        DEEPGEN_ARG_M1,    DEEPGEN_ARG_N0,
                                   DEEPGEN_ARG_N1,        DEEPGEN_ARG_B0,    DEEPGEN_ARG_B1,
                                   DEEPGEN_ARG_WORKSPACE, DEEPGEN_ARG_ALPHA, DEEPGEN_ARG_LDD,
                                   DEEPGEN_ARG_STRIDE_A,  DEEPGEN_ARG_C};
constexpr size_t kScratch = 100'000;

void count_tiles(const uint64_t* args) {
  counter.calls++;
  // Two tasks that share scratch would see each other's mark.
  auto* scratch = reinterpret_cast<volatile char*>(args[kWorkspace]);
  const char mark = char(1 + args[kM0] * 7 + args[kN0]);
  if (!scratch || args[kWorkspace] % 64 != 0) counter.bad_workspace++;
  for (size_t i = 0; i < kScratch; i += 4096) scratch[i] = mark;
  scratch[kScratch - 1] = mark;
  for (uint64_t b = args[kB0]; b < args[kB1]; ++b)
    for (uint64_t m = args[kM0]; m < args[kM1]; ++m)
      for (uint64_t n = args[kN0]; n < args[kN1]; ++n) counter.tiles[b][m][n]++;
  for (size_t i = 0; i < kScratch; i += 4096)
    if (scratch[i] != mark) counter.bad_workspace++;
  counter.last_alpha = args[kAlpha];
  counter.last_ldd = args[kLdd];
  counter.last_stride_a = args[kStrideA];
  counter.last_c = args[kC];
}
void other_kernel(const uint64_t*) {}

deepgen_kernel kernel(uint32_t isa, deepgen_cpu_entry entry, const char* config) {
  deepgen_kernel k{};
  k.arch = "cpu", k.config = config, k.isa = isa, k.entry = entry;
  k.args = kArgs, k.arg_count = kSlots;
  k.tiles_m = kTilesM, k.tiles_n = kTilesN, k.tiles_b = kTilesB, k.grain_m = 4, k.grain_n = 2;
  k.workspace = kScratch;
  return k;
}

constexpr int64_t kM = 370, kN = 230, kK = 50, kBatch = 3;

class Runtime : public ::testing::Test {
protected:
  std::vector<deepgen_kernel> kernels{kernel(1, count_tiles, "counting")};
  const deepgen_kernel* selected = nullptr;
  deepgen_function function{};
  deepgen::RuntimeOperands operands;
  std::vector<float> a = std::vector<float>(kM * kK * kBatch + 1),
                     b = std::vector<float>(kK * kN * kBatch + 1),
                     c = std::vector<float>(kM * kN * kBatch * 2 + 1),
                     d = std::vector<float>(kM * kN * kBatch * 2 + 1), bias = std::vector<float>(kN + 1);
  deepgen_gemm_args args;

  void SetUp() override {
    deepgen::Gemm p;
    p.m = kM, p.n = kN, p.k = kK, p.batch = kBatch, p.epilogue = {deepgen::EpilogueOp::bias};
    function = {};
    function.name = "test", function.problem = "gemm ...";
    function.kernels = kernels.data(), function.kernel_count = 1, function.selected = &selected;
    operands.set(function, p);
    args.a = a.data(), args.b = b.data(), args.d = d.data(), args.bias = bias.data();
    counter.clear();
    unsetenv("DEEPGEN_CPU_LEVEL");
    deepgen_set_parallel_for(nullptr, nullptr, 0);
    deepgen_set_num_threads(2);
  }
  deepgen_status run() { return deepgen_run_gemm(&function, &args); }
};

TEST_F(Runtime, ComputesEveryTileOnceWithAnyThreadCount) {
  for (int threads : {1, 2, 3, 7, 16, 64}) {
    counter.clear();
    ASSERT_EQ(deepgen_set_num_threads(threads), DEEPGEN_OK);
    EXPECT_EQ(deepgen_get_num_threads(), threads);
    ASSERT_EQ(run(), DEEPGEN_OK);
    EXPECT_TRUE(counter.each_once()) << threads << " threads";
    EXPECT_EQ(counter.bad_workspace, 0);
    EXPECT_LE(counter.calls, threads);
    EXPECT_GE(counter.calls, threads > 2 ? threads - 2 : threads);
  }
}

TEST_F(Runtime, SmallProblemsRunOnTheCallingThread) {
  operands.change(function, [](deepgen::Gemm& p) { p.m = p.n = 10, p.k = 1; }); // the kernel does not look
  ASSERT_EQ(run(), DEEPGEN_OK);
  EXPECT_EQ(counter.calls, 1);
}

TEST_F(Runtime, PassesDefaultsAndScalars) {
  args.alpha = 1.5;
  ASSERT_EQ(run(), DEEPGEN_OK);
  float alpha = 0;
  const uint64_t bits = counter.last_alpha;
  std::memcpy(&alpha, &bits, 4);
  EXPECT_EQ(alpha, 1.5f);
  EXPECT_EQ(bits >> 32, 0u);
  EXPECT_EQ(counter.last_ldd, uint64_t(kN));
  EXPECT_EQ(counter.last_stride_a, uint64_t(kM * kK));
  std::vector<double> wide(kM * kN * kBatch * 2);
  operands.change(function, [](deepgen::Gemm& p) { p.a = p.b = p.d = deepgen::Type::f64; });
  args.a = args.b = args.bias = wide.data(), args.d = wide.data() + 1;
  ASSERT_EQ(run(), DEEPGEN_OK);
  double alpha64 = 0;
  const uint64_t bits64 = counter.last_alpha;
  std::memcpy(&alpha64, &bits64, 8);
  EXPECT_EQ(alpha64, 1.5);
}

TEST_F(Runtime, NullPointers) {
  EXPECT_EQ(deepgen_run_gemm(nullptr, &args), DEEPGEN_ERROR_NULL);
  EXPECT_EQ(deepgen_run_gemm(&function, nullptr), DEEPGEN_ERROR_NULL);
  for (auto pointer : {&deepgen_gemm_args::a, &deepgen_gemm_args::b, &deepgen_gemm_args::bias}) {
    const void* old = args.*pointer;
    args.*pointer = nullptr;
    EXPECT_EQ(run(), DEEPGEN_ERROR_NULL);
    args.*pointer = old;
  }
  args.beta = 1;
  EXPECT_EQ(run(), DEEPGEN_ERROR_NULL);
  args.beta = 0;
  operands.change(function, [](deepgen::Gemm& p) { p.epilogue.clear(); });
  args.bias = nullptr;
  EXPECT_EQ(run(), DEEPGEN_OK);
  args.d = nullptr;
  EXPECT_EQ(run(), DEEPGEN_ERROR_NULL);
  EXPECT_EQ(counter.calls, 2) << "only the good call may reach the kernel";
}

TEST_F(Runtime, Alignment) {
  for (auto pointer : {&deepgen_gemm_args::a, &deepgen_gemm_args::b, &deepgen_gemm_args::bias}) {
    const void* old = args.*pointer;
    args.*pointer = static_cast<const char*>(old) + 2;
    EXPECT_EQ(run(), DEEPGEN_ERROR_ALIGNMENT);
    args.*pointer = old;
  }
  args.c = reinterpret_cast<char*>(c.data()) + 1;
  EXPECT_EQ(run(), DEEPGEN_OK) << "C is not looked at when beta is 0";
  args.beta = 1;
  EXPECT_EQ(run(), DEEPGEN_ERROR_ALIGNMENT);
}

TEST_F(Runtime, LeadingDimensions) {
  args.lda = kK - 1;
  EXPECT_EQ(run(), DEEPGEN_ERROR_LEADING_DIMENSION);
  args.lda = -1;
  EXPECT_EQ(run(), DEEPGEN_ERROR_LEADING_DIMENSION);
  args.lda = kK + 1;
  EXPECT_EQ(run(), DEEPGEN_OK);
  args.ldd = INT64_MAX;
  EXPECT_EQ(run(), DEEPGEN_ERROR_LEADING_DIMENSION);
}

TEST_F(Runtime, Strides) {
  args.stride_a = -2;
  EXPECT_EQ(run(), DEEPGEN_ERROR_STRIDE);
  args.stride_a = 1; // overlapping inputs are fine
  EXPECT_EQ(run(), DEEPGEN_OK);
  args.stride_d = kM * kN - 1;
  EXPECT_EQ(run(), DEEPGEN_ERROR_STRIDE);
  args.stride_d = INT64_MAX / 2;
  EXPECT_EQ(run(), DEEPGEN_ERROR_STRIDE);
  args.ldd = kBatch * kN, args.stride_d = kN; // entries side by side
  EXPECT_EQ(run(), DEEPGEN_OK);
  args.stride_d = kN - 1;
  EXPECT_EQ(run(), DEEPGEN_ERROR_STRIDE);
}

TEST_F(Runtime, OverlapOfCAndD) {
  args.beta = 1;
  args.c = c.data();
  EXPECT_EQ(run(), DEEPGEN_OK);
  args.c = args.d;
  EXPECT_EQ(run(), DEEPGEN_OK);
  args.ldc = kN + 1;
  EXPECT_EQ(run(), DEEPGEN_ERROR_OVERLAP);
  args.ldc = 0;
  args.c = d.data() + 1;
  EXPECT_EQ(run(), DEEPGEN_ERROR_OVERLAP);
  args.c = d.data() + kM * kN * kBatch;
  EXPECT_EQ(run(), DEEPGEN_OK);
  operands.change(function, [](deepgen::Gemm& p) { p.batch = 1; });
  args.ldc = args.ldd = 2 * kN; // two halves of one matrix
  args.c = d.data() + kN;
  EXPECT_EQ(run(), DEEPGEN_OK);
  args.c = d.data() + kN - 1;
  EXPECT_EQ(run(), DEEPGEN_ERROR_OVERLAP);
  args.beta = 0;
  EXPECT_EQ(run(), DEEPGEN_OK);
}

TEST_F(Runtime, Workspace) {
  const size_t bytes = deepgen_workspace_size(&function);
  EXPECT_GE(bytes, 2 * kScratch);
  std::unique_ptr<char, decltype(&free)> memory(static_cast<char*>(aligned_alloc(64, bytes + 64)), &free);
  args.workspace = memory.get(), args.workspace_bytes = bytes;
  EXPECT_EQ(run(), DEEPGEN_OK);
  EXPECT_TRUE(counter.each_once());
  args.workspace_bytes = bytes - 1;
  EXPECT_EQ(run(), DEEPGEN_ERROR_WORKSPACE);
  args.workspace = memory.get() + 8, args.workspace_bytes = bytes;
  EXPECT_EQ(run(), DEEPGEN_ERROR_WORKSPACE);
  deepgen_set_num_threads(1);
  EXPECT_LT(deepgen_workspace_size(&function), bytes);
  EXPECT_EQ(deepgen_workspace_size(nullptr), 0u);
}

TEST_F(Runtime, TooMuchScratchAsksForAWorkspace) {
  kernels[0].workspace = size_t(1) << 60;
  EXPECT_EQ(deepgen_register(&function, 1), DEEPGEN_ERROR_WORKSPACE);
  EXPECT_EQ(run(), DEEPGEN_ERROR_WORKSPACE);
  EXPECT_EQ(counter.calls, 0);
}

TEST_F(Runtime, SelectsByLevel) {
  kernels = {kernel(4, other_kernel, "four"), kernel(3, other_kernel, "three"),
             kernel(2, other_kernel, "two"), kernel(1, other_kernel, "one")};
  function.kernels = kernels.data(), function.kernel_count = 4;
  const char* names[] = {"one", "two", "three", "four"};
  const uint32_t hardware = deepgen::cpu::hardware_level();
  ASSERT_GE(hardware, 1u);
  for (uint32_t level = 1; level <= 4; ++level) {
    setenv("DEEPGEN_CPU_LEVEL", std::to_string(level).c_str(), 1);
    const uint32_t expected = std::min(level, hardware); // never raised
    EXPECT_EQ(deepgen_cpu_level(), expected);
    ASSERT_EQ(deepgen_register(&function, 1), DEEPGEN_OK);
    EXPECT_STREQ(deepgen_selected_config(&function), names[expected - 1]);
  }
  setenv("DEEPGEN_CPU_LEVEL", "nonsense", 1);
  EXPECT_EQ(deepgen_cpu_level(), hardware);
  setenv("DEEPGEN_CPU_LEVEL", "1", 1);
  function.kernel_count = 3;
  EXPECT_EQ(deepgen_register(&function, 1), DEEPGEN_ERROR_NO_KERNEL);
  EXPECT_EQ(deepgen_selected_config(&function), nullptr);
  EXPECT_EQ(run(), DEEPGEN_ERROR_NO_KERNEL);
  unsetenv("DEEPGEN_CPU_LEVEL");
}

TEST_F(Runtime, TakesKernelsWhoseExtensionsAreHere) {
  constexpr uint32_t no_such = 0x40000000u;
  kernels = {kernel(1 | no_such, other_kernel, "of another time"),
             kernel(3 | DEEPGEN_ISA_AVXVNNI, other_kernel, "vnni"), kernel(1, count_tiles, "plain")};
  function.kernels = kernels.data(), function.kernel_count = 3;
  const uint32_t here = deepgen::cpu::usable_isa();
  EXPECT_EQ(here & DEEPGEN_ISA_LEVEL, deepgen_cpu_level());
  EXPECT_EQ(deepgen_register(&function, 1), DEEPGEN_OK);
  EXPECT_STREQ(deepgen_selected_config(&function), here & DEEPGEN_ISA_AVXVNNI ? "vnni" : "plain");
  setenv("DEEPGEN_CPU_LEVEL", "3", 1); // the level and nothing else
  EXPECT_EQ(deepgen::cpu::usable_isa(), deepgen_cpu_level());
  EXPECT_EQ(deepgen_register(&function, 1), DEEPGEN_OK);
  EXPECT_STREQ(deepgen_selected_config(&function), "plain");
  setenv("DEEPGEN_CPU_LEVEL", "3+", 1);
  EXPECT_LE(deepgen_cpu_level(), 3u);
  EXPECT_EQ(deepgen::cpu::usable_isa() & ~DEEPGEN_ISA_LEVEL, here & DEEPGEN_ISA_AVXVNNI);
  unsetenv("DEEPGEN_CPU_LEVEL");
}

TEST_F(Runtime, RefusesMalformedDescriptions) {
  const uint8_t bad_slot = DEEPGEN_ARG_COUNT;
  kernels[0].args = &bad_slot, kernels[0].arg_count = 1;
  EXPECT_EQ(deepgen_register(&function, 1), DEEPGEN_ERROR_ARGUMENT);
  EXPECT_EQ(run(), DEEPGEN_ERROR_NO_KERNEL);
  EXPECT_EQ(deepgen_register(nullptr, 1), DEEPGEN_ERROR_NULL);
}

TEST_F(Runtime, FeatureNamesAreSortedAndMatchTheLevel) {
  const char* names[deepgen::cpu::max_features];
  const unsigned count = deepgen::cpu::features(names);
  std::vector<std::string> list(names, names + count);
  EXPECT_TRUE(std::is_sorted(list.begin(), list.end()));
  const std::set<std::string> set(list.begin(), list.end());
  EXPECT_EQ(set.count("avx2") && set.count("fma") && set.count("bmi2"), deepgen::cpu::hardware_level() >= 3);
  EXPECT_EQ(set.count("avx512f") && set.count("avx512vl") && set.count("avx512dq"),
            deepgen::cpu::hardware_level() >= 4);
}

struct Hook {
  int count = 0, calls = 0;
  static void run(void* user, int count, deepgen_task task, void* context) {
    auto* self = static_cast<Hook*>(user);
    self->count = count, self->calls++;
    for (int i = count - 1; i >= 0; --i) task(context, i);
  }
};

TEST_F(Runtime, ParallelForHook) {
  Hook hook;
  ASSERT_EQ(deepgen_set_parallel_for(Hook::run, &hook, 5), DEEPGEN_OK);
  EXPECT_EQ(deepgen_get_num_threads(), 5);
  ASSERT_EQ(run(), DEEPGEN_OK);
  EXPECT_EQ(hook.calls, 1);
  EXPECT_EQ(hook.count, 5);
  EXPECT_TRUE(counter.each_once());
  EXPECT_EQ(deepgen_set_parallel_for(Hook::run, &hook, 0), DEEPGEN_ERROR_ARGUMENT);
  ASSERT_EQ(deepgen_set_parallel_for(nullptr, nullptr, 0), DEEPGEN_OK);
  ASSERT_EQ(run(), DEEPGEN_OK);
  EXPECT_EQ(hook.calls, 1);
}

TEST_F(Runtime, ThreadCountRange) {
  EXPECT_EQ(deepgen_set_num_threads(0), DEEPGEN_ERROR_ARGUMENT);
  EXPECT_EQ(deepgen_set_num_threads(1025), DEEPGEN_ERROR_ARGUMENT);
  EXPECT_EQ(deepgen_get_num_threads(), 2);
}

TEST_F(Runtime, EightThreadsCallAtOnce) {
  constexpr int kCallers = 8, kRounds = 50;
  deepgen_set_num_threads(3);
  ASSERT_EQ(deepgen_register(&function, 1), DEEPGEN_OK);
  std::atomic<int> failures{0};
  std::vector<std::thread> callers;
  for (int t = 0; t < kCallers; ++t)
    callers.emplace_back([&] {
      for (int i = 0; i < kRounds; ++i) failures += run() != DEEPGEN_OK;
    });
  for (std::thread& t : callers) t.join();
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(counter.bad_workspace, 0) << "two tasks shared scratch";
  for (auto& plane : counter.tiles)
    for (auto& row : plane)
      for (auto& tile : row) ASSERT_EQ(tile, kCallers * kRounds);
}

void nested_kernel(const uint64_t* args);
struct Nested {
  const deepgen_function* function;
  const deepgen_gemm_args* args;
  std::atomic<int> inner_errors{0};
} nested;
void nested_kernel(const uint64_t* args) {
  count_tiles(args);
  if (inside) return;
  inside = true;
  if (deepgen_run_gemm(nested.function, nested.args) != DEEPGEN_OK) nested.inner_errors++;
  inside = false;
}

TEST_F(Runtime, NestedCallsRunSerially) {
  kernels[0].entry = nested_kernel;
  nested.function = &function, nested.args = &args;
  deepgen_set_num_threads(4);
  ASSERT_EQ(run(), DEEPGEN_OK);
  EXPECT_EQ(nested.inner_errors, 0);
  EXPECT_GT(counter.calls, 4);
}

TEST_F(Runtime, CallsDoNotAllocate) {
  if (!COUNTS_ALLOCATIONS) GTEST_SKIP() << "a sanitizer has its own malloc";
  deepgen_set_num_threads(3);
  ASSERT_EQ(run(), DEEPGEN_OK); // the first parallel call starts the threads
  const long before = allocations;
  for (int i = 0; i < 100; ++i) run();
  args.lda = 1;
  run();
  EXPECT_EQ(allocations, before);
  void* volatile kept = malloc(1);
  free(kept);
  EXPECT_GT(allocations, before) << "the counter counts";
}

TEST_F(Runtime, SleepingThreadsWake) {
  deepgen_set_num_threads(3);
  for (int i = 0; i < 5; ++i) {
    usleep(2000); // past the spinning
    counter.clear();
    ASSERT_EQ(run(), DEEPGEN_OK);
    EXPECT_TRUE(counter.each_once());
  }
}

TEST_F(Runtime, ForkedChildComputes) {
  deepgen_set_num_threads(3);
  ASSERT_EQ(run(), DEEPGEN_OK);
#if COUNTS_ALLOCATIONS == 0
  // GCC 12's sanitizers do not prepare for a fork: a thread that still starts may hold one of their locks for
  // ever in the child. By now all have been created; give them time to start.
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
#endif
  const pid_t child = fork();
  if (child == 0) {
    alarm(10);
    counter.clear();
    const bool ok = run() == DEEPGEN_OK && counter.each_once();
    exit(ok ? 0 : 1); // runs the pool's destructor too
  }
  int status = -1;
  waitpid(child, &status, 0);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  counter.clear();
  EXPECT_EQ(run(), DEEPGEN_OK);
  EXPECT_TRUE(counter.each_once());
}

TEST(Status, EveryValueIsExplained) {
  std::set<std::string> texts;
  for (int i = DEEPGEN_OK; i <= DEEPGEN_ERROR_VERSION; ++i)
    texts.insert(deepgen_status_string(deepgen_status(i)));
  EXPECT_EQ(texts.size(), size_t(DEEPGEN_ERROR_VERSION) + 1);
  EXPECT_NE(deepgen_status_string(deepgen_status(99)), nullptr);
}

} // namespace
