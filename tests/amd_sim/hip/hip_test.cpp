// The whole way of a kernel for an AMD GPU without one: compiled, verified by deepgen-measure's own code and
// called through the runtime, each through HIP's interface with the fake library below it and the simulated
// device below that.
#include "fake_hip.h"

#include "base/kernel/device.h"
#include "base/problem/signature.h"
#include "generator/codegen/compile.h"
#include "generator/embed/operand_table.h"
#include "generator/space/space.h"
#include "measure/devices/cuda_devices.h"
#include "measure/gpu/cuda_verify_all.h"
#include "runtime/include/deepgen/kernel_abi.h"
#include "runtime/include/deepgen/runtime.h"
#include "tests/amd_sim/hip/hip_hook.h"
#include "tests/paths.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>

extern "C" int hipMalloc(void**, size_t);
extern "C" int hipFree(void*);

namespace deepgen::amd_sim {
namespace {

struct Row {
  const char *arch, *target, *problem;
};

class ThroughHip : public ::testing::Test {
protected:
  void SetUp() override {
    setenv("DEEPGEN_HIP_DRIVER", paths::fake_hip, 1);
    cuda::use(cuda::Platform::hip);
  }
  void TearDown() override { cuda::use(cuda::Platform::cuda); }

  static void attach(const std::string& target) {
    fake_hip::Device d;
    d.target = target;
    fake_hip::reset({d});
    fake_hip::state().hook = run_on_simulator;
  }

  /// The default config with its awkward and fallback kernels, whose IR the simulator knows from here on.
  static KernelFile compile(const Problem& p, const std::string& arch) {
    const KernelFile file =
        compile_candidate(p, arch, Space(p, arch, generic_gpu(arch)).default_choice(), true, true, false);
    for (const Kernel& k : file.kernels) know(k.code, dump_stage(k.problem, arch, k.choice, "optimized"));
    return file;
  }

