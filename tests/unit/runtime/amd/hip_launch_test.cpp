// What a launch hands to HIP: the argument segment, grids, the stream; and what it must not do.
#include "hip_devices.h"
#include "tests/paths.h"
#include "tests/unit/runtime/counted_allocations.h"
#include "tests/unit/runtime/launched.h"

#include <gtest/gtest.h>

#include <cstring>
#include <fstream>
#include <iterator>

extern "C" {
int hipMalloc(void**, size_t);
int hipFree(void*);
int hipStreamCreateWithFlags(void**, unsigned);
int hipStreamDestroy(void*);
int hipStreamBeginCapture(void*, int);
int hipStreamEndCapture(void*, void**);
int hipStreamSynchronize(void*);
int hipGraphInstantiate(void**, void*, void*, char*, size_t);
int hipGraphLaunch(void*, void*);
int hipGraphExecDestroy(void*);
int hipGraphDestroy(void*);
}

namespace {

using namespace deepgen::hip_tests;

class HipLaunch : public ::testing::Test {
protected:
  void SetUp() override {
    setenv("DEEPGEN_HIP_DRIVER", deepgen::paths::fake_hip, 1);
    fake_hip::reset({mi300x()});
  }
  static const std::vector<fake_hip::Launch>& launches() { return fake_hip::state().launches; }
  static KernelText with(std::vector<uint8_t> args, const std::vector<uint32_t>& sizes) {
    KernelText k = kernel("k");
    k.args = std::move(args);
    k.cubin = code_object("gfx942", {"deepgen_kernel", "deepgen_reduce"}, sizes);
    return k;
  }
};

TEST_F(HipLaunch, PassesArgumentsInTheKernelsOrder) {
  KernelText k = with({DEEPGEN_ARG_ALPHA, DEEPGEN_ARG_D, DEEPGEN_ARG_CLAMP_LOW, DEEPGEN_ARG_CLAMP_HIGH,
                       DEEPGEN_ARG_LDB, DEEPGEN_ARG_WORKSPACE, DEEPGEN_ARG_BETA},
                      {4, 8, 4, 4, 8, 8, 4});
  k.workspace = 1000;
  k.launches = {{"deepgen_kernel", {7, 3, 2}, {64, 2, 1}, {1, 1, 1}, 1000, 0},
                {"deepgen_reduce", {5, 1, 1}, {256, 1, 1}, {1, 1, 1}, 0, 0}};
  Function f({k}, 3);
  f.set_epilogue({deepgen::EpilogueOp::clamp});
  f.args.alpha = 1.5, f.args.clamp_low = -2, f.args.clamp_high = 2;
  f.args.workspace = at(0x70000), f.args.workspace_bytes = 1000;
  void* stream = nullptr;
  ASSERT_EQ(hipStreamCreateWithFlags(&stream, 1), 0);
  ASSERT_EQ(f.launch(stream), DEEPGEN_OK);
  ASSERT_EQ(launches().size(), 2u);
  EXPECT_EQ(launches()[0].kernel, "deepgen_kernel");
  EXPECT_EQ(launches()[0].grid, (std::array<uint32_t, 3>{7, 3, 2})) << "in workgroups";
  EXPECT_EQ(launches()[0].block, (std::array<uint32_t, 3>{64, 2, 1}));
  EXPECT_EQ(launches()[0].shared, 1000u);
  EXPECT_EQ(launches()[1].kernel, "deepgen_reduce");
  EXPECT_EQ(launches()[1].grid, (std::array<uint32_t, 3>{5, 1, 1}));
  for (const fake_hip::Launch& l : launches()) {
    EXPECT_EQ(l.stream, stream);
    ASSERT_EQ(l.parameters.size(), 7u);
    EXPECT_EQ(as<float>(l.parameters[0]), 1.5f);
    EXPECT_EQ(as<uint64_t>(l.parameters[1]), 0x30000u);
    EXPECT_EQ(as<float>(l.parameters[2]), -2.0f);
    EXPECT_EQ(as<float>(l.parameters[3]), 2.0f);
    EXPECT_EQ(as<int64_t>(l.parameters[4]), 32);
    EXPECT_EQ(as<uint64_t>(l.parameters[5]), 0x70000u);
    EXPECT_EQ(as<float>(l.parameters[6]), 0.0f);
    ASSERT_EQ(l.kernarg.size(), 48u) << "with the gap behind alpha and the end rounded up";
    EXPECT_EQ(as<float>(l.kernarg.substr(0, 4)), 1.5f);
    EXPECT_EQ(as<uint32_t>(l.kernarg.substr(4, 4)), 0u);
    EXPECT_EQ(as<uint64_t>(l.kernarg.substr(8, 8)), 0x30000u);
    EXPECT_EQ(as<float>(l.kernarg.substr(20, 4)), 2.0f);
    EXPECT_EQ(as<uint64_t>(l.kernarg.substr(32, 8)), 0x70000u);
  }
  hipStreamDestroy(stream);
}

TEST_F(HipLaunch, ScalarsOfEveryWidth) {
  KernelText k = with({DEEPGEN_ARG_ALPHA, DEEPGEN_ARG_BETA}, {8, 8});
  Function f64({k});
  f64.operands.set_scalar_type(DEEPGEN_F64);
  f64.args.alpha = 0.1, f64.args.beta = -3, f64.args.c = at(0x40000);
  ASSERT_EQ(f64.launch(), DEEPGEN_OK);
  EXPECT_EQ(as<double>(launches().back().parameters[0]), 0.1);
  EXPECT_EQ(as<double>(launches().back().parameters[1]), -3);
  Function i32({with({DEEPGEN_ARG_ALPHA, DEEPGEN_ARG_BETA}, {4, 4})});
  i32.operands.set_scalar_type(DEEPGEN_I32);
  i32.args.alpha = -7;
  ASSERT_EQ(i32.launch(), DEEPGEN_OK);
  EXPECT_EQ(as<int32_t>(launches().back().parameters[0]), -7);
}

TEST_F(HipLaunch, GridsAndKernelsFollowTheSizesOfACall) {
  const deepgen_size_rule rules[] = {{3, {64, 0, 0, 0}}, {0, {}}, {0, {}}};
  KernelText few = kernel("few"), any = kernel("any");
  any.args = few.args = {DEEPGEN_ARG_M};
  few.taken = {{1, 16}, {128, 128}, {32, 32}, {1, 1}};
  any.launches = {{"deepgen_kernel", {384, 1, 1}, {128, 1, 1}, {1, 1, 1}, 0, 0, rules}};
  deepgen::Gemm p = deepgen::cuda_tests::small_gemm();
  p.m = 8192, p.least[size_t(deepgen::Size::m)] = 1;
  Function f({few, any}, p);
  for (const int64_t m : {1, 16, 17, 64, 65, 8192}) {
    f.args.m = m;
    ASSERT_EQ(f.launch(), DEEPGEN_OK);
    EXPECT_EQ(launched(), m <= 16 ? "few" : "any") << m;
    EXPECT_EQ(launches().back().grid[0], m <= 16 ? 4 : uint32_t(3 * ((m + 63) / 64))) << m;
    EXPECT_EQ(as<int64_t>(launches().back().parameters[0]), m);
  }
  f.args.m = 0;
  ASSERT_EQ(f.launch(), DEEPGEN_OK);
  EXPECT_EQ(launches().size(), 6u) << "nothing is to be written";
}

TEST_F(HipLaunch, Workspace) {
  KernelText k = kernel("k");
  k.workspace = 4096;
  Function f({k});
  EXPECT_EQ(f.workspace(), 4096u);
  EXPECT_EQ(f.launch(), DEEPGEN_ERROR_WORKSPACE);
  f.args.workspace = at(0x80), f.args.workspace_bytes = 4096;
  EXPECT_EQ(f.launch(), DEEPGEN_ERROR_WORKSPACE) << "aligned to 128";
  f.args.workspace = at(0x100), f.args.workspace_bytes = 4095;
  EXPECT_EQ(f.launch(), DEEPGEN_ERROR_WORKSPACE);
  f.args.workspace_bytes = 4096;
  EXPECT_EQ(f.launch(), DEEPGEN_OK);
  EXPECT_EQ(launches().size(), 1u);
}

TEST_F(HipLaunch, PersistentGrids) {
  KernelText k = kernel("k");
  k.launches[0] = {"deepgen_kernel", {1000, 2, 1}, {256, 1, 1}, {1, 1, 1}, 0, DEEPGEN_LAUNCH_PERSISTENT};
  Function f({k});
  ASSERT_EQ(f.launch(), DEEPGEN_OK);
  EXPECT_EQ(launches().back().grid, (std::array<uint32_t, 3>{304, 2, 1})) << "2 on each of 304 compute units";
  k.launches[0].grid[0] = 17;
  Function small({k});
  ASSERT_EQ(small.launch(), DEEPGEN_OK);
  EXPECT_EQ(launches().back().grid[0], 17u);
  fake_hip::reset({{.blocks_per_unit = 0}});
  EXPECT_STREQ(Function({k, kernel("next")}).config(), "next") << "it fits on no compute unit";
}

TEST_F(HipLaunch, ChecksArgumentsFirst) {
  Function f({kernel("k")});
  f.args.b = nullptr;
  EXPECT_EQ(f.launch(), DEEPGEN_ERROR_NULL);
  f.args.b = at(0x20001);
  EXPECT_EQ(f.launch(), DEEPGEN_ERROR_ALIGNMENT);
  f.args.b = at(0x20000), f.args.lda = 31;
  EXPECT_EQ(f.launch(), DEEPGEN_ERROR_LEADING_DIMENSION);
  EXPECT_TRUE(launches().empty());
}

TEST_F(HipLaunch, ReportsWhatALaunchReturns) {
  Function f({kernel("k")});
  ASSERT_EQ(f.prepare(), DEEPGEN_OK);
  fake_hip::state().results["hipModuleLaunchKernel"] = 719;
  EXPECT_EQ(f.launch(), DEEPGEN_ERROR_DRIVER);
  const char* text = nullptr;
  EXPECT_EQ(deepgen_last_driver_error(&text), 719);
  EXPECT_STREQ(text, "unknown error");
}

TEST_F(HipLaunch, IsCapturedAndReplayed) {
  Function f({kernel("k")});
  void *stream = nullptr, *graph = nullptr, *executable = nullptr;
  ASSERT_EQ(hipStreamCreateWithFlags(&stream, 1), 0);
  ASSERT_EQ(hipStreamBeginCapture(stream, 0), 0);
  ASSERT_EQ(f.launch(stream), DEEPGEN_OK) << "also the first call, which loads code";
  f.args.a = at(0x90000);
  ASSERT_EQ(f.launch(stream), DEEPGEN_OK);
  ASSERT_EQ(hipStreamEndCapture(stream, &graph), 0);
  EXPECT_EQ(fake_hip::capture_mode(), 0) << "put back";
  EXPECT_TRUE(launches().empty()) << "captured, not run";
  ASSERT_EQ(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0), 0);
  f.args.a = at(0xa0000); // the graph has its own copy
  for (int i = 0; i < 2; ++i) ASSERT_EQ(hipGraphLaunch(executable, stream), 0);
  ASSERT_EQ(hipStreamSynchronize(stream), 0);
  ASSERT_EQ(launches().size(), 4u);
  for (size_t i = 0; i < 4; ++i)
    EXPECT_EQ(as<uint64_t>(launches()[i].parameters[0]), i % 2 ? 0x90000u : 0x10000u);
  hipGraphExecDestroy(executable), hipGraphDestroy(graph), hipStreamDestroy(stream);
}

