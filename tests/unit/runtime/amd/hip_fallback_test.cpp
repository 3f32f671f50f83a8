// hipBLASLt in place of a kernel: a library that multiplies on the host, so that the numbers tell what it was
// asked for; when the kernel runs all the same, and what is said of that.
#include "hip_devices.h"
#include "tests/paths.h"
#include "tests/unit/runtime/vendor_call_function.h"

#include <cmath>
#include <cstring>
#include <gtest/gtest.h>

extern "C" {
int hipMalloc(void**, size_t);
int hipFree(void*);
int hipStreamCreateWithFlags(void**, unsigned);
int hipStreamDestroy(void*);
int hipStreamBeginCapture(void*, int);
int hipStreamEndCapture(void*, void**);
int hipGraphInstantiate(void**, void*, void*, char*, size_t);
int hipGraphLaunch(void*, void*);
int hipGraphExecDestroy(void*);
int hipGraphDestroy(void*);
}

namespace {

using namespace deepgen::hip_tests;
using deepgen::EpilogueOp;
using deepgen::cuda_tests::VendorCallFunction;

constexpr size_t kWorkspace = 4096;
constexpr uint64_t kAllowed = 64 << 20; ///< of workspace, when the algorithm was found
constexpr int kFirst = 100, kNeedsWorkspace = 102, kFails = 103; ///< algorithms of the fake library

uint16_t to_bf16(double x) {
  const auto single = float(x);
  uint32_t bits;
  std::memcpy(&bits, &single, sizeof bits);
  return uint16_t(bits >> 16); // small integers have no more digits
}
double from_bf16(uint16_t x) {
  const uint32_t bits = uint32_t(x) << 16;
  float single;
  std::memcpy(&single, &bits, sizeof single);
  return double(single);
}

/// bf16 in the fake device's memory.
class Values {
public:
  explicit Values(size_t count, int step = 0) : count_(count) {
    EXPECT_EQ(hipMalloc(&memory_, count * sizeof(uint16_t)), 0);
    for (size_t i = 0; i < count; ++i) words()[i] = to_bf16(step ? int(i * size_t(step) % 5) - 2 : 0);
  }
  ~Values() { hipFree(memory_); }
  Values(const Values&) = delete;
  Values& operator=(const Values&) = delete;
  void* data() const { return memory_; }
  size_t count() const { return count_; }
  uint16_t* words() const { return static_cast<uint16_t*>(memory_); }
  double operator[](size_t i) const { return from_bf16(words()[i]); }

private:
  void* memory_ = nullptr;
  size_t count_;
};

class HipFallback : public ::testing::Test {
protected:
  static constexpr size_t m = 64, n = 128, k = 32, batch = 2;

  void SetUp() override {
    setenv("DEEPGEN_HIP_DRIVER", deepgen::paths::fake_hip, 1);
    fake_hip::reset({mi300x(), mi325x()});
    hipSetDevice(0);
    call.text = "hipblaslt 1.2.3", call.version = "1.2.3", call.device = "AMD Instinct MI300X";
    call.library = DEEPGEN_LIBRARY_HIPBLASLT, call.flags = DEEPGEN_VENDOR_B_TRANSPOSED;
    choose(kFirst);
  }
  void TearDown() override { EXPECT_EQ(fake_hip::state().complaints, std::vector<std::string>()); }

  void choose(int algorithm) {
    call.algorithm[0] = uint64_t(algorithm), call.algorithm[2] = kAllowed;
    call.workspace = algorithm == kNeedsWorkspace ? kWorkspace : 0;
  }

  struct Made : VendorCallFunction {
    Made(const deepgen_vendor_call& call, std::vector<EpilogueOp> epilogue)
        : VendorCallFunction(call, kernel("tuned"), kernel("any"), std::move(epilogue), batch, kWorkspace) {
      args.a = a.data(), args.b = b.data(), args.d = d.data();
      args.bias = bias.data(), args.residual = residual.data();
      args.workspace = space.data(), args.workspace_bytes = kWorkspace;
    }
    Values a{batch * m * k, 3}, b{batch * n * k, 7}, d{batch * m * n}, bias{n, 2},
        residual{batch * m * n, 11}, space{kWorkspace / sizeof(uint16_t)};
  };
  Made make(std::vector<EpilogueOp> epilogue = {}) { return {call, std::move(epilogue)}; }

