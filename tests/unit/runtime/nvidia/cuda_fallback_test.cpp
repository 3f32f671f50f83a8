// cuBLASLt in place of a kernel: what it is asked for, when the kernel runs all the same, and what is said of
// that.
#include "fake_cublaslt.h"
#include "fake_devices.h"
#include "tests/paths.h"
#include "tests/unit/runtime/launched.h"
#include "tests/unit/runtime/vendor_call_function.h"

#include <gtest/gtest.h>

#include <thread>

namespace {

using namespace deepgen::cuda_tests;
using deepgen::EpilogueOp;

constexpr size_t kWorkspace = 4096;

class CudaFallback : public ::testing::Test {
protected:
  void SetUp() override {
    setenv("DEEPGEN_CUDA_DRIVER", deepgen::paths::fake_cuda, 1);
    setenv("DEEPGEN_CUBLASLT", deepgen::paths::fake_cublaslt, 1);
    fake_cuda::reset({h100(), h200()});
    fake_cuda::set_current(0);
    fake_cublaslt::reset();
    fake_cublaslt::state().capture_mode = fake_cuda::capture_mode;
    call.text = "cublaslt 13.1.0, id 66", call.version = "13.1.0", call.device = "NVIDIA H100";
    call.library = DEEPGEN_LIBRARY_CUBLASLT, call.flags = DEEPGEN_VENDOR_B_TRANSPOSED;
    for (uint64_t i = 0; i < 8; ++i) call.algorithm[i] = 100 + i;
    call.workspace = kWorkspace;
  }

  using Made = VendorCallFunction;
  Made make(std::vector<EpilogueOp> epilogue = {}, int64_t batch = 1) {
    return {call, kernel("tuned"), kernel("any"), std::move(epilogue), batch, kWorkspace};
  }

  static std::vector<fake_cublaslt::Call>& asked() { return fake_cublaslt::state().calls; }
  static size_t launched() { return fake_cuda::state().launches.size(); }