TEST_F(HipLaunch, NeitherAllocatesNorSynchronises) {
  Function f({kernel("k")});
  ASSERT_EQ(f.prepare(), DEEPGEN_OK);
  EXPECT_EQ(calls("hipModuleLoadData"), 1) << "prepare() loads";
  const std::map<std::string, int> before = fake_hip::state().calls;
  ASSERT_EQ(f.launch(), DEEPGEN_OK);
  std::map<std::string, int> made;
  for (const auto& [name, count] : fake_hip::state().calls)
    if (const int more = count - (before.count(name) ? before.at(name) : 0)) made[name] = more;
  EXPECT_EQ(made, (std::map<std::string, int>{{"hipGetDevice", 1}, {"hipModuleLaunchKernel", 1}}));
}

#if COUNTS_ALLOCATIONS
TEST_F(HipLaunch, NoAllocationOfItsOwn) {
  Function f({kernel("k")});
  ASSERT_EQ(f.prepare(), DEEPGEN_OK);
  fake_hip::state().recording = false; // which allocates
  const long before = allocations;
  for (int i = 0; i < 100; ++i) EXPECT_EQ(f.launch(), DEEPGEN_OK);
  EXPECT_EQ(allocations, before);
  void* volatile kept = malloc(1);
  free(kept);
  EXPECT_GT(allocations, before) << "the counter counts";
}
#endif

