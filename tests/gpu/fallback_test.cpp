// cuBLASLt through the runtime on a real device: the algorithm that the measurement would take, in place of a
// kernel that does something else. A program of its own: it asks the library in workers, ahead of starting
// the driver. Skipped without a device or without cuBLASLt.
#include "base/search/vendor_call.h"
#include "measure/devices/cuda_driver.h"
#include "measure/vendor/gpu/cuda_vendor.h"
#include "tests/gpu/gpu_test.h"
#include "tests/gpu/runtime_kernels.h"
#include "tests/unit/runtime/cuda_test_function.h"

#include <cstring>
#include <memory>
#include <thread>

namespace deepgen::gpu_tests {
namespace {

using cuda_tests::CudaFunction;
using cuda_tests::KernelText;

Gemm problem(Type type, Layout layout, int64_t batch, std::vector<EpilogueOp> epilogue) {
  Gemm p;
  p.m = 96, p.n = 160, p.k = 64, p.batch = batch, p.a = p.b = p.d = type, p.layout = layout;
  p.epilogue = std::move(epilogue);
  complete(p);
  return p;
}

const std::vector<Gemm>& problems() {
  static const std::vector<Gemm> all = {
      problem(Type::bf16, Layout::nt, 1, {}),
      problem(Type::bf16, Layout::nn, 3, {}),
      problem(Type::f32, Layout::tn, 1, {}),
      problem(Type::f32, Layout::tt, 2, {}),
      problem(Type::bf16, Layout::nt, 1, {EpilogueOp::bias, EpilogueOp::relu}),
      problem(Type::bf16, Layout::nt, 1, {EpilogueOp::bias, EpilogueOp::residual, EpilogueOp::relu}),
  };
  return all;
}

/// Small whole numbers: every sum is exact, in bf16, too.
int value(size_t i, int salt) { return int((i * 7 + size_t(salt)) % 3) - 1; }

/// Whole numbers in device memory, as f32 or bf16.
class Numbers {
public:
  Numbers(size_t count, Type type, int salt)
      : type_(type), count_(count), memory_(count * size_t(size_of(type))) {
    std::vector<char> bytes(count * size_t(size_of(type)));
    for (size_t i = 0; i < count; ++i) {
      const float x = float(value(i, salt));
      uint32_t bits;
      std::memcpy(&bits, &x, sizeof bits);
      if (type == Type::bf16) bits >>= 16;
      std::memcpy(bytes.data() + i * size_t(size_of(type)), &bits, size_t(size_of(type)));
    }
    cuda::check(cuda::driver()->cuMemcpyHtoD(memory_.address(), bytes.data(), bytes.size()), "copying in");
    cuda::check(cuda::driver()->cuStreamSynchronize(nullptr), "copying in");
  }
  void* data() const { return reinterpret_cast<void*>(memory_.address()); }
  std::vector<float> read() const {
    std::vector<char> bytes(count_ * size_t(size_of(type_)));
    cuda::check(cuda::driver()->cuMemcpyDtoH(bytes.data(), memory_.address(), bytes.size()), "copying out");
    std::vector<float> values(count_);
    for (size_t i = 0; i < count_; ++i) {
      uint32_t bits = 0;
      std::memcpy(&bits, bytes.data() + i * size_t(size_of(type_)), size_t(size_of(type_)));
      if (type_ == Type::bf16) bits <<= 16;
      std::memcpy(&values[i], &bits, sizeof bits);
    }
    return values;
  }

private:
  Type type_;
  size_t count_;
  cuda::Memory memory_;
};

/// alpha A B + beta C and the epilogue, of the numbers above.
std::vector<float> expected(const Gemm& p, int alpha, int beta) {
  std::vector<float> d(size_t(p.batch * p.m * p.n));
  for (int64_t e = 0; e < p.batch; ++e)
    for (int64_t i = 0; i < p.m; ++i)
      for (int64_t j = 0; j < p.n; ++j) {
        int sum = 0;
        for (int64_t l = 0; l < p.k; ++l) {
          const int64_t a = e * p.m * p.k + (p.a_transposed() ? l * p.m + i : i * p.k + l);
          const int64_t b = e * p.k * p.n + (p.b_transposed() ? j * p.k + l : l * p.n + j);
          sum += value(size_t(a), 1) * value(size_t(b), 2);
        }
        const auto at = size_t((e * p.m + i) * p.n + j);
        int x = alpha * sum + beta * value(at, 3);
        for (const EpilogueOp op : p.epilogue) {
          if (op == EpilogueOp::bias) x += value(size_t(j), 4);
          if (op == EpilogueOp::residual) x += value(at, 5);
          if (op == EpilogueOp::relu) x = std::max(x, 0);
        }
        d[at] = float(x);
      }
  return d;
}

KernelText other_kernel() {
  KernelText k;
  k.config = "the kernel", k.arch = k.target = "sm_80", k.ptx = scale_ptx;
  k.args = {DEEPGEN_ARG_A, DEEPGEN_ARG_D, DEEPGEN_ARG_LDA, DEEPGEN_ARG_LDD, DEEPGEN_ARG_ALPHA};
  k.launches = {{"deepgen_kernel", {1, 1, 1}, {32, 1, 1}, {1, 1, 1}, 0, 0}};
  return k;
}

class GpuFallback : public GpuTest {
protected:
  static void SetUpTestSuite() {
    if (!device().present) return;
    for (const Gemm& p : problems()) vendors().push_back(cuda::find_vendor(p, device(), 1));
  }
  void SetUp() override {
    GpuTest::SetUp();
    if (IsSkipped()) return;
    if (vendors().front().algorithms.empty()) GTEST_SKIP() << vendors().front().why_not;
    context = std::make_unique<cuda::Context>(0);
  }
  static std::vector<cuda::Vendor>& vendors() {
    static std::vector<cuda::Vendor> all;
    return all;
  }
  deepgen_stream stream() const { return reinterpret_cast<deepgen_stream>(context->stream()); }