  deepgen_vendor_call call{};
};

TEST_F(CudaFallback, AsksForWhatWasTimed) {
  Made f = make({}, 3);
  EXPECT_EQ(std::string(f.config()), "cublaslt 13.1.0, id 66");
  EXPECT_NE(f.state().find("the vendor's library runs"), std::string::npos);
  EXPECT_EQ(f.workspace(), kWorkspace) << "of both the larger one";
  int stream = 0;
  f.args.alpha = 1.5, f.args.beta = 0.25, f.args.c = at(0x40000);
  ASSERT_EQ(f.launch(reinterpret_cast<deepgen_stream>(&stream)), DEEPGEN_OK);
  ASSERT_EQ(asked().size(), 1u);
  EXPECT_EQ(launched(), 0u);
  const fake_cublaslt::Call& c = asked()[0];
  EXPECT_EQ(c.compute, 68);
  EXPECT_EQ(c.scale, 0) << "f32";
  EXPECT_EQ(c.attributes.at(3), 1u) << "our B, row by row transposed";
  EXPECT_EQ(c.attributes.at(4), 0u);
  EXPECT_EQ(c.attributes.at(7), 1u) << "no epilogue";
  EXPECT_EQ(c.alpha, 0x3fc00000u);
  EXPECT_EQ(c.beta, 0x3e800000u);
  EXPECT_EQ(c.a, at(0x20000)) << "D^T = B^T A^T";
  EXPECT_EQ(c.b, at(0x10000));
  EXPECT_EQ(c.c, at(0x40000));
  EXPECT_EQ(c.d, at(0x30000));
  EXPECT_EQ(c.stream, &stream);
  EXPECT_EQ(c.workspace, at(0x70000));
  EXPECT_EQ(c.workspace_bytes, kWorkspace);
  EXPECT_EQ(c.algorithm[7], 107u);
  EXPECT_EQ(c.a_layout.type, 14) << "bf16";
  EXPECT_EQ(c.a_layout.rows, 32u); // B is stored 128 x 32
  EXPECT_EQ(c.a_layout.columns, 128u);
  EXPECT_EQ(c.a_layout.ld, 32);
  EXPECT_EQ(c.a_layout.attributes.at(5), 3);
  EXPECT_EQ(c.a_layout.attributes.at(6), 32 * 128);
  EXPECT_EQ(c.d_layout.rows, 128u);
  EXPECT_EQ(c.d_layout.columns, 64u);
  EXPECT_EQ(c.d_layout.attributes.at(6), 64 * 128);
  EXPECT_EQ(c.capture_mode, 2) << "relaxed: it may load its kernel while a stream is captured";
  EXPECT_EQ(fake_cuda::capture_mode(), 0);
}

TEST_F(CudaFallback, FusedEpilogues) {
  call.flags |= DEEPGEN_VENDOR_BIAS | DEEPGEN_VENDOR_RESIDUAL | DEEPGEN_VENDOR_RELU;
  Made f = make({EpilogueOp::bias, EpilogueOp::residual, EpilogueOp::relu});
  f.args.bias = at(0x50000), f.args.residual = at(0x60000);
  ASSERT_EQ(f.launch(), DEEPGEN_OK);
  ASSERT_EQ(asked().size(), 1u);
  EXPECT_EQ(asked()[0].attributes.at(7), 6u) << "relu and bias";
  EXPECT_EQ(asked()[0].attributes.at(8), 0x50000u);
  EXPECT_EQ(asked()[0].attributes.at(26), 14u);
  EXPECT_EQ(asked()[0].c, at(0x60000));
  EXPECT_EQ(asked()[0].beta, 0x3f800000u);
  f.args.bias = at(0x51000), f.args.residual = f.args.d;
  ASSERT_EQ(f.launch(), DEEPGEN_OK);
  EXPECT_EQ(asked()[1].attributes.at(8), 0x51000u);
  EXPECT_EQ(asked()[1].c, f.args.d);
  // There is but one matrix to add.
  f.args.beta = 1, f.args.c = at(0x80000);
  ASSERT_EQ(f.launch(), DEEPGEN_OK);
  EXPECT_EQ(asked().size(), 2u);
  EXPECT_EQ(launched(), 1u);
}

TEST_F(CudaFallback, ScalesOfEightBits) {
  deepgen::Gemm p = small_gemm();
  p.a = p.b = deepgen::Type::e4m3, p.epilogue = {EpilogueOp::scale_a, EpilogueOp::scale_b};
  call.flags |= DEEPGEN_VENDOR_SCALE_A | DEEPGEN_VENDOR_SCALE_B;
  Made f = make();
  f.set(p);
  f.args.scale_a = at(0x50000), f.args.scale_b = at(0x50004);
  ASSERT_EQ(f.launch(), DEEPGEN_OK);
  ASSERT_EQ(asked().size(), 1u);
  EXPECT_EQ(asked()[0].attributes.at(17), 0x50004u) << "its A is our B";
  EXPECT_EQ(asked()[0].attributes.at(18), 0x50000u);
  EXPECT_EQ(asked()[0].attributes.at(25), 1u);
  EXPECT_EQ(asked()[0].a_layout.type, 28);
}

TEST_F(CudaFallback, OperandsThatLieOtherwiseTakeTheKernel) {
  Made f = make({}, 3);
  const deepgen_gemm_args as_timed = f.args;
  const auto takes_kernel = [&](auto change) {
    f.args = as_timed;
    change(f.args);
    const size_t before = launched();
    EXPECT_EQ(f.launch(), DEEPGEN_OK);
    return launched() == before + 1;
  };
  EXPECT_TRUE(takes_kernel([](auto& x) { x.lda = 64; }));
  EXPECT_TRUE(takes_kernel([](auto& x) { x.stride_b = DEEPGEN_BROADCAST; }));
  EXPECT_TRUE(takes_kernel([](auto& x) { x.a = at(0x10010); }));
  EXPECT_TRUE(takes_kernel([](auto& x) { x.d = at(0x30002); }));
  EXPECT_TRUE(takes_kernel([](auto& x) { x.beta = 1, x.c = at(0x40000), x.ldc = 200; }));
  EXPECT_TRUE(asked().empty());
  EXPECT_FALSE(takes_kernel([](auto&) {}));
  EXPECT_EQ(asked().size(), 1u);
}

TEST_F(CudaFallback, WorkspaceOfTheLibrary) {
  Made f = make();
  f.args.workspace_bytes = kWorkspace - 1;
  EXPECT_EQ(f.launch(), DEEPGEN_ERROR_WORKSPACE);
  f.args.workspace_bytes = kWorkspace, f.args.workspace = at(0x70010);
  EXPECT_EQ(f.launch(), DEEPGEN_ERROR_WORKSPACE);
}

/// The kernel runs, and the words say why.
void expect_kernel(VendorCallFunction& f, const char* words) {
  f.expect_kernel(words);
  const size_t before = fake_cuda::state().launches.size();
  ASSERT_EQ(f.launch(), DEEPGEN_OK);
  EXPECT_EQ(fake_cuda::state().launches.size(), before + 1);
  EXPECT_TRUE(fake_cublaslt::state().calls.empty());
}

TEST_F(CudaFallback, AnotherDevice) {
  fake_cuda::set_current(1); // an H200
  Made f = make();
  expect_kernel(f, "another device");
}
TEST_F(CudaFallback, AnotherVersion) {
  for (const char* version : {"13.1.1", "12.8.3", "13", "13.1.x", "130.1.0", ""}) {
    call.version = version;
    Made f = make();
    expect_kernel(f, "another version");
  }
}
TEST_F(CudaFallback, ForcedOff) {
  setenv("DEEPGEN_FALLBACK", "off", 1);
  Made f = make();
  expect_kernel(f, "DEEPGEN_FALLBACK is off");
  unsetenv("DEEPGEN_FALLBACK");
}
TEST_F(CudaFallback, Missing) {
  setenv("DEEPGEN_CUBLASLT", "libcublasLt-that-nobody-has.so", 1);
  call.version = "14.0.0"; // of which none was looked for before
  Made f = make();
  expect_kernel(f, "is not here");
}
TEST_F(CudaFallback, RefusedBeforeTheFirstCall) {
  for (const char* function : {"cublasLtMatmulDescCreate", "cublasLtMatrixLayoutCreate"}) {
    fake_cublaslt::state().results = {{function, 3}};
    const int before = fake_cublaslt::state().alive;
    Made f = make();
    expect_kernel(f, "does not take the problem");
    EXPECT_EQ(fake_cublaslt::state().alive, before) << "all that was made is given back";
  }
}

TEST_F(CudaFallback, AFailedCallRunsTheKernelFromThenOn) {
  Made f = make();
  ASSERT_EQ(f.launch(), DEEPGEN_OK);
  fake_cublaslt::state().results = {{"cublasLtMatmul", 15}};
  ASSERT_EQ(f.launch(), DEEPGEN_OK);
  EXPECT_EQ(launched(), 1u) << "in the same call";
  fake_cublaslt::state().results.clear();
  ASSERT_EQ(f.launch(), DEEPGEN_OK);
  EXPECT_EQ(launched(), 2u);
  EXPECT_EQ(asked().size(), 1u);
  EXPECT_EQ(std::string(f.config()), "tuned");
  EXPECT_NE(f.state().find("failed"), std::string::npos);
}

TEST_F(CudaFallback, ACallThatFailsMidwayOverWhatItReadsIsAnError) {
  Made f = make();
  f.args.beta = 1, f.args.c = f.args.d;
  fake_cublaslt::state().results = {{"cublasLtMatmul", 13}};
  EXPECT_EQ(f.launch(), DEEPGEN_ERROR_DRIVER);
  const char* text = "";
  EXPECT_EQ(deepgen_last_driver_error(&text), 13);
  EXPECT_NE(std::string(text).find("cuBLASLt"), std::string::npos);
  EXPECT_EQ(launched(), 0u);
  // Over what it does not read, the kernel mends it.
  Made g = make();
  ASSERT_EQ(g.launch(), DEEPGEN_OK);
  EXPECT_EQ(launched(), 1u);
}

TEST_F(CudaFallback, NothingIsLeftBehind) {
  const int before = fake_cublaslt::state().alive;
  {
    Made f = make();
    ASSERT_EQ(f.launch(), DEEPGEN_OK);
    EXPECT_GT(fake_cublaslt::state().alive, before);
  }
  EXPECT_EQ(fake_cublaslt::state().alive, before);
  const int handles = fake_cublaslt::state().handles;
  Made f = make();
  ASSERT_EQ(f.launch(), DEEPGEN_OK);
  EXPECT_EQ(fake_cublaslt::state().handles, handles) << "one a device";
}

TEST_F(CudaFallback, ThreadsKeepTheirPointersApart) {
  call.flags |= DEEPGEN_VENDOR_BIAS;
  Made f = make({EpilogueOp::bias});
  ASSERT_EQ(f.prepare(), DEEPGEN_OK);
  std::vector<std::thread> threads;
  std::atomic<int> failed{0};
  for (uintptr_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      fake_cuda::set_current(0);
      deepgen_gemm_args args = f.args;
      args.d = at(0x100000 * (t + 1)), args.bias = at(0x100000 * (t + 1) + 0x100);
      for (int i = 0; i < 200; ++i)
        failed += deepgen_launch_gemm(&f.function(), &args, nullptr) != DEEPGEN_OK;
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(failed, 0);
  ASSERT_EQ(asked().size(), 800u);
  for (const fake_cublaslt::Call& c : asked())
    ASSERT_EQ(c.attributes.at(8), reinterpret_cast<uintptr_t>(c.d) + 0x100);
}

TEST_F(CudaFallback, ADescriptionThatCannotBeWorkedWithIsRefused) {
  call.flags |= DEEPGEN_VENDOR_BIAS; // of which the function has none
  Made f = make();
  EXPECT_EQ(f.launch(), DEEPGEN_ERROR_ARGUMENT);
  call.flags = 0, call.version = nullptr;
  Made g = make();
  EXPECT_EQ(g.launch(), DEEPGEN_ERROR_ARGUMENT);
}

} // namespace