/// What a hook was given: the simulated device stands there.
struct Seen {
  std::string device, kernel, code;
  uint32_t grid = 0, block = 0;
  size_t kernarg_bytes = 0;
} seen;
int answer = 0;
int remember(const fake_hip_launch* launch) {
  seen = {launch->device,
          launch->kernel,
          std::string(static_cast<const char*>(launch->code), launch->code_bytes),
          launch->grid[0],
          launch->block[0],
          launch->kernarg_bytes};
  void* begin = nullptr;
  size_t bytes = 0;
  uint64_t address = 0;
  std::memcpy(&address, launch->kernarg, sizeof address);
  auto* word = reinterpret_cast<uint32_t*>(address);
  if (!launch->allocation_of(word + 1, &begin, &bytes) || begin != word || bytes != 100) return 700;
  if (launch->allocation_of(word + 25, &begin, &bytes)) return 700;
  *word += 1;
  return answer;
}

TEST_F(HipLaunch, AHookRunsTheKernel) {
  Function f({kernel("k")});
  void* memory = nullptr;
  ASSERT_EQ(hipMalloc(&memory, 100), 0);
  *static_cast<uint32_t*>(memory) = 41;
  f.args.a = memory;
  fake_hip::state().hook = remember, answer = 0;
  ASSERT_EQ(f.launch(), DEEPGEN_OK);
  EXPECT_EQ(*static_cast<uint32_t*>(memory), 42u);
  EXPECT_EQ(seen.device, "gfx942:sramecc+:xnack-");
  EXPECT_EQ(seen.kernel, "deepgen_kernel");
  EXPECT_EQ(seen.grid, 4u);
  EXPECT_EQ(seen.block, 128u);
  EXPECT_EQ(seen.kernarg_bytes, 8u);
  EXPECT_EQ(seen.code, kernel("k").cubin);
  answer = 719;
  EXPECT_EQ(f.launch(), DEEPGEN_ERROR_DRIVER);
  EXPECT_EQ(hipFree(memory), 0);
  EXPECT_EQ(fake_hip::allocated_bytes(), 0u);
}