  /// D is what `finish` makes of each sum and its place.
  template <typename Finish>
  static void expect_product(const Made& f, Finish finish) {
    size_t wrong = 0;
    for (size_t e = 0; e < batch; ++e)
      for (size_t i = 0; i < m; ++i)
        for (size_t j = 0; j < n; ++j) {
          double sum = 0;
          for (size_t l = 0; l < k; ++l) sum += f.a[(e * m + i) * k + l] * f.b[(e * n + j) * k + l];
          const size_t at = (e * m + i) * n + j;
          wrong += std::abs(f.d[at] - finish(sum, at, j)) > std::abs(f.d[at]) / 64;
        }
    EXPECT_EQ(wrong, 0u);
  }
  static double plain(double sum, size_t, size_t) { return sum; }

  /// The kernel runs, and the words say why.
  static void expect_kernel(Made& f, const std::string& words) {
    f.expect_kernel(words);
    const int before = calls("hipblasLtMatmul");
    ASSERT_EQ(f.launch(), DEEPGEN_OK);
    EXPECT_EQ(launched(), "tuned");
    EXPECT_EQ(calls("hipblasLtMatmul"), before);
  }
  static size_t launches() { return fake_hip::state().launches.size(); }

  deepgen_vendor_call call{};
};

TEST_F(HipFallback, TheLibraryRuns) {
  choose(kNeedsWorkspace);
  Made f = make();
  EXPECT_EQ(std::string(f.config()), "hipblaslt 1.2.3");
  EXPECT_NE(f.state().find("the vendor's library runs"), std::string::npos);
  EXPECT_EQ(f.workspace(), kWorkspace) << "of both the larger one";
  ASSERT_EQ(f.launch(), DEEPGEN_OK);
  EXPECT_EQ(launches(), 0u);
  expect_product(f, plain);
  f.args.alpha = 2, f.args.beta = -1, f.args.c = f.residual.data();
  ASSERT_EQ(f.launch(), DEEPGEN_OK);
  expect_product(f, [&](double sum, size_t at, size_t) { return 2 * sum - f.residual[at]; });
  f.args.workspace_bytes = kWorkspace - 1;
  EXPECT_EQ(f.launch(), DEEPGEN_ERROR_WORKSPACE);
  EXPECT_EQ(launches(), 0u);
}

TEST_F(HipFallback, FusedEpilogues) {
  call.flags |= DEEPGEN_VENDOR_BIAS | DEEPGEN_VENDOR_RESIDUAL | DEEPGEN_VENDOR_RELU;
  Made f = make({EpilogueOp::bias, EpilogueOp::residual, EpilogueOp::relu});
  ASSERT_EQ(f.launch(), DEEPGEN_OK);
  EXPECT_EQ(launches(), 0u);
  expect_product(
      f, [&](double sum, size_t at, size_t j) { return std::max(0.0, sum + f.bias[j] + f.residual[at]); });
}

TEST_F(HipFallback, OperandsThatLieOtherwiseTakeTheKernel) {
  Made f = make();
  f.args.lda = 48;
  ASSERT_EQ(f.launch(), DEEPGEN_OK);
  f.args.lda = 0, f.args.stride_b = DEEPGEN_BROADCAST;
  ASSERT_EQ(f.launch(), DEEPGEN_OK);
  EXPECT_EQ(launches(), 2u);
  EXPECT_EQ(calls("hipblasLtMatmul"), 0);
}

TEST_F(HipFallback, AFirstCallIsCaptured) {
  Made f = make();
  void *stream = nullptr, *graph = nullptr, *executable = nullptr;
  ASSERT_EQ(hipStreamCreateWithFlags(&stream, 1), 0);
  ASSERT_EQ(hipStreamBeginCapture(stream, 0), 0);
  ASSERT_EQ(f.launch(stream), DEEPGEN_OK);
  ASSERT_EQ(hipStreamEndCapture(stream, &graph), 0);
  EXPECT_EQ(fake_hip::capture_mode(), 0) << "put back";
  EXPECT_EQ(f.d[0], 0) << "captured, not run";
  ASSERT_EQ(hipGraphInstantiate(&executable, graph, nullptr, nullptr, 0), 0);
  ASSERT_EQ(hipGraphLaunch(executable, stream), 0);
  expect_product(f, plain);
  hipGraphExecDestroy(executable), hipGraphDestroy(graph), hipStreamDestroy(stream);
}

TEST_F(HipFallback, AnotherDevice) {
  hipSetDevice(1); // an MI325X
  Made f = make();
  expect_kernel(f, "another device");
  hipSetDevice(0);
}

TEST_F(HipFallback, AnotherVersion) {
  for (const char* version : {"1.2.4", "1.3.3", "0.2.3", "1.2", "1.2.x", ""}) {
    call.version = version;
    Made f = make();
    expect_kernel(f, "another version");
  }
}

TEST_F(HipFallback, ForcedOff) {
  setenv("DEEPGEN_FALLBACK", "off", 1);
  Made f = make();
  expect_kernel(f, "DEEPGEN_FALLBACK is off");
  unsetenv("DEEPGEN_FALLBACK");
}

TEST_F(HipFallback, Missing) {
  // In a process that has not found the library yet.
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(
      {
        setenv("DEEPGEN_HIPBLASLT", "libhipblaslt-that-nobody-has.so", 1);
        Made f = make();
        expect_kernel(f, "is not here");
        std::_Exit(testing::Test::HasFailure() ? 1 : 0);
      },
      testing::ExitedWithCode(0), "");
}

TEST_F(HipFallback, AnAlgorithmThatTheLibraryDoesNotOfferIsRefused) {
  for (const int algorithm : {99, 104}) { // not in its list; in it, and of no use
    choose(algorithm);
    Made f = make();
    expect_kernel(f, "does not take the problem");
  }
}

TEST_F(HipFallback, RefusedBeforeTheFirstCall) {
  for (const char* function : {"hipblasLtMatmulDescCreate", "hipblasLtMatrixLayoutCreate",
                               "hipblasLtMatmulPreferenceCreate", "hipblasLtMatmulAlgoGetHeuristic"}) {
    fake_hip::state().results = {{function, 3}};
    const int made = calls("hipblasLtMatmulDescCreate") + calls("hipblasLtMatrixLayoutCreate"),
              gone = calls("hipblasLtMatmulDescDestroy") + calls("hipblasLtMatrixLayoutDestroy");
    Made f = make();
    expect_kernel(f, "does not take the problem");
    const int failed = std::string(function).find("Preference") == std::string::npos &&
                       std::string(function).find("Heuristic") == std::string::npos;
    EXPECT_EQ(calls("hipblasLtMatmulDescCreate") + calls("hipblasLtMatrixLayoutCreate") - made - failed,
              calls("hipblasLtMatmulDescDestroy") + calls("hipblasLtMatrixLayoutDestroy") - gone)
        << "all that was made is given back";
  }
}

TEST_F(HipFallback, AFailedCallRunsTheKernelFromThenOn) {
  choose(kFails);
  Made f = make();
  EXPECT_EQ(std::string(f.config()), "hipblaslt 1.2.3");
  ASSERT_EQ(f.launch(), DEEPGEN_OK);
  EXPECT_EQ(launched(), "tuned") << "in the same call";
  ASSERT_EQ(f.launch(), DEEPGEN_OK);
  EXPECT_EQ(launches(), 2u);
  EXPECT_EQ(calls("hipblasLtMatmul"), 1);
  EXPECT_EQ(std::string(f.config()), "tuned");
  EXPECT_NE(f.state().find("failed"), std::string::npos);
}

TEST_F(HipFallback, ACallThatFailsMidwayOverWhatItReadsIsAnError) {
  Made f = make();
  ASSERT_EQ(f.prepare(), DEEPGEN_OK);
  f.args.beta = 1, f.args.c = f.args.d;
  fake_hip::state().results = {{"hipblasLtMatmul", 6}};
  EXPECT_EQ(f.launch(), DEEPGEN_ERROR_DRIVER);
  const char* text = "";
  EXPECT_EQ(deepgen_last_driver_error(&text), 6);
  EXPECT_NE(std::string(text).find("hipBLASLt"), std::string::npos);
  EXPECT_EQ(launches(), 0u);
  // Over what it does not read, the kernel mends it.
  Made g = make();
  ASSERT_EQ(g.launch(), DEEPGEN_OK);
  EXPECT_EQ(launches(), 1u);
}

TEST_F(HipFallback, ADescriptionThatCannotBeWorkedWithIsRefused) {
  call.library = DEEPGEN_LIBRARY_CUBLASLT;
  Made f = make();
  EXPECT_EQ(f.launch(), DEEPGEN_ERROR_ARGUMENT);
}

} // namespace
