// deepgen_launch_gemm() on a real device, with hand-written kernels. Skipped without one.
#include "measure/devices/cuda_driver.h"
#include "tests/gpu/runtime_kernels.h"
#include "tests/unit/runtime/cuda_test_function.h"

#include <gtest/gtest.h>

#include <atomic>
#include <latch>
#include <memory>
#include <thread>

namespace deepgen::gpu_tests {
namespace {

using cuda_tests::CudaFunction;
using cuda_tests::KernelText;

int device_count() {
  const cuda::Driver* d = cuda::driver();
  int count = 0;
  return d && d->cuInit(0) == 0 && d->cuDeviceGetCount(&count) == 0 ? count : 0;
}

/// f32 in device memory.
class Floats {
public:
  explicit Floats(const std::vector<float>& values) : memory_(values.size() * 4), count_(values.size()) {
    cuda::check(cuda::driver()->cuMemcpyHtoD(memory_.address(), values.data(), count_ * 4), "copying in");
    // The copy may return before its end, and the tests' streams do not wait for the default one.
    cuda::check(cuda::driver()->cuStreamSynchronize(nullptr), "copying in");
  }
  float* data() const { return reinterpret_cast<float*>(memory_.address()); }
  std::vector<float> read() const {
    std::vector<float> values(count_);
    cuda::check(cuda::driver()->cuMemcpyDtoH(values.data(), memory_.address(), count_ * 4), "copying out");
    return values;
  }

private:
  cuda::Memory memory_;
  size_t count_;
};

std::vector<float> ramp(size_t count) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = float(i);
  return values;
}

KernelText from_ptx(const char* ptx, const std::string& target, std::vector<uint8_t> args) {
  KernelText k;
  k.config = k.arch = k.target = target, k.ptx = ptx, k.args = std::move(args);
  return k;
}

KernelText scale_kernel() {
  KernelText k =
      from_ptx(scale_ptx, "sm_80",
               {DEEPGEN_ARG_A, DEEPGEN_ARG_D, DEEPGEN_ARG_LDA, DEEPGEN_ARG_LDD, DEEPGEN_ARG_ALPHA});
  k.launches = {{"deepgen_kernel", {16, 1, 1}, {32, 1, 1}, {1, 1, 1}, 0, 0}};
  return k;
}

/// m x n x k as f32, A as stored m x k.
void shape(CudaFunction& f, int64_t m, int64_t n, int64_t k) {
  Gemm p = f.operands.problem;
  p.m = m, p.n = n, p.k = k, p.a = p.b = p.d = Type::f32;
  f.set(p);
}

/// 16 x 32, of which every element of A is scaled.
class Scaling : public CudaFunction {
public:
  explicit Scaling(std::vector<KernelText> kernels = {scale_kernel()}) : CudaFunction(std::move(kernels)) {
    shape(*this, 16, 32, 32);
    args.a = args.b = a.data(), args.d = d.data();
  }
  std::vector<float> expected(float alpha) const {
    std::vector<float> values = ramp(16 * 32);
    for (float& x : values) x *= alpha;
    return values;
  }
  Floats a{ramp(16 * 32)}, d{std::vector<float>(16 * 32, -1)};
};

deepgen_stream as_stream(cuda::Stream s) { return reinterpret_cast<deepgen_stream>(s); }

class GpuRuntime : public ::testing::Test {
protected:
  void SetUp() override {
    if (device_count() == 0) GTEST_SKIP() << "no NVIDIA GPU here";
    context = std::make_unique<cuda::Context>(0);
  }
  bool has_clusters() const { return context->attribute(cuda::Attribute::capability_major) >= 9; }
  deepgen_stream stream() const { return as_stream(context->stream()); }