  std::unique_ptr<cuda::Context> context;
};

/// A problem's function with its operands, and an algorithm of the library's beside the kernel.
class Called : public CudaFunction {
public:
  Called(const Gemm& p, const cuda::Vendor& vendor, size_t algorithm)
      : CudaFunction({other_kernel()}, p), problem(p), a(size_t(p.batch * p.m * p.k), p.a, 1),
        b(size_t(p.batch * p.k * p.n), p.b, 2), c(size_t(p.batch * p.m * p.n), p.d, 3),
        bias(size_t(p.n), p.d, 4), residual(size_t(p.batch * p.m * p.n), p.d, 5),
        d(size_t(p.batch * p.m * p.n), p.d, 6), version_(vendor.name.substr(vendor.name.find(' ') + 1)),
        device_(GpuTest::device().name),
        workspace_(std::max<size_t>(vendor.algorithms.at(algorithm).workspace, 256)) {
    const cuda::Vendor::Algorithm& x = vendor.algorithms.at(algorithm);
    call.text = "the library", call.version = version_.c_str(), call.device = device_.c_str();
    call.library = DEEPGEN_LIBRARY_CUBLASLT, call.workspace = x.workspace;
    std::copy(x.bits.begin(), x.bits.end(), call.algorithm);
    call.flags = (p.a_transposed() ? DEEPGEN_VENDOR_A_TRANSPOSED : 0) |
                 (p.b_transposed() ? DEEPGEN_VENDOR_B_TRANSPOSED : 0) |
                 (p.has(EpilogueOp::bias) ? DEEPGEN_VENDOR_BIAS : 0) |
                 (p.has(EpilogueOp::residual) ? DEEPGEN_VENDOR_RESIDUAL : 0) |
                 (p.has(EpilogueOp::relu) ? DEEPGEN_VENDOR_RELU : 0);
    const_cast<deepgen_kernel*>(function().kernels)->vendor = &call;
    args.a = a.data(), args.b = b.data(), args.c = c.data(), args.d = d.data(), args.bias = bias.data();
    args.residual = residual.data();
    args.workspace = reinterpret_cast<void*>(workspace_.address()), args.workspace_bytes = workspace_.bytes();
  }
  std::string state() {
    const char* text = deepgen_launch_fallback(&function());
    return text ? text : "";
  }

