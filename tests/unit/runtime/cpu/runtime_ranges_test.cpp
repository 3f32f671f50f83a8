// Functions with sizes that a call passes: which are taken, which kernel runs, and on which tiles.
#include "deepgen/kernel_abi.h"
#include "deepgen/runtime.h"
#include "runtime/core/arguments.h"
#include "runtime/core/part_index.h"
#include "runtime/cpu/select.h"
#include "tests/unit/runtime/gemm_operands.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

namespace {

constexpr int64_t kMost = 1000, kN = 40, kK = 30, kTile = 7;

enum Slot { kA, kD, kLdd, kM, kM0, kM1, kAlpha, kWorkspace, kSlots };
constexpr uint8_t kArgs[kSlots] = {DEEPGEN_ARG_A,  DEEPGEN_ARG_D,  DEEPGEN_ARG_LDD,   DEEPGEN_ARG_M,
                                   DEEPGEN_ARG_M0, DEEPGEN_ARG_M1, DEEPGEN_ARG_ALPHA, DEEPGEN_ARG_WORKSPACE};

/// Adds `amount` to the first element of each row of its tiles: rows that no call or two calls compute show.
template <int amount>
void mark_rows(const uint64_t* args) {
  auto* d = reinterpret_cast<float*>(args[kD]);
  const int64_t end = std::min(int64_t(args[kM1]) * kTile, int64_t(args[kM]));
  for (int64_t i = int64_t(args[kM0]) * kTile; i < end; ++i) d[i * int64_t(args[kLdd])] += amount;
  if (args[kWorkspace]) *reinterpret_cast<volatile char*>(args[kWorkspace]) = 1;
}
float seen_alpha = 0;
void see_alpha(const uint64_t* args) { std::memcpy(&seen_alpha, &args[kAlpha], sizeof seen_alpha); }

class Ranges : public ::testing::Test {
protected:
  deepgen_range small[DEEPGEN_SIZES] = {{1, 16}, {kN, kN}, {kK, kK}, {1, 1}};
  deepgen_size_rule rules[DEEPGEN_RULE_COUNT] = {{1, {kTile, 0, 0, 0}}, {}, {}, {}};
  std::vector<deepgen_kernel> kernels;
  const deepgen_kernel* volatile selected = nullptr;
  deepgen_function function{};
  deepgen::RuntimeOperands operands;
  std::vector<float> a = std::vector<float>(kMost * kK), b = std::vector<float>(kK * kN),
                     d = std::vector<float>(kMost * kN);
  deepgen_gemm_args args;