/// The fake library reads what LLVM and lld write.
TEST_F(HipLaunch, ALinkedCodeObject) {
  if (deepgen::paths::linked_code_object == std::string("none"))
    GTEST_SKIP() << "this build has no LLVM with a linker";
  std::ifstream file(deepgen::paths::linked_code_object, std::ios::binary);
  const std::string bytes((std::istreambuf_iterator<char>(file)), {});
  ASSERT_EQ(fake_hip::code_object_bytes(bytes.data()), bytes.size());
  const fake_hip::CodeObject object = fake_hip::parse_code_object(bytes.data(), bytes.size());
  EXPECT_EQ(object.target, "gfx942:xnack-");
  EXPECT_EQ(object.version, 4);
  const fake_hip::KernelInfo* info = object.find("deepgen_kernel");
  ASSERT_TRUE(info);
  std::vector<std::array<uint32_t, 2>> layout;
  for (const fake_hip::KernelArgument& a : info->arguments) layout.push_back({a.offset, a.size});
  EXPECT_EQ(layout, (std::vector<std::array<uint32_t, 2>>{{0, 8}, {8, 8}, {16, 4}, {24, 8}}));
  EXPECT_EQ(info->most_threads, 256u);
  EXPECT_EQ(info->group_bytes, 1024u);
  KernelText k = kernel("k", "gfx942:xnack-");
  k.cubin = bytes, k.args = {DEEPGEN_ARG_D, DEEPGEN_ARG_LDB, DEEPGEN_ARG_ALPHA, DEEPGEN_ARG_A};
  Function f({k});
  f.args.alpha = 2.5;
  ASSERT_EQ(f.launch(), DEEPGEN_OK);
  EXPECT_EQ(as<float>(launches().back().kernarg.substr(16, 4)), 2.5f);
  EXPECT_EQ(as<uint64_t>(launches().back().kernarg.substr(24, 8)), 0x10000u);
  k.launches[0].block[0] = 512;
  Function large({k});
  EXPECT_EQ(large.launch(), DEEPGEN_ERROR_DRIVER);
  k.launches[0].block[0] = 64, k.launches[0].shared = 64 << 10;
  Function fat({k});
  EXPECT_EQ(fat.launch(), DEEPGEN_ERROR_DRIVER);
  EXPECT_EQ(fake_hip::state().complaints,
            (std::vector<std::string>{"deepgen_kernel: 512 threads, more than .max_flat_workgroup_size",
                                      "deepgen_kernel: more LDS than a workgroup has"}));
}

TEST(CodeObject, WhatIsDamagedIsRefused) {
  const std::string good = code_object("gfx90a:sramecc-:xnack+", {"one", "two"}, {8, 4});
  const auto parse = [](const std::string& bytes) {
    return fake_hip::parse_code_object(bytes.data(), bytes.size());
  };
  EXPECT_EQ(parse(good).target, "gfx90a:sramecc-:xnack+");
  EXPECT_EQ(parse(good).kernels.size(), 2u);
  EXPECT_EQ(fake_hip::code_object_bytes(good.data()), good.size());
  for (size_t length = 0; length < good.size(); length += 7)
    EXPECT_THROW(parse(good.substr(0, length)), std::runtime_error);
  std::string other = good;
  other[48] ^= 1; // the processor in e_flags
  EXPECT_THROW(parse(other), std::runtime_error);
}

} // namespace