  static cuda::VerifyOptions options() {
    cuda::VerifyOptions o;
    o.uuid = cuda::devices(cuda::Platform::hip).at(0).uuid, o.call_seconds = 60;
    return o;
  }
  static Verdict verify(const KernelFile& file) {
    Verdict verdict{"not verified", "", 0};
    cuda::verify_files({&file}, options(), [&](size_t, const Verdict& v) { verdict = v; });
    return verdict;
  }
};

TEST_F(ThroughHip, KernelsAreVerified) {
  for (const Row& row :
       {Row{"gfx942", "gfx942:sramecc+:xnack-",
            "gemm m=64 n=96 k=40 batch=2 a=f16 b=f16 d=f16 acc=f32 layout=nt epilogue=bias+relu align=2"},
        Row{"gfx906", "gfx906:sramecc+:xnack-",
            "gemm m=33 n=40 k=20 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nn epilogue=none align=4"},
        Row{"gfx942", "gfx942:sramecc+:xnack-",
            "gemm m=30 n=24 k=12 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nt groups=2 gate=silu "
            "epilogue=bias align=4"},
        Row{"gfx1100", "gfx1100",
            "gemm m=40 n=33 k=24 batch=1 a=bf16 b=bf16 d=f32 acc=f32 layout=tn epilogue=none align=2"}}) {
    attach(row.target);
    const KernelFile file = compile(Gemm::parse(row.problem), row.arch);
    ASSERT_EQ(file.status, "ok") << row.arch << ": " << file.detail;
    const Verdict v = verify(file);
    EXPECT_EQ(v.status, "ok") << row.arch << ", " << file.choice.text() << ": " << v.detail;
    EXPECT_TRUE(fake_hip::state().complaints.empty());
  }
}

TEST_F(ThroughHip, RowsOfBatchInvariantKernelsAreCompared) {
  attach("gfx942:sramecc+:xnack-");
  const Gemm p = Gemm::parse("gemm m=1..40 n=32 k=48 batch=1 a=f16 b=f16 d=f32 acc=f32 layout=nt "
                             "epilogue=bias+residual invariant=rows align=2");
  const KernelFile file = compile(p, "gfx942");
  ASSERT_EQ(file.status, "ok") << file.detail;
  const Verdict v = verify(file);
  EXPECT_EQ(v.status, "ok") << v.detail;
  EXPECT_EQ(v.row_bits.size(), 32u);
  EXPECT_EQ(verify(file).row_bits, v.row_bits);
  // As if a kernel that adds up otherwise said that it has the first one's order.
  KernelFile two = file;
  const std::string split = "simt wide=0 bm=32 bn=32 bk=8 tm=2 tn=4 stages=2 blocks=1 splits=3 group=1";
  const KernelFile other =
      compile_candidate(p, "gfx942", {"simt", Config::parse(split.substr(5))}, false, false, false);
  ASSERT_EQ(other.status, "ok") << other.detail;
  Kernel liar = *other.find("main");
  know(liar.code, dump_stage(p, "gfx942", liar.choice, "optimized"));
  liar.sum_order = file.find("main")->sum_order;
  two.kernels.push_back(liar);
  const Verdict found = verify(two);
  EXPECT_EQ(found.status, "varies") << found.detail;
  EXPECT_NE(found.detail.find("which adds up in the same order"), std::string::npos) << found.detail;
}

TEST_F(ThroughHip, AWrongKernelIsFound) {
  attach("gfx942:sramecc+:xnack-");
  const Gemm p =
      Gemm::parse("gemm m=32 n=32 k=32 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nt epilogue=relu align=4");
  const KernelFile file = compile(p, "gfx942");
  ASSERT_EQ(file.status, "ok") << file.detail;
  // As if its code forgot the step of the epilogue.
  Gemm other = p;
  other.epilogue.clear();
  const Kernel& main = *file.find("main");
  know(main.code, dump_stage(other, "gfx942", main.choice, "optimized"));
  const Verdict v = verify(file);
  EXPECT_EQ(v.status, "wrong") << v.detail;
}

TEST_F(ThroughHip, GroupsThatAreMixedUpAreFound) {
  attach("gfx942:sramecc+:xnack-");
  const std::string grouped =
      "gemm m=40 n=32 k=16 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nt groups=3 epilogue=none align=4";
  const KernelFile file = compile(Gemm::parse(grouped), "gfx942");
  ASSERT_EQ(file.status, "ok") << file.detail;
  // As if its code knew of two groups alone.
  const Kernel& main = *file.find("main");
  Gemm fewer = main.problem.gemm();
  fewer.groups = 2;
  know(main.code, dump_stage(fewer, "gfx942", main.choice, "optimized"));
  const Verdict v = verify(file);
  EXPECT_EQ(v.status, "wrong") << v.detail;
  EXPECT_NE(v.detail.find("of group 2"), std::string::npos) << v.detail;
}

/// A function with one kernel, as a generated library has it.
struct Linked {
  explicit Linked(const Kernel& k)
      : config(k.choice.text()), key(k.problem.key()), operands(operand_table(k.problem)) {
    static const char* const names[] = {DEEPGEN_ARG_NAMES};
    for (const std::string& name : k.args)
      args.push_back(uint8_t(std::find(std::begin(names), std::end(names), name) - std::begin(names)));
    rules.resize(k.launches.size());
    for (size_t l = 0; l < k.launches.size(); ++l) add(k.launches[l], rules[l]);
    code = {k.target.c_str(), k.code.data(), k.code.size(), nullptr, &state};
    kernel.arch = k.target.c_str(), kernel.config = config.c_str(), kernel.args = args.data();
    kernel.arg_count = uint32_t(args.size());
    kernel.workspace = size_t(k.workspace), kernel.gpu = &code;
    for (const Operand& x : signature(k.problem)) requirements.push_back({uint32_t(k.align_of(x)), 0});
    kernel.requirements = requirements.data();
    kernel.launches = launches.data(), kernel.launch_count = uint32_t(launches.size());
    function.name = "test", function.problem = key.c_str();
    function.operands = operands.data(), function.operand_count = uint32_t(operands.size());
    function.kernels = &kernel, function.kernel_count = 1, function.devices = &choices;
  }
  Linked(const Linked&) = delete;