  deepgen_kernel kernel(const char* config, deepgen_cpu_entry entry) {
    deepgen_kernel k{};
    k.arch = "cpu", k.config = config, k.isa = 1, k.entry = entry, k.args = kArgs, k.arg_count = kSlots;
    k.tiles_m = (kMost + kTile - 1) / kTile, k.tiles_n = k.tiles_b = 1, k.grain_m = 2, k.grain_n = 1;
    k.rules = rules, k.workspace = 1000;
    return k;
  }
  void SetUp() override {
    kernels = {kernel("small", mark_rows<1>), kernel("large", mark_rows<2>)};
    kernels[0].taken = small;
    kernels[0].workspace = 5000;
    deepgen::Gemm p;
    p.m = kMost, p.n = kN, p.k = kK, p.least[0] = 1;
    set(p);
    args.a = a.data(), args.b = b.data(), args.d = d.data();
    deepgen_set_num_threads(2);
  }
  void set(const deepgen::Gemm& p) {
    function.name = "test", function.problem = "gemm ...", function.kernels = kernels.data();
    function.kernel_count = uint32_t(kernels.size()), function.selected = &selected;
    operands.set(function, p);
    function.work = 1e12; // tasks at every size that has tiles for them
  }
  deepgen_status run(int64_t m) {
    args.m = m;
    return deepgen_run_gemm(&function, &args);
  }
  /// The first element of each row.
  std::vector<float> marks() const {
    std::vector<float> out;
    for (int64_t i = 0; i < kMost; ++i) out.push_back(d[size_t(i * kN)]);
    return out;
  }
};

TEST_F(Ranges, EachCallComputesItsRowsOnce) {
  for (int64_t m : {1, 6, 7, 8, 16, 17, 100, 999, 1000}) {
    std::fill(d.begin(), d.end(), 0.0f);
    ASSERT_EQ(run(m), DEEPGEN_OK) << m;
    std::vector<float> wanted(size_t(kMost), 0.0f);
    std::fill(wanted.begin(), wanted.begin() + m, m <= 16 ? 1.0f : 2.0f);
    EXPECT_EQ(marks(), wanted) << m;
  }
}

/// Boxes of M and K share the calls; which one takes a call of 0 of a size is of no matter, as long as one
/// does.
TEST_F(Ranges, KernelsShareTheCallsOfTwoRanges) {
  deepgen_range shallow[DEEPGEN_SIZES] = {{17, kMost}, {kN, kN}, {1, 9}, {1, 1}};
  kernels = {kernels[0], kernel("shallow", mark_rows<3>), kernels[1]};
  small[2] = {1, kK};
  kernels[1].taken = shallow;
  deepgen::Gemm p;
  p.m = kMost, p.n = kN, p.k = kK, p.least[0] = 1, p.least[2] = 1;
  set(p);
  for (int64_t m : {1, 16, 17, 1000})
    for (int64_t k : {1, 9, 10, 30}) {
      std::fill(d.begin(), d.end(), 0.0f);
      args.k = k;
      ASSERT_EQ(run(m), DEEPGEN_OK) << m << " " << k;
      EXPECT_EQ(marks()[0], m <= 16 ? 1.0f : k <= 9 ? 3.0f : 2.0f) << m << " " << k;
    }
  args.k = 0;
  EXPECT_EQ(run(100), DEEPGEN_OK);
  args.k = kK + 1;
  EXPECT_EQ(run(100), DEEPGEN_ERROR_SIZE);
}

using Box = std::array<deepgen_range, DEEPGEN_SIZES>;

/// Boxes that share all sizes, as a build makes them, or any that overlap.
std::vector<Box> draw_boxes(std::mt19937_64& random, const Box& all, size_t count, bool share) {
  const auto between = [&](int64_t x, int64_t y) { return x + int64_t(random() % uint64_t(y - x + 1)); };
  std::vector<Box> boxes{all};
  while (boxes.size() < count) {
    Box next = all;
    const size_t size = random() % DEEPGEN_SIZES;
    Box& cut = boxes[random() % boxes.size()];
    if (!share) {
      for (deepgen_range& x : next) x.least = between(x.least, x.most), x.most = between(x.least, x.most);
    } else if (cut[size].least == cut[size].most) {
      continue;
    } else {
      next = cut;
      cut[size].most = between(cut[size].least, cut[size].most - 1);
      next[size].least = cut[size].most + 1;
    }
    boxes.push_back(next);
  }
  std::shuffle(boxes.begin(), boxes.end(), random);
  return boxes;
}

/// A table answers what looking at one kernel after the other would, at borders, at 0, and anywhere.
TEST_F(Ranges, ATableOfManyPartsAnswersAsTheListDoes) {
  std::mt19937_64 random(11);
  int tables = 0;
  for (int round = 0; round < 80; ++round) {
    deepgen::Gemm p;
    p.m = kMost, p.n = round % 2 ? 300 : kN, p.k = round % 4 > 1 ? 70 : kK, p.batch = round % 8 > 3 ? 5 : 1;
    p.least[0] = 1 + round % 3;
    if (round % 2) p.least[1] = 1;
    if (round % 4 > 1) p.least[2] = 7;
    if (round % 8 > 3) p.least[3] = 1;
    const size_t parts = round < 4 ? 32 : 2 + random() % 70;
    kernels.assign(parts, kernel("part", mark_rows<1>));
    set(p);
    Box all;
    std::copy(std::begin(function.sizes), std::end(function.sizes), all.begin());
    const std::vector<Box> boxes = draw_boxes(random, all, parts, round % 5 > 0);
    for (size_t i = 0; i + 1 < parts; ++i) kernels[i].taken = boxes[i].data();
    selected = nullptr;
    ASSERT_EQ(deepgen_register(&function, 1), DEEPGEN_OK);
    bool table = false;
    for (int call = 0; call < 3000; ++call) {
      int64_t sizes[DEEPGEN_SIZES];
      for (size_t i = 0; i < DEEPGEN_SIZES; ++i) {
        const deepgen_range &some = boxes[random() % parts][i], &x = all[i];
        const int64_t choices[] = {some.least, some.least - 1,
                                   some.most,  some.most + 1,
                                   x.least,    x.most,
                                   0,          x.least + int64_t(random() % uint64_t(x.most - x.least + 1))};
        sizes[i] = choices[random() % 16 < 9 ? 7 : random() % 7];
        if (sizes[i] < x.least || sizes[i] > x.most)
          sizes[i] = random() % 8 || x.least == x.most ? x.most : 0;
      }
      const deepgen_kernel* listed = kernels.data();
      while (!deepgen::takes(*listed, sizes)) ++listed;
      ASSERT_EQ(deepgen::kernel_for(function, sizes), listed)
          << sizes[0] << " " << sizes[1] << " " << sizes[2] << " " << sizes[3] << ", round " << round;
      table |= deepgen::indexed_part(function, kernels.data(), sizes) != nullptr;
    }
    tables += table;
    EXPECT_TRUE(table || round >= 4);
    deepgen_unregister(&function, 1);
    const int64_t most[] = {p.m, p.n, p.k, p.batch};
    EXPECT_EQ(deepgen::indexed_part(function, kernels.data(), most), nullptr);
  }
  EXPECT_GT(tables, 30);
  EXPECT_LT(tables, 80) << "some functions have few parts, or more than a table has room for";
}

/// Places of tables are few: functions beyond have lists.
TEST_F(Ranges, ManyFunctionsHaveTablesOrLists) {
  kernels.assign(20, kernel("part", mark_rows<1>));
  std::vector<Box> boxes(20);
  for (int64_t i = 0; i < 19; ++i) {
    boxes[size_t(i)] = {{{1 + 50 * i, 50 + 50 * i}, {kN, kN}, {kK, kK}, {1, 1}}};
    kernels[size_t(i)].taken = boxes[size_t(i)].data();
  }
  deepgen::Gemm p;
  p.m = kMost, p.n = kN, p.k = kK, p.least[0] = 1;
  set(p);
  std::vector<deepgen_function> many(3000, function);
  for (int again = 0; again < 2; ++again) {
    ASSERT_EQ(deepgen_register(many.data(), uint32_t(many.size())), DEEPGEN_OK);
    int tables = 0;
    for (const deepgen_function& f : many)
      for (int64_t m : {1, 50, 51, 777, 1000}) {
        const int64_t sizes[] = {m, kN, kK, 1};
        ASSERT_EQ(deepgen::kernel_for(f, sizes) - kernels.data(), (m - 1) / 50);
        tables += deepgen::indexed_part(f, kernels.data(), sizes) != nullptr;
      }
    EXPECT_GT(tables, 5 * 500) << again;
    EXPECT_LT(tables, 5 * 3000);
    deepgen_unregister(many.data(), uint32_t(many.size()));
  }
}

TEST_F(Ranges, SizesOutsideAreRefused) {
  for (int64_t m : {int64_t(-2), int64_t(DEEPGEN_AS_BUILT), kMost + 1, INT64_MAX, INT64_MIN})
    EXPECT_EQ(run(m), DEEPGEN_ERROR_SIZE) << m;
  args.n = kN, args.k = kK, args.batch = 1;
  EXPECT_EQ(run(5), DEEPGEN_OK) << "the built sizes may be passed";
  args.n = kN + 1;
  EXPECT_EQ(run(5), DEEPGEN_ERROR_SIZE);
  args.n = DEEPGEN_AS_BUILT, args.batch = 0;
  EXPECT_EQ(run(5), DEEPGEN_ERROR_SIZE) << "0 is of ranges alone";
  EXPECT_NE(std::string(deepgen_status_string(DEEPGEN_ERROR_SIZE)).find("deepgen_size_ranges"),
            std::string::npos);
  deepgen_call_sizes least, most;
  ASSERT_EQ(deepgen_size_ranges(&function, &least, &most), DEEPGEN_OK);
  EXPECT_EQ(std::vector<int64_t>({least.m, most.m, least.n, most.n, least.batch}),
            std::vector<int64_t>({1, kMost, kN, kN, 1}));
  EXPECT_EQ(deepgen_size_ranges(nullptr, &least, nullptr), DEEPGEN_ERROR_NULL);
}

TEST_F(Ranges, NothingIsWrittenWithoutElements) {
  args.a = nullptr, args.d = nullptr; // as a tensor of no elements has it
  EXPECT_EQ(run(0), DEEPGEN_OK);
  EXPECT_EQ(run(1), DEEPGEN_ERROR_NULL);
  args.b = nullptr;
  EXPECT_EQ(run(0), DEEPGEN_ERROR_NULL) << "B has elements";
}

TEST_F(Ranges, WithoutProductsAlphaIsNone) {
  deepgen::Gemm p;
  p.m = 5, p.n = kN, p.k = kK, p.least[size_t(deepgen::Size::k)] = 1;
  kernels = {kernel("alpha", see_alpha)};
  set(p);
  args.alpha = INFINITY, args.k = 0, args.a = args.b = nullptr;
  ASSERT_EQ(deepgen_run_gemm(&function, &args), DEEPGEN_OK);
  EXPECT_EQ(seen_alpha, 1) << "infinity times no products would be NaN";
  args.k = 3;
  EXPECT_EQ(deepgen_run_gemm(&function, &args), DEEPGEN_ERROR_NULL);
}

TEST_F(Ranges, LeadingDimensionsAndOverlapsAreThoseOfTheCall) {
  deepgen::Gemm p;
  p.m = 10, p.n = kN, p.k = kK, p.least[size_t(deepgen::Size::n)] = 1, p.layout = deepgen::Layout::nn;
  kernels = {kernel("any", mark_rows<1>)};
  kernels[0].rules = nullptr;
  kernels[0].tiles_m = 2;
  set(p);
  const auto call = [&](int64_t n) {
    args.n = n;
    return deepgen_run_gemm(&function, &args);
  };
  args.ldd = 20;
  EXPECT_EQ(call(20), DEEPGEN_OK);
  EXPECT_EQ(call(21), DEEPGEN_ERROR_LEADING_DIMENSION);
  args.ldd = 0, args.beta = 1, args.c = d.data() + 10 * 20;
  EXPECT_EQ(call(20), DEEPGEN_OK) << "behind the D of this call";
  EXPECT_EQ(call(21), DEEPGEN_ERROR_OVERLAP);
}

TEST_F(Ranges, WorkspaceOfTheWorstAndOfOneSize) {
  ASSERT_EQ(deepgen_register(&function, 1), DEEPGEN_OK);
  const auto at = [&](int64_t m) {
    deepgen_call_sizes sizes;
    sizes.m = m;
    return deepgen_workspace_size_at(&function, &sizes);
  };
  const size_t worst = deepgen_workspace_size(&function);
  EXPECT_EQ(at(1), 5056u) << "one tile, one piece of whole cache lines";
  EXPECT_EQ(at(16), 2 * 5056u);
  EXPECT_EQ(at(1000), 2 * 1024u);
  EXPECT_EQ(at(1001), 0u);
  EXPECT_GE(worst, 2 * 5056u);
  std::unique_ptr<char, decltype(&free)> memory(static_cast<char*>(aligned_alloc(64, 10112 + 64)), &free);
  args.workspace = memory.get(), args.workspace_bytes = at(16);
  EXPECT_EQ(run(16), DEEPGEN_OK);
  args.workspace_bytes = at(16) - 1;
  EXPECT_EQ(run(16), DEEPGEN_ERROR_WORKSPACE);
}

TEST_F(Ranges, TheConfigOfASize) {
  deepgen_call_sizes sizes;
  EXPECT_EQ(deepgen_selected_config_at(&function, &sizes), nullptr) << "as built, it has no M";
  sizes.m = 16;
  EXPECT_STREQ(deepgen_selected_config_at(&function, &sizes), "small");
  sizes.m = 17;
  EXPECT_STREQ(deepgen_selected_config_at(&function, &sizes), "large");
  EXPECT_STREQ(deepgen_selected_config(&function), "large");
}

TEST_F(Ranges, TablesWithoutAKernelForEverySizeAreRefused) {
  kernels[1].taken = small;
  EXPECT_EQ(deepgen_register(&function, 1), DEEPGEN_ERROR_ARGUMENT);
  kernels[1].taken = nullptr, kernels[1].isa = 2;
  EXPECT_EQ(deepgen_register(&function, 1), DEEPGEN_ERROR_ARGUMENT) << "a CPU of level 1 would run it";
  kernels[1].isa = 1;
  function.sizes[0].least = kMost + 1;
  EXPECT_EQ(deepgen_register(&function, 1), DEEPGEN_ERROR_ARGUMENT);
}

TEST_F(Ranges, SixteenThreadsWithDifferentSizes) {
  constexpr int kThreads = 16, kRounds = 200;
  deepgen_set_num_threads(3);
  ASSERT_EQ(deepgen_register(&function, 1), DEEPGEN_OK);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      std::vector<float> own(size_t(kMost * kN));
      deepgen_gemm_args x = args;
      x.d = own.data();
      for (int round = 0; round < kRounds; ++round) {
        x.m = (t * 37 + round * 11) % (kMost + 1);
        std::fill(own.begin(), own.end(), 0.0f);
        wrong += deepgen_run_gemm(&function, &x) != DEEPGEN_OK;
        const float mark = x.m <= 16 ? 1 : 2;
        for (int64_t i = 0; i < kMost; ++i) wrong += own[size_t(i * kN)] != (i < x.m ? mark : 0);
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

} // namespace
