// A function whose sizes a call passes: grids, tensor maps, scratch and kernels by size, on the fake driver.
#include "fake_devices.h"
#include "tests/paths.h"
#include "tests/unit/runtime/cuda_test_function.h"
#include "tests/unit/runtime/launched.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace {

using namespace deepgen::cuda_tests;
using Grid = std::array<uint32_t, 3>;

/// M is 1..8192, the batch 1..4 where it is a range.
deepgen::Gemm ranged(bool batched = false) {
  deepgen::Gemm p = small_gemm(batched ? 4 : 1);
  p.m = 8192, p.least[size_t(deepgen::Size::m)] = 1;
  if (batched) p.least[size_t(deepgen::Size::batch)] = 1;
  return p;
}

class CudaRanges : public ::testing::Test {
protected:
  void SetUp() override {
    setenv("DEEPGEN_CUDA_DRIVER", deepgen::paths::fake_cuda, 1);
    fake_cuda::reset({h100()});
    fake_cuda::set_current(0);
  }
  static const std::vector<fake_cuda::Launch>& launches() { return fake_cuda::state().launches; }
  static const std::vector<fake_cuda::EncodedMap>& maps() { return fake_cuda::state().maps; }
  static constexpr deepgen_size_rule none{0, {0, 0, 0, 0}};
};

TEST_F(CudaRanges, EveryGridFollowsItsRule) {
  const deepgen_size_rule tiles[] = {{3, {64, 0, 0, 1}}, none, none},
                          rows[] = {{2, {5, 0, 0, 0}}, none, none};
  KernelText k = kernel("k");
  k.args = {DEEPGEN_ARG_M, DEEPGEN_ARG_BATCH};
  k.cubin = "cubin sm_90a deepgen_kernel=8,8 deepgen_pack=8,8 deepgen_reduce=8,8";
  k.launches = {{"deepgen_pack", {3278, 1, 1}, {256, 1, 1}, {1, 1, 1}, 0, 0, rows},
                {"deepgen_kernel", {1536, 1, 1}, {128, 1, 1}, {1, 1, 1}, 0, 0, tiles},
                {"deepgen_reduce", {7, 2, 1}, {128, 1, 1}, {1, 1, 1}, 0, 0, nullptr}};
  CudaFunction f({k}, ranged(true));
  size_t made = 0;
  for (const int64_t m : {1, 5, 6, 63, 64, 65, 128, 8191, 8192})
    for (const int64_t batch : {1, 2, 4}) {
      f.args.m = m, f.args.batch = batch;
      ASSERT_EQ(f.launch(), DEEPGEN_OK) << m;
      ASSERT_EQ(launches().size(), made += 3);
      const fake_cuda::Launch* l = &launches()[made - 3];
      EXPECT_EQ(l[0].grid, (Grid{uint32_t(2 * ((m + 4) / 5)), 1, 1})) << m;
      EXPECT_EQ(l[1].grid, (Grid{uint32_t(3 * ((m + 63) / 64) * batch), 1, 1})) << m << " " << batch;
      EXPECT_EQ(l[2].grid, (Grid{7, 2, 1})) << "no rule";
      for (int i = 0; i < 3; ++i) {
        EXPECT_EQ(as<int64_t>(l[i].parameters[0]), m);
        EXPECT_EQ(as<int64_t>(l[i].parameters[1]), batch);
      }
    }
}

TEST_F(CudaRanges, APersistentGridIsNotAboveWhatFitsNorTheLargestCalls) {
  const deepgen_size_rule rules[] = {{4, {16, 0, 0, 0}}, none, none};
  KernelText k = kernel("k");
  k.launches = {{"deepgen_kernel", {400, 1, 1}, {128, 1, 1}, {1, 1, 1}, 0, DEEPGEN_LAUNCH_PERSISTENT, rules}};
  CudaFunction f({k}, ranged());
  const std::pair<int64_t, uint32_t> expected[] = {{1, 4}, {17, 8}, {1056, 264}, {1600, 264}, {8192, 264}};
  for (const auto& [m, blocks] : expected) {
    f.args.m = m;
    ASSERT_EQ(f.launch(), DEEPGEN_OK);
    EXPECT_EQ(launches().back().grid, (Grid{blocks, 1, 1})) << m;
  }
  k.launches[0].flags = 0;
  CudaFunction other({k}, ranged());
  other.args.m =
      8192; // a rule may give more than there are: of groups, which have a tile for each row at most
  ASSERT_EQ(other.launch(), DEEPGEN_OK);
  EXPECT_EQ(launches().back().grid, (Grid{400, 1, 1}));
}

