// Launches of attention: which kernel a call takes by its strides, its grid, what kernels get; on the fake
// driver.
#include "fake_devices.h"
#include "generator/embed/operand_table.h"
#include "tests/unit/runtime/launched.h"

#include "deepgen/runtime.h"
#include "tests/paths.h"

#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstdlib>
#include <vector>

namespace {

using Grid = std::array<uint32_t, 3>;

/// Two kernels: of operands that are aligned to 16 bytes, and of any.
class CudaAttention : public ::testing::Test {
protected:
  void SetUp() override {
    setenv("DEEPGEN_CUDA_DRIVER", deepgen::paths::fake_cuda, 1);
    fake_cuda::reset({deepgen::cuda_tests::h100()});
    fake_cuda::set_current(0);
    problem_ = deepgen::Attention::parse(
        "attention heads=4 kv_heads=2 head_dim=64 value_dim=64 q=bf16 kv=bf16 out=bf16 mask=causal "
        "queries=1000 keys=5000 options=varlen+lse" +
        pages() + " at_batch=1 at_queries=1000 at_keys=5000");
    key_ = problem_.key();
    operands_ = deepgen::operand_table(problem_);
    const auto sizes = deepgen::size_ranges(problem_);
    std::copy(sizes.begin(), sizes.end(), function_.sizes);
    for (size_t i = 0; i < 2; ++i) add(i);
    function_.name = "test", function_.problem = key_.c_str(), function_.op = DEEPGEN_OP_ATTENTION;
    function_.operands = operands_.data(), function_.operand_count = uint32_t(operands_.size());
    function_.kernels = kernels_, function_.kernel_count = 2;
    function_.selected = &selected_, function_.devices = &devices_;
    args_.q = at(0x10000), args_.key = at(0x20000), args_.value = at(0x30000), args_.out = at(0x40000);
    args_.lse = static_cast<float*>(at(0x50000));
  }
  void TearDown() override { deepgen_unregister(&function_, 1); }

  /// The config of the kernel that the call took.
  std::string taken() {
    EXPECT_EQ(deepgen_launch_attention(&function_, &args_, nullptr), DEEPGEN_OK);
    const std::string image = launches().back().image;
    return image.substr(image.find("name:") + 5);
  }
  virtual std::string pages() const { return ""; }
  static const std::vector<fake_cuda::Launch>& launches() { return fake_cuda::state().launches; }

  deepgen_attention_args args_;
  deepgen_function function_{};

  /// The aligned kernel takes tensor maps of Q, K and V in place of its arguments.
  void use_maps() {
    images_[0] = "cubin sm_90 deepgen_kernel=128,128,128 name:aligned";
    codes_[0].code_bytes = images_[0].size(), codes_[0].code = images_[0].c_str();
    kernels_[0].args = map_slots_, kernels_[0].arg_count = 3;
    kernels_[0].maps = maps_, kernels_[0].map_count = 3;
  }

  /// The aligned kernel takes calls of few queries alone, and has scratch for parts of their sums.
  void share_calls() {
    kernels_[0].taken = few_queries_, kernels_[0].workspace = 4096;
    launch_[0] = {"deepgen_kernel", {8 * 16, 4, 65536}, {128, 1, 1}, {1, 1, 1}, 0, 0, split_rules_};
    kernels_[0].launches = launch_;
  }

private:
  void add(size_t i) {
    images_[i] = std::string("cubin sm_90 deepgen_kernel=8,8,8,8,4,8,8,8 name:") + (i ? "any" : "aligned");
    codes_[i] = {"sm_90", images_[i].c_str(), images_[i].size(), nullptr, &states_[i]};
    for (const deepgen_operand& x : operands_) {
      const bool input = x.slot == DEEPGEN_ARG_Q || x.slot == DEEPGEN_ARG_KEY || x.slot == DEEPGEN_ARG_VALUE;
      requirements_[i].push_back({i ? 1u : input ? 16u : x.slot == DEEPGEN_ARG_OUT ? 4u : 1u, 0});
    }
    deepgen_kernel& k = kernels_[i];
    k = {};
    k.arch = "sm_90a", k.config = i ? "any" : "aligned", k.args = slots_, k.arg_count = 8;
    k.gpu = &codes_[i], k.requirements = requirements_[i].data(), k.launches = &launch_[1],
    k.launch_count = 1;
  }