  deepgen_function function{};

private:
  void add(const Launch& l, std::array<deepgen_size_rule, 3>& of_grid) {
    deepgen_launch x{};
    x.entry = l.entry.c_str(), x.shared = uint32_t(l.shared);
    x.flags = l.persistent ? DEEPGEN_LAUNCH_PERSISTENT : 0;
    for (size_t i = 0; i < 3; ++i) {
      x.grid[i] = uint32_t(l.grid[i]), x.block[i] = uint32_t(l.block[i]),
      x.cluster[i] = uint32_t(l.cluster[i]);
      of_grid[i].factor = l.grid_rules[i].exists() ? l.grid_rules[i].factor : 0;
      std::copy(l.grid_rules[i].steps.begin(), l.grid_rules[i].steps.end(), of_grid[i].steps);
    }
    x.grid_rules = of_grid.data();
    launches.push_back(x);
  }

  const std::string config, key;
  const std::vector<deepgen_operand> operands;
  std::vector<uint8_t> args;
  std::vector<std::array<deepgen_size_rule, 3>> rules;
  std::vector<deepgen_launch> launches;
  std::vector<deepgen_requirement> requirements;
  void* volatile state = nullptr;
  void* volatile choices = nullptr;
  deepgen_gpu_code code;
  deepgen_kernel kernel{};
};

TEST_F(ThroughHip, TheRuntimeCallsIt) {
  attach("gfx942:sramecc+:xnack-");
  const Gemm p =
      Gemm::parse("gemm m=24 n=40 k=16 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nn epilogue=none align=4");
  const KernelFile file = compile(p, "gfx942");
  ASSERT_EQ(file.status, "ok") << file.detail;
  const Kernel& k = *file.find("main");
  const Linked linked(k);
  const deepgen_function& f = linked.function;
  const std::string config = k.choice.text();

  struct Matrix {
    float* data = nullptr;
    explicit Matrix(int64_t elements) {
      hipMalloc(reinterpret_cast<void**>(&data), size_t(elements) * sizeof(float));
    }
    ~Matrix() { hipFree(data); }
  } a(p.m * p.k), b(p.k * p.n), d(p.m * p.n), workspace(k.workspace / 4 + 1);
  for (int64_t i = 0; i < p.m * p.k; ++i) a.data[i] = float(i % 7 - 3);
  for (int64_t i = 0; i < p.k * p.n; ++i) b.data[i] = float(i % 5 - 2);
  deepgen_gemm_args call;
  call.a = a.data, call.b = b.data, call.d = d.data, call.alpha = 2;
  call.workspace = workspace.data, call.workspace_bytes = size_t(k.workspace);
  ASSERT_EQ(deepgen_launch_gemm(&f, &call, nullptr), DEEPGEN_OK);
  EXPECT_STREQ(deepgen_launch_config(&f), config.c_str());
  for (int64_t i = 0; i < p.m; ++i)
    for (int64_t j = 0; j < p.n; ++j) {
      float sum = 0; // whole numbers: exact
      for (int64_t l = 0; l < p.k; ++l) sum += a.data[i * p.k + l] * b.data[l * p.n + j];
      ASSERT_EQ(d.data[i * p.n + j], 2 * sum) << i << ", " << j;
    }
}

/// With tables that kernels read, parts that a second launch adds up, and the third number of a block.
TEST_F(ThroughHip, AttentionIsVerified) {
  for (const Row& row :
       {Row{"gfx942", "gfx942:sramecc+:xnack-",
            "attention heads=4 kv_heads=2 head_dim=40 value_dim=32 q=bf16 kv=bf16 out=f32 mask=causal "
            "queries=40 keys=90 options=varlen+lse+sink at_batch=1 at_queries=40 at_keys=90"},
        Row{"gfx90a", "gfx90a:sramecc+:xnack-",
            "attention heads=4 kv_heads=1 head_dim=64 value_dim=64 q=f16 kv=f16 out=f16 mask=none queries=4 "
            "keys=200 options=lse page=16 splits=4 at_batch=2 at_queries=1 at_keys=200"}}) {
    attach(row.target);
    const KernelFile file = compile(Problem::parse(row.problem), row.arch);
    ASSERT_EQ(file.status, "ok") << row.arch << ": " << file.detail;
    EXPECT_EQ(file.choice.template_name, "mfma_attention");
    const Verdict v = verify(file);
    EXPECT_EQ(v.status, "ok") << row.arch << ", " << file.choice.text() << ": " << v.detail;
    EXPECT_TRUE(fake_hip::state().complaints.empty());
    // As if its code hid no key, or had no second launch's parts.
    const Kernel& main = *file.find("main");
    Attention other = main.problem.attention();
    other.mask = other.mask == AttentionMask::none ? AttentionMask::causal : AttentionMask::none;
    know(main.code, dump_stage(other, row.arch, main.choice, "optimized"));
    EXPECT_EQ(verify(file).status, "wrong") << row.arch;
  }
}

/// Scores are all 0, so that out is the mean of the values that a query sees. Two entries, and two launches.
TEST_F(ThroughHip, TheRuntimeCallsAttention) {
  attach("gfx942:sramecc+:xnack-");
  const Attention p = Attention::parse(
      "attention heads=2 kv_heads=1 head_dim=8 value_dim=4 q=bf16 kv=bf16 out=f32 mask=causal queries=9 "
      "keys=100 options=none splits=2 at_batch=1 at_queries=9 at_keys=100");
  const KernelFile file = compile(p, "gfx942");
  ASSERT_EQ(file.status, "ok") << file.detail;
  const Kernel& k = *file.find("main");
  ASSERT_EQ(k.launches.size(), 2u);
  Linked linked(k);
  linked.function.op = DEEPGEN_OP_ATTENTION;
  const auto sizes = size_ranges(Problem(p));
  std::copy(sizes.begin(), sizes.end(), linked.function.sizes);

  constexpr int64_t batch = 2, queries = 7, keys = 70;
  struct Bytes {
    void* data = nullptr;
    explicit Bytes(int64_t count) { hipMalloc(&data, size_t(count)), std::memset(data, 0, size_t(count)); }
    ~Bytes() { hipFree(data); }
  } q(batch * queries * 16 * 2), key(batch * keys * 8 * 2), value(batch * keys * 4 * 2),
      out(batch * queries * 8 * 4), workspace(k.workspace);
  for (int64_t i = 0; i < batch * keys * 4; ++i) {
    const float whole = float(i / 4 % keys + i % 4); // exact in bf16
    std::memcpy(static_cast<char*>(value.data) + 2 * i, reinterpret_cast<const char*>(&whole) + 2, 2);
  }
  deepgen_attention_args call;
  call.q = q.data, call.key = key.data, call.value = value.data, call.out = out.data;
  call.batch = batch, call.max_queries = queries, call.max_keys = keys;
  call.workspace = workspace.data, call.workspace_bytes = size_t(k.workspace);
  ASSERT_EQ(deepgen_launch_attention(&linked.function, &call, nullptr), DEEPGEN_OK);
  for (int64_t i = 0; i < batch * queries * 8; ++i) {
    const int64_t seen = i / 8 % queries + keys - queries + 1;
    const float mean = float(seen - 1) / 2 + float(i % 4);
    ASSERT_NEAR(static_cast<const float*>(out.data)[i], mean, 1e-5F * mean) << i;
  }
}

} // namespace
} // namespace deepgen::amd_sim