TEST_F(CudaRanges, TensorMapsHaveTheCallsRows) {
  KernelText k = kernel("k");
  k.args = {DEEPGEN_ARG_MAP_A, DEEPGEN_ARG_MAP_B, DEEPGEN_ARG_MAP_D};
  k.cubin = "cubin sm_90a deepgen_kernel=128,128,128";
  k.workspace = 1 << 30;
  // A copy of A with M rows, another of B with K rows and M columns: no template has that.
  k.maps = {{DEEPGEN_ARG_A, 64, 16, 128, 256, 0x1000, 1, 32, 64, 1, 0},
            {DEEPGEN_ARG_B, 64, 16, 128, 256, 0x2000, 32, 2, 128, 0, 1},
            {DEEPGEN_ARG_D, 64, 16, 128, 256, 0, 0, 0, 0}};
  CudaFunction f({k}, ranged(true));
  f.args.workspace = at(0x100000), f.args.workspace_bytes = 1 << 30;
  f.args.m = 77, f.args.batch = 3;
  ASSERT_EQ(f.launch(), DEEPGEN_OK);
  ASSERT_EQ(maps().size(), 3u);
  EXPECT_EQ(maps()[0].sizes, (std::vector<uint64_t>{32, 77, 3}));
  EXPECT_EQ(maps()[0].strides, (std::vector<uint64_t>{128, 77 * 128}));
  EXPECT_EQ(maps()[1].sizes, (std::vector<uint64_t>{154, 32, 3}));
  EXPECT_EQ(maps()[2].sizes, (std::vector<uint64_t>{128, 77, 3}));
  EXPECT_EQ(maps()[2].strides, (std::vector<uint64_t>{256, 77 * 256})) << "dense entries of 77 rows";
  f.args.batch = 1;
  ASSERT_EQ(f.launch(), DEEPGEN_OK);
  EXPECT_EQ(maps().back().sizes, (std::vector<uint64_t>{128, 77, 1})) << "the code has entries at any batch";
}

TEST_F(CudaRanges, ALastBoxEndsWithTheCallsRows) {
  KernelText k = kernel("k");
  k.args = {DEEPGEN_ARG_MAP_A, DEEPGEN_ARG_MAP_D};
  k.cubin = "cubin sm_90a deepgen_kernel=256,128";
  k.maps = {{DEEPGEN_ARG_A, 64, 104, 128, 256, 0, 0, 0, 0},
            {DEEPGEN_ARG_A, 64, 104, 128, 256, 0, 0, 0, 0, 0, 0, /*rest_of=*/1},
            {DEEPGEN_ARG_D, 64, 16, 128, 256, 0, 0, 0, 0}};
  CudaFunction f({k}, ranged());
  const std::pair<int64_t, uint32_t> rows[] = {{1, 8},     {8, 8},   {9, 16},   {96, 96},  {97, 104},
                                               {104, 104}, {105, 8}, {291, 88}, {312, 104}};
  for (const auto& [m, last] : rows) {
    f.args.m = m;
    ASSERT_EQ(f.launch(), DEEPGEN_OK);
    const size_t first = maps().size() - 3;
    EXPECT_EQ(maps()[first].box[1], 104u) << m;
    EXPECT_EQ(maps()[first + 1].box[1], last) << m;
    EXPECT_EQ(maps()[first + 1].sizes, maps()[first].sizes) << m;
  }
}

TEST_F(CudaRanges, WithKZeroTheDriverIsAskedForNoMapOfAAndB) {
  KernelText k = kernel("k");
  k.args = {DEEPGEN_ARG_MAP_A, DEEPGEN_ARG_MAP_B, DEEPGEN_ARG_MAP_D, DEEPGEN_ARG_K};
  k.cubin = "cubin sm_90a deepgen_kernel=128,128,128,8";
  k.maps = {{DEEPGEN_ARG_A, 64, 16, 128, 256, 0, 0, 0, 0},
            {DEEPGEN_ARG_B, 64, 16, 128, 256, 0, 0, 0, 0},
            {DEEPGEN_ARG_D, 64, 16, 128, 256, 0, 0, 0, 0}};
  deepgen::Gemm p = small_gemm();
  p.k = 4096, p.least[size_t(deepgen::Size::k)] = 1;
  CudaFunction f({k}, p);
  f.args.k = 48;
  ASSERT_EQ(f.launch(), DEEPGEN_OK);
  ASSERT_EQ(maps().size(), 3u);
  f.args.k = 0, f.args.a = f.args.b = nullptr;
  ASSERT_EQ(f.launch(), DEEPGEN_OK);
  ASSERT_EQ(maps().size(), 4u) << "that of D";
  EXPECT_EQ(as<int64_t>(launches().back().parameters[3]), 0);
  const std::string& none = launches().back().parameters[0];
  EXPECT_EQ(none, std::string(128, '\0')) << "what its kernel never looks at";
}

TEST_F(CudaRanges, ACallTakesTheKernelOfItsSizes) {
  const auto of = [](const std::string& config, int64_t least, int64_t most) {
    KernelText k = kernel(config);
    k.align_a = 16;
    if (least) k.taken = {{least, most}, {128, 128}, {32, 32}, {1, 1}};
    return k;
  };
  KernelText fallback = of("fallback", 0, 0);
  fallback.align_a = 1;
  CudaFunction f({of("few", 1, 16), of("some", 17, 255), of("many", 256, 8192), fallback}, ranged());
  const auto taken = [&](int64_t m) {
    f.args.m = m;
    EXPECT_EQ(f.launch(), DEEPGEN_OK);
    const std::string image = launches().back().image;
    return image.substr(image.find("name:") + 5);
  };
  const std::pair<int64_t, const char*> expected[] = {{1, "few"},    {16, "few"},   {17, "some"},
                                                      {255, "some"}, {256, "many"}, {8192, "many"}};
  for (const auto& [m, config] : expected) {
    EXPECT_EQ(taken(m), config) << m;
    EXPECT_STREQ(f.config({m}), config);
  }
  EXPECT_STREQ(f.config(), "many") << "of the largest call";
  EXPECT_EQ(f.config({8193}), nullptr);
  f.args.lda = 33;
  EXPECT_EQ(taken(16), "fallback") << "of another alignment";
}