  std::unique_ptr<cuda::Context> context;
};

std::string last_error() {
  const char* text = nullptr;
  const int code = deepgen_last_driver_error(&text);
  return std::to_string(code) + " " + text;
}

TEST_F(GpuRuntime, PassesArguments) {
  Scaling f;
  f.args.alpha = 2.5;
  ASSERT_EQ(f.launch(stream()), DEEPGEN_OK) << last_error();
  context->synchronize();
  EXPECT_EQ(f.d.read(), f.expected(2.5f));
  Floats wide(std::vector<float>(16 * 40, -1));
  f.args.d = wide.data(), f.args.ldd = 40;
  ASSERT_EQ(f.launch(stream()), DEEPGEN_OK) << last_error();
  context->synchronize();
  const std::vector<float> d = wide.read();
  for (size_t i = 0; i < d.size(); ++i) {
    const size_t dense = i / 40 * 32 + i % 40;
    ASSERT_EQ(d[i], i % 40 < 32 ? 2.5f * float(dense) : -1) << i;
  }
}

TEST_F(GpuRuntime, FirstCallInsideACaptureThenReplays) {
  constexpr int kGlobalMode = 0;
  Scaling f;
  f.args.alpha = 3;
  const cuda::Driver& d = *cuda::driver();
  cuda::check(d.cuStreamBeginCapture(context->stream(), kGlobalMode), "beginning a capture");
  const deepgen_status status = f.launch(stream());
  void *graph = nullptr, *executable = nullptr;
  cuda::check(d.cuStreamEndCapture(context->stream(), &graph), "ending the capture: a call broke it");
  ASSERT_EQ(status, DEEPGEN_OK) << last_error();
  context->synchronize();
  EXPECT_EQ(f.d.read()[1], -1) << "captured, not run";
  cuda::check(d.cuGraphInstantiate(&executable, graph, 0), "instantiating");
  for (int i = 0; i < 3; ++i) cuda::check(d.cuGraphLaunch(executable, context->stream()), "replaying");
  context->synchronize();
  EXPECT_EQ(f.d.read(), f.expected(3));
  d.cuGraphExecDestroy(executable), d.cuGraphDestroy(graph);
}

TEST_F(GpuRuntime, EightThreadsCallFirst) {
  for (int round = 0; round < 10; ++round) {
    Scaling f;
    std::vector<std::unique_ptr<Floats>> outputs;
    for (int t = 0; t < 8; ++t) outputs.push_back(std::make_unique<Floats>(std::vector<float>(16 * 32, -1)));
    std::latch start(8);
    std::atomic<int> failures{0};
    std::vector<std::thread> threads;
    for (size_t t = 0; t < 8; ++t)
      threads.emplace_back([&, t] {
        const cuda::Context own(0); // the same context, a stream of its own
        deepgen_gemm_args args = f.args;
        args.d = outputs[t]->data(), args.alpha = double(t);
        start.arrive_and_wait();
        for (int i = 0; i < 20; ++i)
          failures += deepgen_launch_gemm(&f.function(), &args, as_stream(own.stream())) != DEEPGEN_OK;
        own.synchronize();
      });
    for (std::thread& t : threads) t.join();
    ASSERT_EQ(failures, 0);
    for (size_t t = 0; t < 8; ++t) ASSERT_EQ(outputs[t]->read(), f.expected(float(t)));
  }
}

TEST_F(GpuRuntime, TwoDevices) {
  if (device_count() < 2) GTEST_SKIP() << "one device here";
  const Scaling first; // its memory is device 0's
  Scaling f;
  ASSERT_EQ(f.launch(stream()), DEEPGEN_OK) << last_error();
  context->synchronize();
  EXPECT_EQ(f.d.read(), f.expected(1));
  const cuda::Context second(1);
  const Floats a(ramp(16 * 32)), d(std::vector<float>(16 * 32, -1));
  f.args.a = f.args.b = a.data(), f.args.d = d.data(), f.args.alpha = 4;
  ASSERT_EQ(f.launch(as_stream(second.stream())), DEEPGEN_OK) << last_error();
  second.synchronize();
  EXPECT_EQ(d.read(), f.expected(4));
}

TEST_F(GpuRuntime, CodeThatDoesNotLoadFallsThrough) {
  KernelText broken = scale_kernel(), too_new = scale_kernel(), text = scale_kernel();
  broken.cubin = "this is no cubin", broken.ptx = "nor is this PTX", broken.config = "broken";
  too_new.ptx = std::string(scale_ptx).replace(too_new.ptx.find("7.0"), 3, "99.0"),
  too_new.config = "too new";
  text.cubin = "this is no cubin", text.config = "good PTX";
  Scaling f({broken, too_new, text});
  ASSERT_EQ(f.launch(stream()), DEEPGEN_OK) << last_error();
  context->synchronize();
  EXPECT_STREQ(f.config(), "good PTX");
  EXPECT_EQ(f.d.read(), f.expected(1));
  Scaling hopeless({broken, too_new});
  EXPECT_EQ(hopeless.launch(stream()), DEEPGEN_ERROR_DRIVER);
  EXPECT_GT(last_error().size(), 6u) << last_error();
}

TEST_F(GpuRuntime, NoContext) {
  Scaling f;
  std::thread([&] { EXPECT_EQ(f.launch(), DEEPGEN_ERROR_NO_CONTEXT); }).join();
}

TEST_F(GpuRuntime, PersistentGridsFitAndSharedMemoryIsRaised) {
  KernelText k = from_ptx(grid_ptx, "sm_80", {DEEPGEN_ARG_D});
  k.launches = {
      {"deepgen_kernel", {1u << 20, 1, 1}, {128, 1, 1}, {1, 1, 1}, 90 << 10, DEEPGEN_LAUNCH_PERSISTENT}};
  Scaling f({k});
  ASSERT_EQ(f.launch(stream()), DEEPGEN_OK) << last_error();
  context->synchronize();
  const auto blocks = int(f.d.read()[0]);
  EXPECT_EQ(blocks % context->multiprocessors(), 0) << blocks;
  EXPECT_LE(blocks, 2 * context->multiprocessors()) << "90 KiB each";
  EXPECT_GE(blocks, context->multiprocessors());
}

TEST_F(GpuRuntime, Clusters) {
  if (!has_clusters()) GTEST_SKIP() << "needs compute capability 9.0";
  for (uint32_t size : {2u, 8u, 16u}) { // 16: not portable
    KernelText k = from_ptx(cluster_ptx, "sm_90", {DEEPGEN_ARG_D});
    k.launches = {{"deepgen_kernel", {32, 1, 1}, {32, 1, 1}, {size, 1, 1}, 0, 0}};
    Scaling f({k});
    const deepgen_status status = f.launch(stream());
    if (size == 16 && status == DEEPGEN_ERROR_DRIVER) continue; // does not fit on every device
    ASSERT_EQ(status, DEEPGEN_OK) << last_error();
    context->synchronize();
    const std::vector<float> d = f.d.read();
    for (uint32_t i = 0; i < 32; ++i) ASSERT_EQ(d[i], float(i % size)) << size;
  }
}

/// Also what the fake driver cannot know: that a stride of 0 can be encoded.
TEST_F(GpuRuntime, TensorMapClusterAndDependentLaunch) {
  if (!has_clusters()) GTEST_SKIP() << "needs compute capability 9.0";
  constexpr size_t kM = 16, kN = 64, kK = 40, kBatch = 2;
  KernelText k = from_ptx(tensor_map_ptx, "sm_90",
                          {DEEPGEN_ARG_MAP_A, DEEPGEN_ARG_D, DEEPGEN_ARG_LDD, DEEPGEN_ARG_STRIDE_D});
  k.align_a = 16;
  k.maps = {{DEEPGEN_ARG_A, 32, 8, 128, 256, 0, 0, 0, 0}};
  k.launches = {{"deepgen_kernel", {2, 2, kBatch}, {256, 1, 1}, {2, 1, 1}, 0, 0},
                {"deepgen_reduce", {2, 2, kBatch}, {256, 1, 1}, {1, 1, 1}, 0, DEEPGEN_LAUNCH_DEPENDENT}};
  CudaFunction f({k}, kBatch);
  shape(f, kM, kN, kK);
  const Floats a(ramp(kM * kK * kBatch)), d(std::vector<float>(kM * kN * kBatch, -1));
  f.args.a = f.args.b = a.data(), f.args.d = d.data();
  for (const int64_t stride : {int64_t(0), int64_t(DEEPGEN_BROADCAST)}) {
    f.args.stride_a = stride;
    for (int call = 0; call < 20; ++call) ASSERT_EQ(f.launch(stream()), DEEPGEN_OK) << last_error();
    context->synchronize();
    const std::vector<float> values = d.read();
    for (size_t z = 0; z < kBatch; ++z)
      for (size_t i = 0; i < kM; ++i)
        for (size_t j = 0; j < kN; ++j) {
          const size_t entry = stride == 0 ? z : 0;
          const float element = j < kK ? float((entry * kM + i) * kK + j) : 0; // zeros beyond the matrix
          const size_t tile = j / 32;
          ASSERT_EQ(values[(z * kM + i) * kN + j], element + float(tile * 1000) + 0.5f)
              << "stride " << stride << ", entry " << z << ", row " << i << ", column " << j;
        }
  }
}

} // namespace
} // namespace deepgen::gpu_tests
