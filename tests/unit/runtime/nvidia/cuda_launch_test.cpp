// What a launch hands to the driver: parameters, tensor maps, attributes, workspace; and what it must not do.
#include "fake_devices.h"
#include "tests/paths.h"
#include "tests/unit/runtime/counted_allocations.h"
#include "tests/unit/runtime/cuda_test_function.h"
#include "tests/unit/runtime/launched.h"

#include <gtest/gtest.h>

#include <cstring>

namespace {

using namespace deepgen::cuda_tests;

class CudaLaunch : public ::testing::Test {
protected:
  void SetUp() override {
    setenv("DEEPGEN_CUDA_DRIVER", deepgen::paths::fake_cuda, 1);
    fake_cuda::reset({h100()});
    fake_cuda::set_current(0);
  }
  static const std::vector<fake_cuda::Launch>& launches() { return fake_cuda::state().launches; }
  static const std::vector<fake_cuda::EncodedMap>& maps() { return fake_cuda::state().maps; }

  /// One entry with these parameters of so many bytes.
  static KernelText with(std::vector<uint8_t> args, const std::string& sizes) {
    KernelText k = kernel("k");
    k.args = std::move(args);
    k.cubin = "cubin sm_90a deepgen_kernel=" + sizes + " deepgen_reduce=" + sizes;
    return k;
  }
};

TEST_F(CudaLaunch, PassesArgumentsInTheKernelsOrder) {
  KernelText k = with({DEEPGEN_ARG_ALPHA, DEEPGEN_ARG_D, DEEPGEN_ARG_LDB, DEEPGEN_ARG_WORKSPACE,
                       DEEPGEN_ARG_BIAS_ROW, DEEPGEN_ARG_SCALE_D, DEEPGEN_ARG_CLAMP_LOW,
                       DEEPGEN_ARG_CLAMP_HIGH, DEEPGEN_ARG_LD_RESIDUAL, DEEPGEN_ARG_STRIDE_RESIDUAL},
                      "4,8,8,8,8,8,4,4,8,8");
  k.workspace = 1000;
  k.launches = {{"deepgen_kernel", {7, 3, 2}, {64, 2, 1}, {1, 1, 1}, 1000, 0},
                {"deepgen_reduce", {5, 1, 1}, {256, 1, 1}, {1, 1, 1}, 0, 0}};
  CudaFunction f({k}, 3);
  f.set_epilogue({deepgen::EpilogueOp::bias_row, deepgen::EpilogueOp::scale_d, deepgen::EpilogueOp::clamp,
                  deepgen::EpilogueOp::residual});
  f.args.alpha = 1.5, f.args.clamp_low = -2, f.args.clamp_high = 2;
  f.args.bias_row = at(0x40000), f.args.scale_d = at(0x50000), f.args.residual = at(0x60000);
  f.args.stride_residual = DEEPGEN_BROADCAST;
  f.args.workspace = at(0x70000), f.args.workspace_bytes = 1000;
  int stream = 0;
  ASSERT_EQ(f.launch(reinterpret_cast<deepgen_stream>(&stream)), DEEPGEN_OK);
  ASSERT_EQ(launches().size(), 2u);
  EXPECT_EQ(launches()[0].entry, "deepgen_kernel");
  EXPECT_EQ(launches()[0].grid, (std::array<uint32_t, 3>{7, 3, 2}));
  EXPECT_EQ(launches()[0].block, (std::array<uint32_t, 3>{64, 2, 1}));
  EXPECT_EQ(launches()[0].shared, 1000u);
  EXPECT_EQ(launches()[1].entry, "deepgen_reduce");
  EXPECT_EQ(launches()[1].grid, (std::array<uint32_t, 3>{5, 1, 1}));
  for (const fake_cuda::Launch& l : launches()) {
    EXPECT_EQ(l.stream, &stream);
    EXPECT_TRUE(l.attributes.empty());
    EXPECT_EQ(as<float>(l.parameters[0]), 1.5f);
    EXPECT_EQ(as<uint64_t>(l.parameters[1]), 0x30000u);
    EXPECT_EQ(as<int64_t>(l.parameters[2]), 32);
    EXPECT_EQ(as<uint64_t>(l.parameters[3]), 0x70000u);
    EXPECT_EQ(as<uint64_t>(l.parameters[4]), 0x40000u);
    EXPECT_EQ(as<uint64_t>(l.parameters[5]), 0x50000u);
    EXPECT_EQ(as<float>(l.parameters[6]), -2.0f);
    EXPECT_EQ(as<float>(l.parameters[7]), 2.0f);
    EXPECT_EQ(as<int64_t>(l.parameters[8]), 128);
    EXPECT_EQ(as<int64_t>(l.parameters[9]), 0) << "one residual for the batch";
  }
}

TEST_F(CudaLaunch, TensorMaps) {
  KernelText k = with({DEEPGEN_ARG_MAP_D, DEEPGEN_ARG_MAP_A, DEEPGEN_ARG_MAP_RESIDUAL}, "128,128,128");
  k.align_a = k.align_d = 16;
  k.maps = {{DEEPGEN_ARG_A, 64, 128, 128, 256, 0, 0, 0, 0},
            {DEEPGEN_ARG_D, 32, 64, 64, 0, 0, 0, 0, 0},
            {DEEPGEN_ARG_RESIDUAL, 8, 8, 0, 64, 0, 0, 0, 0}};
  CudaFunction f({k}, 3);
  f.set_epilogue({deepgen::EpilogueOp::residual});
  f.operands[DEEPGEN_ARG_A].type = DEEPGEN_TF32, f.operands[DEEPGEN_ARG_RESIDUAL].type = DEEPGEN_F32;
  f.args.residual = at(0x80000);
  f.args.lda = 40, f.args.stride_a = DEEPGEN_BROADCAST;
  ASSERT_EQ(f.launch(), DEEPGEN_OK);
  ASSERT_EQ(maps().size(), 3u);
  const fake_cuda::EncodedMap &a = maps()[0], &d = maps()[1], &residual = maps()[2];
  EXPECT_EQ(a.type, 11) << "tf32";
  EXPECT_EQ(a.address, 0x10000u);
  EXPECT_EQ(a.sizes, (std::vector<uint64_t>{32, 64, 3})) << "innermost first, the batch outermost";
  EXPECT_EQ(a.strides, (std::vector<uint64_t>{160, 0}));
  EXPECT_EQ(a.box, (std::vector<uint32_t>{64, 128, 1}));
  EXPECT_EQ(a.swizzle, 3);
  EXPECT_EQ(a.promotion, 3);
  EXPECT_EQ(a.interleave, 0);
  EXPECT_EQ(a.fill, 0) << "zeros";
  EXPECT_EQ(d.type, 9) << "bf16";
  EXPECT_EQ(d.sizes, (std::vector<uint64_t>{128, 64, 3}));
  EXPECT_EQ(d.strides, (std::vector<uint64_t>{256, 64 * 256}));
  EXPECT_EQ(d.swizzle, 2);
  EXPECT_EQ(d.promotion, 0);
  EXPECT_EQ(residual.type, 7) << "f32";
  EXPECT_EQ(residual.address, 0x80000u);
  EXPECT_EQ(residual.swizzle, 0);
  EXPECT_EQ(residual.promotion, 1);
  using Words = std::array<uint64_t, 16>;
  const auto& parameters = launches().at(0).parameters;
  EXPECT_EQ(as<Words>(parameters[0])[0], 1u) << "the map of D, encoded second";
  EXPECT_EQ(as<Words>(parameters[1])[0], 0u);
  EXPECT_EQ(as<Words>(parameters[2])[0], 2u);
}

TEST_F(CudaLaunch, TheMapOfAPackedOperandIsThatOfItsCopyInTheWorkspace) {
  KernelText k = with({DEEPGEN_ARG_WORKSPACE, DEEPGEN_ARG_MAP_B, DEEPGEN_ARG_MAP_A}, "8,128,128");
  k.align_a = 2, k.align_b = 16, k.workspace = 65536;
  k.maps = {{DEEPGEN_ARG_A, 64, 16, 128, 256, 0x1000, 33, 66, 128},
            {DEEPGEN_ARG_B, 64, 64, 32, 128, 0, 0, 0, 0}};
  CudaFunction f({k}, 2);
  f.args.a = at(0x10002), f.args.lda = 33, f.args.workspace = at(0x70000), f.args.workspace_bytes = 65536;
  ASSERT_EQ(f.launch(), DEEPGEN_OK);
  ASSERT_EQ(maps().size(), 2u);
  EXPECT_EQ(maps()[0].address, 0x71000u);
  EXPECT_EQ(maps()[0].sizes, (std::vector<uint64_t>{66, 33, 2}));
  EXPECT_EQ(maps()[0].strides, (std::vector<uint64_t>{256, 33 * 256}));
  EXPECT_EQ(maps()[1].sizes, (std::vector<uint64_t>{32, 128, 2})) << "B has no copy";
}

TEST_F(CudaLaunch, GroupsHaveAThirdDimensionOfBAndATable) {
  KernelText k = with({DEEPGEN_ARG_OFFSETS, DEEPGEN_ARG_MAP_A, DEEPGEN_ARG_MAP_B}, "8,128,128");
  k.maps = {{DEEPGEN_ARG_A, 64, 16, 128, 256, 0, 0, 0, 0}, {DEEPGEN_ARG_B, 64, 64, 128, 256, 0, 0, 0, 0}};
  deepgen::Gemm p = deepgen::cuda_tests::small_gemm();
  p.groups = 5;
  CudaFunction f({k}, p);
  EXPECT_EQ(f.launch(), DEEPGEN_ERROR_NULL) << "there is no table";
  f.args.offsets = static_cast<const int32_t*>(at(0x50000));
  ASSERT_EQ(f.launch(), DEEPGEN_OK);
  ASSERT_EQ(maps().size(), 2u);
  EXPECT_EQ(maps()[0].sizes, (std::vector<uint64_t>{32, 64}));
  EXPECT_EQ(maps()[1].sizes, (std::vector<uint64_t>{32, 128, 5}));
  EXPECT_EQ(maps()[1].strides, (std::vector<uint64_t>{64, 128 * 64}));
  f.args.stride_b = 5000;
  ASSERT_EQ(f.launch(), DEEPGEN_OK);
  EXPECT_EQ(maps().back().strides, (std::vector<uint64_t>{64, 10000}));
}

TEST_F(CudaLaunch, TensorMapsOfOneEntryHaveRankTwo) {
  KernelText k = with({DEEPGEN_ARG_MAP_B}, "128");
  k.align_b = 16, k.maps = {{DEEPGEN_ARG_B, 64, 64, 32, 128, 0, 0, 0, 0}};
  const struct {
    deepgen_type type;
    int code;
  } types[] = {{DEEPGEN_F32, 7}, {DEEPGEN_F64, 8},  {DEEPGEN_F16, 6},  {DEEPGEN_BF16, 9}, {DEEPGEN_TF32, 11},
               {DEEPGEN_I8, 0},  {DEEPGEN_E4M3, 0}, {DEEPGEN_E5M2, 0}, {DEEPGEN_I32, 3}};
  for (const auto& [type, code] : types) {
    SetUp();
    CudaFunction f({k});
    f.operands[DEEPGEN_ARG_B].type = uint8_t(type);
    ASSERT_EQ(f.launch(), DEEPGEN_OK);
    EXPECT_EQ(maps().at(0).type, code) << type;
    EXPECT_EQ(maps().at(0).sizes, (std::vector<uint64_t>{32, 128}));
    EXPECT_EQ(maps().at(0).strides.size(), 1u);
    EXPECT_EQ(maps().at(0).swizzle, 1);
    EXPECT_EQ(maps().at(0).promotion, 2);
  }
}

TEST_F(CudaLaunch, Rows) {
  KernelText wide = with({DEEPGEN_ARG_X, DEEPGEN_ARG_LDX, DEEPGEN_ARG_D, DEEPGEN_ARG_EPSILON}, "8,8,8,4");
  wide.align_a = 16;
  KernelText any = wide;
  any.config = "any", any.align_a = 1, any.cubin += " again";
  CudaFunction f({wide, any});
  const std::vector<deepgen_operand> table = deepgen::operand_table(
      deepgen::Problem::parse("rows m=64 n=32 x=bf16 d=bf16 kind=rms_norm options=none"));
  deepgen_function& function = f.function();
  function.op = DEEPGEN_OP_ROWS, function.operands = table.data(),
  function.operand_count = uint32_t(table.size());
  deepgen_rows_args args;
  args.x = at(0x10000), args.d = at(0x30000), args.ldx = 40;
  ASSERT_EQ(deepgen_launch_rows(&function, &args, nullptr), DEEPGEN_OK);
  const std::vector<std::string> parameters = launches().back().parameters;
  ASSERT_EQ(parameters.size(), 4u);
  EXPECT_EQ(as<uint64_t>(parameters[0]), 0x10000u);
  EXPECT_EQ(as<int64_t>(parameters[1]), 40);
  EXPECT_EQ(as<uint64_t>(parameters[2]), 0x30000u);
  EXPECT_FLOAT_EQ(as<float>(parameters[3]), 1e-5f);
  args.ldx = 33; // 66 bytes: the other kernel
  ASSERT_EQ(deepgen_launch_rows(&function, &args, nullptr), DEEPGEN_OK);
  EXPECT_NE(launches()[1].image, launches()[0].image);
  EXPECT_EQ(deepgen_launch_gemm(&function, &f.args, nullptr), DEEPGEN_ERROR_ARGUMENT);
  args.x = nullptr;
  EXPECT_EQ(deepgen_launch_rows(&function, &args, nullptr), DEEPGEN_ERROR_NULL);
  EXPECT_EQ(launches().size(), 2u);
}

TEST_F(CudaLaunch, TheMapOfAnUnreadCIsThatOfD) {
  KernelText k = with({DEEPGEN_ARG_MAP_C}, "128");
  k.align_d = 16, k.maps = {{DEEPGEN_ARG_C, 64, 64, 128, 256, 0, 0, 0, 0}};
  CudaFunction f({k});
  f.args.ldd = 136;
  ASSERT_EQ(f.launch(), DEEPGEN_OK);
  EXPECT_EQ(maps().at(0).address, 0x30000u);
  EXPECT_EQ(maps().at(0).strides, (std::vector<uint64_t>{272}));
  f.args.beta = 1, f.args.c = at(0x90000);
  ASSERT_EQ(f.launch(), DEEPGEN_OK);
  EXPECT_EQ(maps().at(1).address, 0x90000u);
  EXPECT_EQ(maps().at(1).strides, (std::vector<uint64_t>{256}));
}

/// Of boxes at the edge of the operand, behind those of whole parts.
TEST_F(CudaLaunch, TensorMapsOfOneOperandAreAnArray) {
  KernelText k = with({DEEPGEN_ARG_MAP_B, DEEPGEN_ARG_MAP_A, DEEPGEN_ARG_D}, "256,384,8");
  k.align_a = k.align_b = 16;
  for (const uint32_t rows : {128u, 32u, 8u})
    k.maps.push_back({DEEPGEN_ARG_A, 64, rows, 128, 128, 0, 0, 0, 0});
  for (const uint32_t rows : {256u, 40u}) k.maps.push_back({DEEPGEN_ARG_B, 64, rows, 128, 128, 0, 0, 0, 0});
  CudaFunction f({k});
  ASSERT_EQ(f.launch(), DEEPGEN_OK);
  ASSERT_EQ(maps().size(), 5u);
  const uint32_t rows[] = {128, 32, 8, 256, 40};
  for (size_t i = 0; i < 5; ++i) {
    EXPECT_EQ(maps()[i].box[1], rows[i]);
    EXPECT_EQ(maps()[i].address, i < 3 ? 0x10000u : 0x20000u);
  }
  using Array = std::array<std::array<uint64_t, 16>, 3>;
  using Pair = std::array<std::array<uint64_t, 16>, 2>;
  const auto& parameters = launches().at(0).parameters;
  const auto b = as<Pair>(parameters[0]);
  const auto a = as<Array>(parameters[1]);
  EXPECT_EQ((std::array{a[0][0], a[1][0], a[2][0]}), (std::array<uint64_t, 3>{0, 1, 2}));
  EXPECT_EQ((std::array{b[0][0], b[1][0]}), (std::array<uint64_t, 2>{3, 4}));
  EXPECT_EQ(as<uint64_t>(parameters[2]), 0x30000u);
  k.maps.resize(19, k.maps.front());
  EXPECT_EQ(CudaFunction({k}).launch(), DEEPGEN_ERROR_ARGUMENT) << "more than a call has room for";
}

/// The argument of A would be an array of its first map and B's.
TEST_F(CudaLaunch, TensorMapsOfOneOperandThatAreApartAreRefused) {
  const auto status = [this](std::vector<uint8_t> order) {
    KernelText k = with({DEEPGEN_ARG_MAP_A, DEEPGEN_ARG_MAP_B, DEEPGEN_ARG_D}, "256,256,8");
    k.align_a = k.align_b = k.align_d = 16;
    for (uint8_t operand : order) k.maps.push_back({operand, 64, 64, 128, 128, 0, 0, 0, 0});
    fake_cuda::reset({h100()});
    fake_cuda::set_current(0);
    return CudaFunction({k}).launch();
  };
  const uint8_t a = DEEPGEN_ARG_A, b = DEEPGEN_ARG_B, d = DEEPGEN_ARG_D;
  EXPECT_EQ(status({a, a, b, b}), DEEPGEN_OK);
  EXPECT_EQ(status({b, b, a, a}), DEEPGEN_OK);
  for (const std::vector<uint8_t>& torn :
       {std::vector<uint8_t>{a, b, a}, {a, b, a, b}, {b, b, a, b}, {a, a, b, b, a, a}, {a, b, d, a}}) {
    EXPECT_EQ(status(torn), DEEPGEN_ERROR_ARGUMENT) << torn.size();
    EXPECT_TRUE(maps().empty());
    EXPECT_TRUE(launches().empty());
  }
}

TEST_F(CudaLaunch, WhatNoMapCanAddressTakesTheNextKernel) {
  KernelText mapped = with({DEEPGEN_ARG_MAP_A}, "128"), plain = kernel("plain");
  mapped.align_a = 16, mapped.maps = {{DEEPGEN_ARG_A, 64, 64, 128, 256, 0, 0, 0, 0}};
  CudaFunction f({mapped, plain});
  const int before = deepgen_last_driver_error(nullptr);
  f.args.lda = int64_t(1) << 40;
  ASSERT_EQ(f.launch(), DEEPGEN_OK);
  EXPECT_NE(launches().at(0).image.find("name:plain"), std::string::npos);
  EXPECT_EQ(deepgen_last_driver_error(nullptr), before) << "the call did not fail";
  CudaFunction alone({mapped});
  alone.args.lda = int64_t(1) << 40;
  EXPECT_EQ(alone.launch(), DEEPGEN_ERROR_DRIVER);
  EXPECT_EQ(deepgen_last_driver_error(nullptr), 1);
}

TEST_F(CudaLaunch, Attributes) {
  KernelText k = kernel("k");
  k.launches[0].grid[0] = 64;
  k.launches[0].cluster[0] = 2, k.launches[0].cluster[1] = 1;
  k.launches[0].flags = DEEPGEN_LAUNCH_DEPENDENT;
  k.launches[0].shared = 200 << 10;
  CudaFunction f({k});
  ASSERT_EQ(f.launch(), DEEPGEN_OK);
  const auto& attributes = launches().at(0).attributes;
  ASSERT_EQ(attributes.size(), 2u);
  EXPECT_EQ(attributes[0].id, 4u);
  EXPECT_EQ(attributes[0].value[0], 2u);
  EXPECT_EQ(attributes[0].value[1], 1u);
  EXPECT_EQ(attributes[0].value[2], 1u);
  EXPECT_EQ(attributes[1].id, 6u);
  EXPECT_EQ(attributes[1].value[0], 1u);
  EXPECT_EQ(calls("cuKernelSetAttribute"), 1) << "200 KiB of shared memory";
  k.launches[0].cluster[0] = 16, k.launches[0].flags = 0;
  SetUp();
  CudaFunction large({k});
  ASSERT_EQ(large.launch(), DEEPGEN_OK);
  EXPECT_EQ(calls("cuKernelSetAttribute"), 2) << "16 blocks are more than every device has";
  ASSERT_EQ(launches().at(0).attributes.size(), 1u);
}

TEST_F(CudaLaunch, SharedMemoryIsRaisedAndNeverLowered) {
  KernelText k = kernel("k");
  const deepgen_launch large{"deepgen_kernel", {1, 1, 1}, {32, 1, 1}, {1, 1, 1}, 100 << 10, 0};
  deepgen_launch small = large;
  small.shared = 60 << 10;
  k.launches = {large, small};
  EXPECT_EQ(CudaFunction({k}).launch(), DEEPGEN_OK);
  EXPECT_EQ(calls("cuKernelSetAttribute"), 1);
}

TEST_F(CudaLaunch, PersistentGridsFitTheDevice) {
  auto grid = [&](std::array<uint32_t, 3> size, uint32_t cluster) {
    KernelText k = kernel("k");
    for (size_t i = 0; i < 3; ++i) k.launches[0].grid[i] = size[i];
    k.launches[0].cluster[0] = cluster;
    k.launches[0].flags = DEEPGEN_LAUNCH_PERSISTENT;
    EXPECT_EQ(CudaFunction({k}).launch(), DEEPGEN_OK);
    return launches().back().grid;
  };
  using Grid = std::array<uint32_t, 3>;
  EXPECT_EQ(grid({1000, 1, 1}, 1), (Grid{264, 1, 1})) << "2 blocks on each of 132";
  EXPECT_EQ(grid({100, 1, 1}, 1), (Grid{100, 1, 1}));
  EXPECT_EQ(grid({1000, 1, 5}, 1), (Grid{52, 1, 5}));
  EXPECT_EQ(grid({1000, 1, 1}, 2), (Grid{120, 1, 1})) << "60 clusters";
  EXPECT_EQ(grid({1000, 1, 7}, 2), (Grid{16, 1, 7})) << "17 blocks, in whole clusters";
  EXPECT_EQ(grid({1000, 1, 100}, 2), (Grid{2, 1, 100})) << "a cluster at least";
}

TEST_F(CudaLaunch, Workspace) {
  KernelText k = kernel("k");
  k.workspace = 4096;
  CudaFunction f({k});
  EXPECT_EQ(f.workspace(), 4096u);
  EXPECT_EQ(f.launch(), DEEPGEN_ERROR_WORKSPACE);
  f.args.workspace = at(0x10000), f.args.workspace_bytes = 4095;
  EXPECT_EQ(f.launch(), DEEPGEN_ERROR_WORKSPACE);
  f.args.workspace_bytes = 4096;
  EXPECT_EQ(f.launch(), DEEPGEN_OK);
  f.args.workspace = at(0x10080);
  EXPECT_EQ(f.launch(), DEEPGEN_ERROR_WORKSPACE) << "aligned to 256";
  EXPECT_EQ(launches().size(), 1u);
}

TEST_F(CudaLaunch, ArgumentsAreChecked) {
  CudaFunction f({kernel("k")});
  f.args.b = nullptr;
  EXPECT_EQ(f.launch(), DEEPGEN_ERROR_NULL);
  f.args.b = at(0x20001);
  EXPECT_EQ(f.launch(), DEEPGEN_ERROR_ALIGNMENT);
  EXPECT_TRUE(launches().empty());
}

TEST_F(CudaLaunch, FirstCallInsideACapture) {
  fake_cuda::state().capturing = true;
  CudaFunction f({kernel("k")});
  EXPECT_EQ(f.launch(), DEEPGEN_OK);
  EXPECT_EQ(fake_cuda::capture_mode(), 0) << "put back";
  EXPECT_EQ(calls("cuThreadExchangeStreamCaptureMode"), 2);
  EXPECT_EQ(f.prepare(), DEEPGEN_OK);
  EXPECT_EQ(fake_cuda::capture_mode(), 0);
}

TEST_F(CudaLaunch, ASteadyCallOnlyLaunches) {
  KernelText k = with({DEEPGEN_ARG_MAP_A, DEEPGEN_ARG_D}, "128,8");
  k.align_a = 16, k.maps = {{DEEPGEN_ARG_A, 64, 64, 128, 256, 0, 0, 0, 0}};
  CudaFunction f({k});
  ASSERT_EQ(f.prepare(), DEEPGEN_OK);
  fake_cuda::state().calls.clear();
  ASSERT_EQ(f.launch(), DEEPGEN_OK);
  EXPECT_EQ(fake_cuda::state().calls,
            (std::map<std::string, int>{
                {"cuCtxGetDevice", 1}, {"cuTensorMapEncodeTiled", 1}, {"cuLaunchKernelEx", 1}}));
  if (!COUNTS_ALLOCATIONS) GTEST_SKIP() << "a sanitizer has its own malloc";
  fake_cuda::state().recording = false;
  const long before = allocations;
  for (int i = 0; i < 100; ++i) f.launch();
  EXPECT_EQ(allocations, before);
  void* volatile kept = malloc(1);
  free(kept);
  EXPECT_GT(allocations, before) << "the counter counts";
}

} // namespace