TEST_F(CudaRanges, OfManyPartsEachCallTakesTheFirstThatIsItsOwn) {
  for (const int count : {7, 8, 40, 62, 63, 64, 80}) {
    std::vector<KernelText> kernels;
    const auto begin = [&](int part) { return part == count ? 8193 : 1 + int64_t(part) * 8192 / count; };
    for (int part = 0; part < count; ++part) {
      kernels.push_back(kernel("part" + std::to_string(part)));
      kernels.back().align_a = part % 3 == 2 ? 32 : 16;
      kernels.back().taken = {{begin(part), begin(part + 1) - 1}, {128, 128}, {32, 32}, {1, 1}};
    }
    kernels.push_back(kernel("many"));
    kernels.back().align_a = 16, kernels.back().taken = {{1, 8192}, {128, 128}, {32, 32}, {1, 1}};
    kernels.push_back(kernel("fallback"));
    kernels.back().align_a = 1;
    CudaFunction f(kernels, ranged());
    const auto taken = [&](int64_t m) {
      f.args.m = m;
      EXPECT_EQ(f.launch(), DEEPGEN_OK);
      const std::string image = launches().back().image;
      return image.substr(image.find("name:") + 5);
    };
    for (int part = 0; part < count; ++part) {
      const std::string own = "part" + std::to_string(part);
      for (const int64_t m : {begin(part), (begin(part) + begin(part + 1)) / 2, begin(part + 1) - 1}) {
        f.args.a = at(0x100020);
        EXPECT_EQ(taken(m), own) << m << " of " << count;
        f.args.a = at(0x100010);
        EXPECT_EQ(taken(m), part % 3 == 2 ? "many" : own) << "what the table names is not aligned, " << m;
        f.args.a = at(0x100004);
        EXPECT_EQ(taken(m), "fallback") << m;
      }
    }
  }
}

TEST_F(CudaRanges, AWorkspaceIsThatOfTheCall) {
  KernelText small = kernel("small"), large = kernel("large");
  small.taken = {{1, 100}, {128, 128}, {32, 32}, {1, 1}};
  small.workspace = 512 + 8192 * 64, small.workspace_fixed = 512; // of calls that it does not take
  small.rules = {none, none, none, {64, {1, 0, 0, 0}}};
  large.workspace = 4096;
  CudaFunction f({small, large}, ranged());
  EXPECT_EQ(f.workspace(), 512u + 100 * 64) << "of any call";
  EXPECT_EQ(f.workspace({1}), 4096u) << "that of any kernel which such a call may take";
  EXPECT_EQ(f.workspace({100}), 512u + 6400);
  EXPECT_EQ(f.workspace({101}), 4096u);
  EXPECT_EQ(f.workspace({9000}), 0u);
  f.args.workspace = at(0x100000);
  f.args.m = 3, f.args.workspace_bytes = 512 + 3 * 64 - 1;
  EXPECT_EQ(f.launch(), DEEPGEN_ERROR_WORKSPACE);
  f.args.workspace_bytes += 1;
  EXPECT_EQ(f.launch(), DEEPGEN_OK);
  f.args.m = 4;
  EXPECT_EQ(f.launch(), DEEPGEN_ERROR_WORKSPACE);
}

TEST_F(CudaRanges, WithoutElementsNothingIsLaunched) {
  CudaFunction f({kernel("k")}, ranged());
  EXPECT_EQ(f.launch(), DEEPGEN_ERROR_SIZE) << "no size is passed";
  f.args.m = 8193;
  EXPECT_EQ(f.launch(), DEEPGEN_ERROR_SIZE);
  f.args.m = 0;
  EXPECT_EQ(f.launch(), DEEPGEN_OK);
  f.args.a = f.args.d = nullptr;
  EXPECT_EQ(f.launch(), DEEPGEN_OK) << "there is nothing to point to";
  EXPECT_TRUE(launches().empty());
  f.args.m = 1;
  EXPECT_EQ(f.launch(), DEEPGEN_ERROR_NULL);
}

TEST_F(CudaRanges, ADescriptionThatNobodyMakesIsRefused) {
  const deepgen_size_rule wrong[] = {{-1, {64, 0, 0, 0}}, none, none};
  KernelText k = kernel("k");
  k.launches[0].grid_rules = wrong;
  CudaFunction f({k}, ranged());
  f.args.m = 1;
  EXPECT_EQ(f.launch(), DEEPGEN_ERROR_ARGUMENT);
}

} // namespace