  static constexpr deepgen_size_rule rules_[] = {{1, {64, 0, 0, 0}}, {0, {0, 0, 0, 0}}, {1, {0, 0, 0, 1}}};
  const uint8_t slots_[8] = {
      DEEPGEN_ARG_Q,           DEEPGEN_ARG_Q_TOKEN,    DEEPGEN_ARG_KEYS_USED,         DEEPGEN_ARG_N,
      DEEPGEN_ARG_SCORE_SCALE, DEEPGEN_ARG_PAGE_TABLE, DEEPGEN_ARG_PAGE_TABLE_STRIDE, DEEPGEN_ARG_KEY_BATCH};
  const uint8_t map_slots_[3] = {DEEPGEN_ARG_MAP_VALUE, DEEPGEN_ARG_MAP_Q, DEEPGEN_ARG_MAP_KEY};
  const deepgen_tensor_map maps_[3] = {{DEEPGEN_ARG_Q, 64, 128, 128, 128, 0, 0, 0, 0},
                                       {DEEPGEN_ARG_KEY, 64, 96, 128, 128, 0, 0, 0, 0},
                                       {DEEPGEN_ARG_VALUE, 64, 96, 128, 128, 0, 0, 0, 0}};
  static constexpr deepgen_size_rule split_rules_[] = {
      {8, {64, 0, 0, 0}}, {0, {0, 0, 0, 0}}, {1, {0, 0, 0, 1}}};
  static constexpr deepgen_range few_queries_[] = {{1, 16}, {512, 5000}, {1, 1}, {1, 8}};
  deepgen_launch launch_[2] = {{}, {"deepgen_kernel", {16, 4, 65536}, {128, 1, 1}, {1, 1, 1}, 0, 0, rules_}};
  deepgen::Attention problem_;
  std::string key_, images_[2];
  std::vector<deepgen_operand> operands_;
  std::vector<deepgen_requirement> requirements_[2];
  void* volatile states_[2] = {};
  deepgen_gpu_code codes_[2];
  deepgen_kernel kernels_[2];
  const deepgen_kernel* selected_ = nullptr;
  void* volatile devices_ = nullptr;
};

TEST_F(CudaAttention, AGridFollowsQueriesAndBatch) {
  args_.batch = 3, args_.max_queries = 65, args_.max_keys = 5000;
  EXPECT_EQ(taken(), "aligned");
  EXPECT_EQ(launches().back().grid, (Grid{2, 4, 3}));
  EXPECT_EQ(as<int64_t>(launches().back().parameters[1]), 4 * 64) << "tokens before heads";
  EXPECT_EQ(as<int64_t>(launches().back().parameters[3]), 5000);
  EXPECT_EQ(as<float>(launches().back().parameters[4]), 0.125f);
  args_.max_keys = 0;
  EXPECT_EQ(taken(), "aligned") << "zeros are written";
  const size_t made = launches().size();
  args_.max_queries = 0;
  EXPECT_EQ(deepgen_launch_attention(&function_, &args_, nullptr), DEEPGEN_OK);
  EXPECT_EQ(launches().size(), made) << "nothing is";
}

/// By its batch, queries and keys; each takes the grid and the scratch of its kernel.
TEST_F(CudaAttention, CallsTakeTheKernelOfTheirSizes) {
  share_calls();
  alignas(256) static char scratch[4096];
  const auto call = [&](int64_t batch, int64_t queries, int64_t keys, bool with_scratch) -> std::string {
    args_.batch = batch, args_.max_queries = queries, args_.max_keys = keys;
    args_.workspace = with_scratch ? scratch : nullptr, args_.workspace_bytes = with_scratch ? 4096 : 0;
    if (deepgen_launch_attention(&function_, &args_, nullptr)) return "refused";
    const std::string image = launches().back().image;
    return image.substr(image.find("name:") + 5);
  };
  EXPECT_EQ(call(8, 1, 5000, true), "aligned");
  EXPECT_EQ(launches().back().grid, (Grid{8, 4, 8})) << "8 splits";
  EXPECT_EQ(call(8, 1, 5000, false), "refused") << "without scratch";
  EXPECT_EQ(call(1, 16, 512, true), "aligned") << "the box's other corner";
  EXPECT_EQ(call(9, 1, 5000, false), "any") << "a larger batch";
  EXPECT_EQ(call(1, 17, 5000, false), "any") << "more queries";
  EXPECT_EQ(launches().back().grid, (Grid{1, 4, 1}));
  EXPECT_EQ(call(1, 1, 511, false), "any") << "fewer keys";
  EXPECT_EQ(call(1, 1, 0, true), "aligned") << "no size is 0's own";
  EXPECT_EQ(deepgen_launch_workspace_size(&function_), 4096u) << "of all calls";
  const auto at = [&](int64_t batch, int64_t queries, int64_t keys) {
    const deepgen_call_sizes sizes = {queries, keys, DEEPGEN_AS_BUILT, batch};
    return std::pair(std::string(deepgen_launch_config_at(&function_, &sizes)),
                     deepgen_launch_workspace_size_at(&function_, &sizes));
  };
  EXPECT_EQ(at(8, 1, 4096), std::pair(std::string("aligned"), size_t(4096)));
  EXPECT_EQ(at(1, 512, 512), std::pair(std::string("any"), size_t(0)));
}

/// Of all four operands and each of their three strides, and of bases.
TEST_F(CudaAttention, StridesThatAreLessAlignedTakeTheNextKernel) {
  args_.batch = 2, args_.max_queries = args_.max_keys = 10;
  const std::vector<int64_t deepgen_attention_args::*> inputs = {
      &deepgen_attention_args::q_token,     &deepgen_attention_args::q_head,
      &deepgen_attention_args::q_batch,     &deepgen_attention_args::key_token,
      &deepgen_attention_args::key_head,    &deepgen_attention_args::key_batch,
      &deepgen_attention_args::value_token, &deepgen_attention_args::value_head,
      &deepgen_attention_args::value_batch};
  for (const auto stride : inputs) {
    args_.*stride = 65536;
    EXPECT_EQ(taken(), "aligned");
    args_.*stride = 65536 + 4;
    EXPECT_EQ(taken(), "any") << "8 bytes";
    args_.*stride = 0;
  }
  args_.out_token = 4 * 64 + 1;
  EXPECT_EQ(taken(), "any");
  args_.out_token = 4 * 64 + 2;
  EXPECT_EQ(taken(), "aligned") << "4 bytes";
  args_.value = at(0x30008);
  EXPECT_EQ(taken(), "any");
}

/// In f32 it would be 0 or infinite, or so close that products with log2 e are, and masked rows would be NaN.
TEST_F(CudaAttention, AScaleThatF32DoesNotHoldIsRefused) {
  args_.max_queries = args_.max_keys = 10;
  for (double scale : {1e-300, 0x1p-150, 0x1p-149, 0x1.fffffep-127, 0x1.000002p+127, double(__FLT_MAX__),
                       1e39, double(INFINITY), double(NAN)})
    for (double sign : {1, -1}) {
      args_.scale = sign * scale;
      EXPECT_EQ(deepgen_launch_attention(&function_, &args_, nullptr), DEEPGEN_ERROR_ARGUMENT) << scale;
    }
  EXPECT_TRUE(launches().empty());
  const std::string words = deepgen_status_string(DEEPGEN_ERROR_ARGUMENT);
  EXPECT_NE(words.find("scale is 0 or of magnitude 2^-126 to 2^127"), std::string::npos) << words;
  for (double scale : {0x1p-126, 1.0, 0x1p+127})
    for (double sign : {1, -1}) {
      args_.scale = sign * scale;
      ASSERT_EQ(deepgen_launch_attention(&function_, &args_, nullptr), DEEPGEN_OK) << scale;
      EXPECT_EQ(as<float>(launches().back().parameters[4]), float(sign * scale));
    }
}

class CudaSoftcap : public CudaAttention {
protected:
  std::string pages() const override { return "+softcap"; }
};

TEST_F(CudaSoftcap, OneThatF32DoesNotHoldIsRefused) {
  args_.max_queries = args_.max_keys = 10;
  for (double softcap : {1e-300, 0x1p-149, 1e39, double(INFINITY), double(NAN), -1.0}) {
    args_.softcap = softcap;
    EXPECT_EQ(deepgen_launch_attention(&function_, &args_, nullptr), DEEPGEN_ERROR_ARGUMENT) << softcap;
  }
  for (double softcap : {0.0, 0x1p-126, 30.0, double(__FLT_MAX__)}) {
    args_.softcap = softcap;
    EXPECT_EQ(deepgen_launch_attention(&function_, &args_, nullptr), DEEPGEN_OK) << softcap;
  }
}

class CudaBias : public CudaAttention {
protected:
  std::string pages() const override { return " bias=f16"; }
};

TEST_F(CudaBias, BadOnesAreRefused) {
  args_.batch = 2, args_.max_queries = 7, args_.max_keys = 10, args_.bias = at(0x60000);
  const auto status = [&] { return deepgen_launch_attention(&function_, &args_, nullptr); };
  EXPECT_EQ(status(), DEEPGEN_OK);
  for (int64_t deepgen_attention_args::* stride :
       {&deepgen_attention_args::bias_query, &deepgen_attention_args::bias_head,
        &deepgen_attention_args::bias_batch}) {
    for (int64_t good : {int64_t(DEEPGEN_BROADCAST), int64_t(10), int64_t(1) << 40}) {
      args_.*stride = good;
      EXPECT_EQ(status(), DEEPGEN_OK) << good;
    }
    for (int64_t bad : {int64_t(-2), INT64_MIN, INT64_MAX, INT64_MAX / 2}) {
      args_.*stride = bad;
      EXPECT_EQ(status(), DEEPGEN_ERROR_STRIDE) << bad;
    }
    args_.*stride = 0;
  }
  args_.bias = at(0x60001);
  EXPECT_EQ(status(), DEEPGEN_ERROR_ALIGNMENT);
  args_.bias = at(0x60002);
  EXPECT_EQ(taken(), "aligned") << "an element is enough";
  args_.bias = nullptr;
  EXPECT_EQ(status(), DEEPGEN_ERROR_NULL);
  args_.max_keys = 0;
  EXPECT_EQ(status(), DEEPGEN_OK) << "none is read";
}

TEST_F(CudaAttention, AFunctionWithoutABiasTakesNone) {
  args_.max_queries = args_.max_keys = 10, args_.bias = at(0x60000);
  EXPECT_EQ(deepgen_launch_attention(&function_, &args_, nullptr), DEEPGEN_ERROR_ARGUMENT);
  args_.bias = nullptr, args_.bias_head = DEEPGEN_BROADCAST;
  EXPECT_EQ(deepgen_launch_attention(&function_, &args_, nullptr), DEEPGEN_ERROR_ARGUMENT);
}

class CudaPages : public CudaAttention {
protected:
  std::string pages() const override { return " page=16"; }
  deepgen_status launch() { return deepgen_launch_attention(&function_, &args_, nullptr); }
  template <typename T>
  static T passed(size_t index) {
    return as<T>(launches().back().parameters[index]);
  }
};

/// The table is read on the device: the host passes on where it is.
TEST_F(CudaPages, KernelsGetTheTable) {
  args_.batch = 3, args_.max_queries = 1, args_.max_keys = 1000;
  args_.page_table = static_cast<const int32_t*>(at(0x60000));
  args_.keys_used = static_cast<const int32_t*>(at(0x70000));
  EXPECT_EQ(taken(), "aligned");
  EXPECT_EQ(passed<uint64_t>(5), 0x60000u);
  EXPECT_EQ(passed<uint64_t>(2), 0x70000u);
  EXPECT_EQ(passed<int64_t>(6), 63) << "pages of 16 tokens for 1000";
  EXPECT_EQ(passed<int64_t>(7), 16 * 2 * 64) << "elements from page to page";
  args_.page_table_stride = 400, args_.key_batch = 5000;
  EXPECT_EQ(taken(), "aligned");
  EXPECT_EQ(passed<int64_t>(6), 400);
  EXPECT_EQ(passed<int64_t>(7), 5000);
  args_.page_table_stride = DEEPGEN_BROADCAST, args_.key_batch = 5004;
  EXPECT_EQ(taken(), "any") << "pages that are aligned to 8 bytes";
  EXPECT_EQ(passed<int64_t>(6), 0) << "one table for all";
}

/// Of pages in the place of entries, as many as there may be: only whoever made the cache knows how many it
/// has.
TEST_F(CudaPages, TensorMapsHavePagesInThePlaceOfEntries) {
  use_maps();
  args_.batch = 3, args_.max_queries = 65, args_.max_keys = 500;
  args_.page_table = static_cast<const int32_t*>(at(0x60000));
  ASSERT_EQ(taken(), "aligned");
  const auto& maps = fake_cuda::state().maps;
  ASSERT_EQ(maps.size(), 3u);
  EXPECT_EQ(maps[0].sizes, (std::vector<uint64_t>{64, 65, 4, 3})) << "Q has no pages";
  const uint64_t any = INT32_MAX;
  EXPECT_EQ(maps[1].address, 0x20000u);
  EXPECT_EQ(maps[1].sizes, (std::vector<uint64_t>{64, any, 2, any}));
  EXPECT_EQ(maps[1].strides, (std::vector<uint64_t>{256, 128, 256 * 16})) << "bytes";
  EXPECT_EQ(maps[2].address, 0x30000u);
  EXPECT_EQ(maps[2].sizes, maps[1].sizes);
  fake_cuda::state().maps.clear();
  args_.value_head = 16 * 64, args_.value_token = 64, args_.value_batch = 5000,
  args_.key_batch = DEEPGEN_BROADCAST;
  ASSERT_EQ(taken(), "aligned");
  EXPECT_EQ(maps[1].strides, (std::vector<uint64_t>{256, 128, 0})) << "one page for all";
  EXPECT_EQ(maps[2].strides, (std::vector<uint64_t>{128, 2048, 10000}));
  fake_cuda::state().maps.clear();
  args_.key_batch = int64_t(1) << 40;
  EXPECT_EQ(launch(), DEEPGEN_ERROR_STRIDE) << "2^31 pages so far apart";
  args_.key_batch = 0, args_.max_keys = 0, args_.page_table = nullptr;
  ASSERT_EQ(taken(), "aligned");
  EXPECT_EQ(maps.size(), 1u) << "no keys, no map of them";
}

TEST_F(CudaPages, BadTablesAreRefused) {
  args_.batch = 3, args_.max_queries = 1, args_.max_keys = 1000;
  EXPECT_EQ(launch(), DEEPGEN_ERROR_NULL) << "no table";
  args_.max_keys = 0;
  EXPECT_EQ(launch(), DEEPGEN_OK) << "no keys";
  args_.max_keys = 1000, args_.page_table = static_cast<const int32_t*>(at(0x60002));
  EXPECT_EQ(launch(), DEEPGEN_ERROR_ALIGNMENT);
  args_.page_table = static_cast<const int32_t*>(at(0x60000)), args_.page_table_stride = -2;
  EXPECT_EQ(launch(), DEEPGEN_ERROR_STRIDE);
  args_.page_table_stride = INT64_MAX / 4;
  EXPECT_EQ(launch(), DEEPGEN_ERROR_STRIDE) << "beyond memory";
  args_.page_table_stride = 0, args_.key_offsets = static_cast<const int32_t*>(at(0x80000));
  EXPECT_EQ(launch(), DEEPGEN_ERROR_ARGUMENT) << "pages have no offsets";
  args_.key_offsets = nullptr, args_.value_batch = INT64_MAX / 1000000000;
  EXPECT_EQ(launch(), DEEPGEN_ERROR_STRIDE) << "2^31 pages";
}

TEST_F(CudaAttention, AFunctionWithoutPagesTakesNone) {
  args_.max_queries = args_.max_keys = 10;
  args_.page_table = static_cast<const int32_t*>(at(0x60000));
  EXPECT_EQ(deepgen_launch_attention(&function_, &args_, nullptr), DEEPGEN_ERROR_ARGUMENT);
}

TEST_F(CudaAttention, TensorMapsHaveTheCallsTokensHeadsAndEntries) {
  use_maps();
  args_.batch = 3, args_.max_queries = 65, args_.max_keys = 500, args_.key_token = 128;
  ASSERT_EQ(taken(), "aligned");
  const auto& maps = fake_cuda::state().maps;
  ASSERT_EQ(maps.size(), 3u);
  EXPECT_EQ(maps[0].address, 0x10000u);
  EXPECT_EQ(maps[0].sizes, (std::vector<uint64_t>{64, 65, 4, 3}));
  EXPECT_EQ(maps[0].strides, (std::vector<uint64_t>{512, 128, 512 * 65})) << "bytes";
  EXPECT_EQ(maps[0].box, (std::vector<uint32_t>{64, 128, 1, 1}));
  EXPECT_EQ(maps[1].address, 0x20000u);
  EXPECT_EQ(maps[1].sizes, (std::vector<uint64_t>{64, 500, 2, 3}));
  EXPECT_EQ(maps[1].strides, (std::vector<uint64_t>{256, 128, 256 * 500}));
  EXPECT_EQ(maps[1].type, 9) << "bf16";
  EXPECT_EQ(maps[1].swizzle, 3);
  EXPECT_EQ(maps[2].address, 0x30000u);
  using Words = std::array<uint64_t, 16>;
  EXPECT_EQ(as<Words>(launches().back().parameters[0])[0], 2u) << "the map of V, encoded last";
  EXPECT_EQ(as<Words>(launches().back().parameters[1])[0], 0u);
}

/// The host does not know how many tokens there are where the device reads where entries begin.
TEST_F(CudaAttention, TensorMapsOfPackedEntriesHaveAnyNumberOfTokens) {
  use_maps();
  args_.batch = 3, args_.max_queries = 65, args_.max_keys = 500;
  args_.query_offsets = static_cast<const int32_t*>(at(0x60000));
  ASSERT_EQ(taken(), "aligned");
  EXPECT_EQ(fake_cuda::state().maps[0].sizes[1], uint64_t(INT32_MAX));
  EXPECT_EQ(fake_cuda::state().maps[0].strides[2], 0u);
  EXPECT_EQ(fake_cuda::state().maps[1].sizes[1], 500u) << "keys are not packed";
  fake_cuda::state().maps.clear();
  args_.max_keys = 0;
  ASSERT_EQ(taken(), "aligned") << "no keys, no map of them";
  EXPECT_EQ(fake_cuda::state().maps.size(), 1u);
  args_.max_keys = 500, args_.key_token = int64_t(1) << 40;
  EXPECT_EQ(taken(), "any") << "a stride that no map has";
}

} // namespace