  deepgen_vendor_call call{};
  const Gemm problem;
  Numbers a, b, c, bias, residual, d;

private:
  std::string version_, device_;
  cuda::Memory workspace_;
};

TEST_F(GpuFallback, EveryAlgorithmIsRight) {
  for (size_t i = 0; i < problems().size(); ++i) {
    const Gemm& p = problems()[i];
    ASSERT_FALSE(vendors()[i].plan.separate()) << p.key() << ": " << vendors()[i].plan.text();
    ASSERT_EQ(why_no_call(p, "sm_90a"), "");
    for (size_t algorithm = 0; algorithm < vendors()[i].algorithms.size(); ++algorithm) {
      Called f(p, vendors()[i], algorithm);
      ASSERT_EQ(std::string(f.config()), "the library") << f.state();
      ASSERT_EQ(f.launch(stream()), DEEPGEN_OK);
      context->synchronize();
      ASSERT_EQ(f.d.read(), expected(p, 1, 0)) << p.key() << ", algorithm " << algorithm;
      ASSERT_EQ(std::string(f.config()), "the library") << f.state();
    }
  }
}

TEST_F(GpuFallback, AlphaBetaAndInPlace) {
  for (const size_t i : {0, 1, 2, 3}) {
    Called f(problems()[i], vendors()[i], 0);
    f.args.alpha = 2, f.args.beta = -1;
    ASSERT_EQ(f.launch(stream()), DEEPGEN_OK);
    context->synchronize();
    EXPECT_EQ(f.d.read(), expected(f.problem, 2, -1)) << f.problem.key();
    f.args.d = f.c.data();
    ASSERT_EQ(f.launch(stream()), DEEPGEN_OK);
    context->synchronize();
    EXPECT_EQ(f.c.read(), expected(f.problem, 2, -1)) << f.problem.key();
    EXPECT_EQ(std::string(f.config()), "the library") << f.state();
  }
}

TEST_F(GpuFallback, FirstCallInsideACaptureThenReplays) {
  constexpr int kGlobalMode = 0;
  for (const size_t i : {0, 5}) {
    Called f(problems()[i], vendors()[i], 0);
    const cuda::Driver& d = *cuda::driver();
    cuda::check(d.cuStreamBeginCapture(context->stream(), kGlobalMode), "beginning a capture");
    const deepgen_status status = f.launch(stream());
    void *graph = nullptr, *executable = nullptr;
    cuda::check(d.cuStreamEndCapture(context->stream(), &graph), "ending the capture: a call broke it");
    ASSERT_EQ(status, DEEPGEN_OK);
    cuda::check(d.cuGraphInstantiate(&executable, graph, 0), "instantiating");
    for (int replay = 0; replay < 3; ++replay)
      cuda::check(d.cuGraphLaunch(executable, context->stream()), "replaying");
    context->synchronize();
    EXPECT_EQ(f.d.read(), expected(f.problem, 1, 0));
    EXPECT_EQ(std::string(f.config()), "the library") << f.state();
    d.cuGraphExecDestroy(executable), d.cuGraphDestroy(graph);
  }
}

TEST_F(GpuFallback, ThreadsWithTheirOwnBias) {
  Called f(problems()[4], vendors()[4], 0);
  ASSERT_EQ(f.prepare(), DEEPGEN_OK);
  constexpr int kThreads = 4;
  std::vector<std::unique_ptr<Numbers>> outputs, biases;
  for (int t = 0; t < kThreads; ++t) {
    outputs.push_back(std::make_unique<Numbers>(size_t(f.problem.m * f.problem.n), f.problem.d, 6));
    biases.push_back(std::make_unique<Numbers>(size_t(f.problem.n), f.problem.d, 4 + 3 * t)); // all alike
  }
  std::atomic<int> failed{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      const cuda::Context mine(0);
      deepgen_gemm_args args = f.args;
      args.d = outputs[size_t(t)]->data(), args.bias = biases[size_t(t)]->data();
      for (int i = 0; i < 50; ++i)
        failed += deepgen_launch_gemm(&f.function(), &args,
                                      reinterpret_cast<deepgen_stream>(mine.stream())) != DEEPGEN_OK;
      mine.synchronize();
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(failed, 0);
  for (const auto& output : outputs) EXPECT_EQ(output->read(), expected(f.problem, 1, 0));
}

} // namespace
} // namespace deepgen::gpu_tests
