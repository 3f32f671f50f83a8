// cuDNN as a baseline of attention, with a strict fake of it on the fake HIP's memory that computes the
// graphs which it is given: they compute what the problem says, and what does not is left out in words.
#include "tests/unit/measure/vendor/cudnn_fixture.h"

#include "base/search/vendor_call.h"
#include "measure/commands/sized_field.h"
#include "measure/commands/vendor_facts.h"
#include "measure/values/attention/attention_truth.h"
#include "measure/vendor/gpu/vendor_product.h"
#include "tests/paths.h"

#include <limits>
#include <set>

namespace deepgen::cuda::cudnn_test {
namespace {

using enum Type;
using fake_cudnn::state;

constexpr int kModeA = 3, kFallback = 2; ///< cudnnBackendHeurMode_t
constexpr int kIndex = 501;              ///< CUDNN_POINTWISE_GEN_INDEX

Attention problem(Type type = bf16, AttentionMask mask = AttentionMask::none) {
  return cudnn_problem(type, mask);
}

/// What the first config makes of a call with a window, and with another scale.
Verdict verified(const Attention& p, int64_t left, int64_t right, double softcap = 0) {
  AttentionShape shape;
  shape.batch = p.at_batch, shape.queries = p.at_queries, shape.keys = p.at_keys;
  shape.left = left, shape.right = right, shape.scale = 0.3, shape.softcap = softcap;
  const auto truth = attention_truth(p, shape, AttentionArithmetic(p.kv), most_attention_products, 7);
  const AttentionInputs& in = truth->inputs;
  Bench bench(p, Cudnn::device(), 0, 1);
  const Context& context = bench.ring().context();
  const auto copied = [](const PageBuffer& x, const TokenLayout& layout, Type type) {
    Memory memory(size_t(layout.rows() * layout.columns() * size_of(type)));
    check(driver()->cuMemcpyHtoD(memory.address(), x.data(), memory.bytes()), "copying");
    return memory;
  };
  const Memory q = copied(in.q, in.q_layout, p.q), key = copied(in.key, in.key_layout, p.kv),
               value = copied(in.value, in.value_layout, p.kv),
               out(size_t(in.out_layout.rows() * in.out_layout.columns() * size_of(p.out))),
               lse(size_t(in.lse_count(p)) * sizeof(float));
  const auto at = [](const Memory& m) { return reinterpret_cast<void*>(m.address()); };
  AttentionCall call;
  call.q = at(q), call.key = at(key), call.value = at(value), call.out = at(out);
  call.lse = static_cast<float*>(at(lse));
  call.q_layout = &in.q_layout, call.key_layout = &in.key_layout;
  call.value_layout = &in.value_layout, call.out_layout = &in.out_layout, call.shape = &in.shape;
  const SlotValues values = values_of(p, call);
  const CudnnAttention attention(p, values, p.out);
  attention.enqueue(attention.plan(0), values, 0, context.stream());
  context.synchronize();
  const auto row = [&](int64_t r) {
    return static_cast<const char*>(at(out)) + r * in.out_layout.ld() * size_of(p.out);
  };
  return truth->check.compare(row, at(lse));
}

TEST_F(Cudnn, ComputesWhatTheProblemSays) {
  for (Type type : {f16, bf16})
    for (AttentionMask mask :
         {AttentionMask::none, AttentionMask::causal, AttentionMask::causal_top_left, AttentionMask::window})
      for (bool lse : {false, true}) {
        Attention p = problem(type, mask);
        p.lse = lse;
        const Vendor v = asked(p);
        EXPECT_EQ(v.why_not, "") << p.key();
        EXPECT_EQ(v.left_out, std::vector<std::string>()) << p.key();
        EXPECT_EQ(v.name, "cudnn 9.10.2");
        ASSERT_EQ(v.algorithms.size(), 2u) << p.key();
        EXPECT_EQ(v.algorithms[0].text, "engine 5, knobs 24=3, 14=2");
        EXPECT_EQ(v.algorithms[1].text, "engine 8");
        EXPECT_EQ(v.algorithms[1].workspace, 4096u);
        EXPECT_EQ(v.plan.library, VendorPlan::cudnn);
        EXPECT_EQ(v.plan.text(), "");
        expect_no_complaints(p.key());
      }
}

TEST_F(Cudnn, SizesOfAllKinds) {
  for (auto [batch, queries, keys] : {std::array<int64_t, 3>{1, 1, 1}, {1, 1, 99}, {3, 5, 5}, {2, 64, 128}})
    for (AttentionMask mask : {AttentionMask::none, AttentionMask::causal, AttentionMask::causal_top_left}) {
      Attention p = problem(f16, mask);
      p.at_batch = batch, p.at_queries = queries, p.at_keys = keys;
      p.heads = 3, p.kv_heads = 3, p.lse = true;
      EXPECT_EQ(asked(p).algorithms.size(), 2u) << p.key();
      expect_no_complaints(p.key());
    }
  Attention p = problem(f16, AttentionMask::causal_top_left);
  p.at_queries = 40, p.at_keys = 7;
  EXPECT_EQ(asked(p).algorithms.size(), 2u) << "more queries than keys";
}

TEST_F(Cudnn, BothEndsOfAWindow) {
  for (auto [left, right] : {std::pair<int64_t, int64_t>{5, 0}, {-1, 3}, {0, 0}, {30, -1}, {3, 4}, {-1, -1}})
    for (bool square : {false, true}) {
      Attention p = problem(f16, AttentionMask::window);
      p.lse = true;
      if (square) p.at_queries = p.at_keys;
      const Verdict v = verified(p, left, right);
      EXPECT_EQ(v.status, "ok") << left << " " << right << ": " << v.detail;
      expect_no_complaints(p.key());
    }
}

/// Each on the calls that are timed: dense, and without a cap. A bias has three types, and hides nothing
/// there.
TEST_F(Cudnn, OptionsOfACall) {
  const std::function<void(Attention&)> options[] = {
      [](Attention& p) { p.sink = true; },
      [](Attention& p) { p.bias = f32; },
      [](Attention& p) { p.bias = p.q; },
      [](Attention& p) { p.softcap = true; },
      [](Attention& p) { p.varlen = true; },
      [](Attention& p) { p.sink = p.softcap = p.varlen = true, p.bias = f16; }};
  for (const auto& option : options)
    for (AttentionMask mask : {AttentionMask::none, AttentionMask::causal, AttentionMask::causal_top_left})
      for (bool lse : {false, true}) {
        Attention p = problem(bf16, mask);
        option(p), p.lse = lse;
        const Vendor v = asked(p);
        EXPECT_EQ(v.why_not, "") << p.key();
        EXPECT_EQ(v.left_out, std::vector<std::string>()) << p.key();
        EXPECT_EQ(v.algorithms.size(), 2u) << p.key();
        expect_no_complaints(p.key());
      }
}

TEST_F(Cudnn, AnIgnoredOptionIsFound) {
  constexpr int kAdd = 0; // of a bias to scores; of a sink's power to the sum
  state().configs[kModeA] = {{.engine = 1, .ignores = kAdd}, {.engine = 2}};
  EXPECT_EQ(asked(problem()).algorithms.size(), 2u) << "nothing is added without a mask and LSE";
  for (bool sink : {false, true}) {
    Attention p = problem();
    p.sink = sink;
    if (!sink) p.bias = f32;
    const Vendor v = asked(p);
    ASSERT_EQ(v.algorithms.size(), 1u) << p.key();
    EXPECT_TRUE(v.left_out.at(0).starts_with("engine 1: wrong: ")) << v.left_out[0];
  }
}

TEST_F(Cudnn, ScoresAreCapped) {
  constexpr int kTanh = 101;
  Attention p = problem(f16, AttentionMask::causal);
  p.softcap = p.lse = true;
  EXPECT_EQ(verified(p, -1, -1, 3).status, "ok");
  EXPECT_EQ(std::count(state().modes.begin(), state().modes.end(), kTanh), 1);
  expect_no_complaints(p.key());
  state().configs[kModeA] = {{.engine = 1, .ignores = kTanh}};
  EXPECT_EQ(verified(p, -1, -1, 3).status, "wrong");
  EXPECT_EQ(verified(p, -1, -1, 0).status, "ok");
  EXPECT_EQ(std::count(state().modes.begin(), state().modes.end(), kTanh), 0);
}

/// Its check, too: it would be wrong of other keys.
TEST_F(Cudnn, TheTunedWindowIsThatOfTheTimedCall) {
  for (auto [left, right] : {std::pair<int64_t, int64_t>{5, 0}, {-1, 3}, {30, -1}, {3, 4}}) {
    Attention p = problem(f16, AttentionMask::window);
    p.lse = true, p.at_left = left, p.at_right = right;
    const Vendor v = asked(p);
    EXPECT_EQ(v.left_out, std::vector<std::string>()) << p.key();
    EXPECT_EQ(v.algorithms.size(), 2u) << p.key() << ": " << v.why_not;
    EXPECT_GT(std::count(state().modes.begin(), state().modes.end(), kIndex), 0) << p.key();
    expect_no_complaints(p.key());
  }
}

/// Few keys are read, and all have their place in each set of operands.
TEST_F(Cudnn, SetsOfAWindowFitIntoMemory) {
  Attention p = problem(f16, AttentionMask::window);
  p.at_keys = 128;
  const double whole = p.bytes();
  p.at_left = p.at_right = 0;
  ASSERT_LT(p.bytes(), whole / 2);
  Bench bench(p, device(), 0, 1);
  EXPECT_GT(bench.ring().ring().count(), 1);
  EXPECT_LT(double(bench.ring().ring().count()) * whole, 200000);
  expect_no_complaints(p.key());
}

/// An engine for decoding takes no mask, and none is needed there.
TEST_F(Cudnn, AMaskThatHidesNothingIsNone) {
  const auto has_indices = [](Attention p) {
    asked(p);
    return std::count(state().modes.begin(), state().modes.end(), kIndex) > 0;
  };
  Attention p = problem(bf16, AttentionMask::causal);
  EXPECT_TRUE(has_indices(p));
  p.at_queries = 1;
  EXPECT_FALSE(has_indices(p));
  p.mask = AttentionMask::causal_top_left;
  EXPECT_TRUE(has_indices(p)) << "one key is seen there";
  EXPECT_FALSE(has_indices(problem(bf16, AttentionMask::window))) << "a call is timed without bounds";
}

/// The process keeps the version that it found first, which is that of the test where each has its own.
void expect_hidden_scores(size_t version, const std::function<Vendor(const Attention&)>& asked) {
  state().version = version;
  const bool lowest = CudnnLibrary::of_process().number < 91000;
  EXPECT_EQ(asked(problem(f16, AttentionMask::causal)).algorithms.size(), 2u);
  const std::vector<double>& values = state().values;
  const double expected =
      lowest ? double(std::numeric_limits<float>::lowest()) : -std::numeric_limits<double>::infinity();
  EXPECT_EQ(std::count(values.begin(), values.end(), expected), 2) << "of two configs";
}
TEST_F(Cudnn, AHiddenScoreIsInfiniteSince910) { expect_hidden_scores(91000, asked); }
TEST_F(Cudnn, AHiddenScoreIsTheLowestNumberBefore910) { expect_hidden_scores(90902, asked); }

TEST_F(Cudnn, WhatIsWrongIsSaidAndNotTimed) {
  state().configs[kModeA] = {{.engine = 1, .factor = 1.05}, {.engine = 2}};
  const Vendor v = asked(problem());
  ASSERT_EQ(v.algorithms.size(), 1u);
  EXPECT_EQ(v.algorithms[0].text, "engine 2");
  ASSERT_EQ(v.left_out.size(), 1u);
  EXPECT_TRUE(v.left_out[0].starts_with("engine 1: wrong: ")) << v.left_out[0];
  state().configs[kModeA].pop_back();
  const Vendor none = asked(problem());
  EXPECT_TRUE(none.algorithms.empty());
  EXPECT_TRUE(none.why_not.starts_with("cudnn 9.10.2 has no engine for this problem: engine 1: wrong: "))
      << none.why_not;
}

TEST_F(Cudnn, ConfigsThatDoNotServeAreLeftOutInTheLibrarysWords) {
  state().configs[kModeA] = {{.engine = 1, .plan_status = 3000},
                             {.engine = 2, .execute_status = 5000},
                             {.engine = 3, .workspace = int64_t(vendor_workspace) + (1 << 20)},
                             {.engine = 4}};
  const Vendor v = asked(problem());
  ASSERT_EQ(v.algorithms.size(), 1u);
  EXPECT_EQ(v.algorithms[0].text, "engine 4");
  ASSERT_EQ(v.left_out.size(), 3u);
  EXPECT_EQ(v.left_out[0], "engine 1: cuDNN status 3000 (CUDNN_STATUS_NOT_SUPPORTED): not on this device, in "
                           "finalizing a plan");
  EXPECT_EQ(v.left_out[1],
            "engine 2: cuDNN status 5000 (CUDNN_STATUS_NOT_SUPPORTED): it failed, in cudnnBackendExecute");
  EXPECT_EQ(v.left_out[2], "engine 3: needs a workspace of 65 MiB");
  EXPECT_EQ(vendor_notes(v),
            std::vector<std::string>{"cudnn 9.10.2: 3 of 4 configs left out, such as " + v.left_out[0]});
  expect_no_complaints("all");
  state().configs[kModeA].pop_back();
  EXPECT_EQ(asked(problem()).why_not,
            "cudnn 9.10.2 has no engine for this problem: " + v.left_out[0] + ", and 2 more left out");
}

TEST_F(Cudnn, BothHeuristicsAreAsked) {
  state().configs[kFallback] = {state().configs[kModeA][0], {.engine = 30}};
  Vendor v = asked(problem());
  ASSERT_EQ(v.algorithms.size(), 3u) << "each config once";
  EXPECT_EQ(v.algorithms[2].text, "engine 30");
  state().heuristic_results[kModeA] = 3001;
  v = asked(problem());
  ASSERT_EQ(v.algorithms.size(), 2u);
  EXPECT_EQ(v.why_not, "");
  state().heuristic_results[kFallback] = 3001;
  v = asked(problem());
  EXPECT_TRUE(v.algorithms.empty());
  EXPECT_TRUE(v.why_not.starts_with("cudnn 9.10.2 has no engine for this problem: cuDNN status 3001 "
                                    "(CUDNN_STATUS_NOT_SUPPORTED_GRAPH_PATTERN): no engine for this pattern"))
      << v.why_not;
  state().heuristic_results.clear(), state().configs.clear();
  EXPECT_EQ(asked(problem()).why_not, "cudnn 9.10.2 has no engine for this problem");
}

TEST_F(Cudnn, IsNotAskedForWhatItIsNotKnownToTake) {
  const auto why = [](const std::function<void(Attention&)>& change) {
    Attention p = problem();
    change(p);
    const Vendor v = find_cudnn(p, device(), 1); // starts nothing
    EXPECT_TRUE(v.algorithms.empty());
    EXPECT_TRUE(v.why_not.starts_with("cuDNN: none: ")) << v.why_not;
    return v.why_not;
  };
  const auto names = [](const std::string& text, const char* what) {
    return text.find(what) != std::string::npos;
  };
  EXPECT_TRUE(names(why([](Attention& p) { p.q = p.kv = p.out = f32; }), "f16 or bf16"));
  EXPECT_TRUE(names(why([](Attention& p) { p.out = f32; }), "one type"));
  EXPECT_TRUE(names(why([](Attention& p) { p.head_dim = 36; }), "multiples of 8"));
  EXPECT_TRUE(names(why([](Attention& p) { p.q = p.kv = e4m3, p.head_dim = 40; }), "multiples of 16"));
  EXPECT_TRUE(names(why([](Attention& p) { p.mask = AttentionMask::causal, p.at_queries = 38; }), "queries"));
  EXPECT_EQ(why_no_cudnn(problem(f16, AttentionMask::window)), "");
}

TEST_F(Cudnn, IsFoundByItsPathAndInVersionsThatAreKnown) {
  EXPECT_EQ(CudnnLibrary::open().version, "cudnn 9.10.2");
  EXPECT_EQ(CudnnLibrary::open().why_not, "");
  EXPECT_EQ(cudnn_text(), paths::fake_cudnn + std::string(", cudnn 9.10.2"));
  state().version = 8907;
  EXPECT_EQ(CudnnLibrary::open().why_not, "cudnn 8.9.7 is too old: 9.0 or later");
  EXPECT_EQ(cudnn_text(), paths::fake_cudnn + std::string(", cudnn 8.9.7 is too old: 9.0 or later"));
  state().version = 100100;
  EXPECT_EQ(CudnnLibrary::open().why_not, "cudnn 10.1.0 may have another interface: 9 is known here");
  setenv("DEEPGEN_CUDNN", "/none/libcudnn.so.9", 1);
  EXPECT_EQ(CudnnLibrary::open().why_not, "no cuDNN here: DEEPGEN_CUDNN names /none/libcudnn.so.9");
  setenv("DEEPGEN_CUDNN", paths::fake_hip, 1);
  EXPECT_EQ(CudnnLibrary::open().why_not,
            "the library that DEEPGEN_CUDNN names, or libcudnn.so.9, has no cudnnGetVersion");
}

TEST_F(Cudnn, EachSetIsACallOfItsOwn) {
  const Attention p = problem();
  Bench bench(p, device(), 0, 1);
  const Vendor v = ask_cudnn(bench.ring(), "sm_90a", 1);
  const auto& sets = dynamic_cast<const AttentionSets&>(bench.ring().ring()).all();
  ASSERT_GE(sets.size(), 2u);
  const auto out_of = [&](size_t set) {
    std::vector<char> out(size_t(p.at_batch * p.at_queries * p.heads * p.value_dim * size_of(p.out)));
    check(driver()->cuMemcpyDtoH(out.data(), sets[set][DEEPGEN_ARG_OUT], out.size()), "reading");
    return out;
  };
  const std::vector<char> first = out_of(0), second = out_of(1);
  const auto call = cudnn_call(v.algorithms[1], bench.ring());
  call(1, bench.ring().context().stream());
  EXPECT_EQ(out_of(0), first);
  EXPECT_NE(out_of(1), second);
  expect_no_complaints(p.key());
  Vendor::Algorithm unknown = v.algorithms[0];
  unknown.text = "engine 77";
  EXPECT_THROW(cudnn_call(unknown, bench.ring()), DriverError);
}

TEST_F(Cudnn, GivesBackItsDescriptors) {
  const int before = state().alive;
  asked(problem(f16, AttentionMask::causal));
  EXPECT_EQ(state().alive, before);
}

/// As the playoff does it: asked in a child process, timed beside kernels.
TEST_F(Cudnn, IsTimedAndACrashIsNoVerdictOnOthers) {
  fake_hip::state().recording = fake_hip::state().replays = false;
  state().configs[kModeA].insert(state().configs[kModeA].begin(),
                                 {.engine = 66, .executed = [] { std::abort(); }});
  const Attention p = problem(bf16, AttentionMask::causal);
  const Vendor v = find_cudnn(p, device(), 1);
  ASSERT_EQ(v.algorithms.size(), 2u) << v.why_not;
  EXPECT_EQ(v.left_out, std::vector<std::string>{"engine 66: crashes or hangs"});
  EXPECT_EQ(v.plan.library, VendorPlan::cudnn);
  Bench bench(p, device(), 0, 1);
  const std::vector<Arm> arms = vendor_arms(v, bench);
  ASSERT_EQ(arms.size(), 2u);
  EXPECT_EQ(arms[0].name, "cudnn 9.10.2 algorithm 0 (engine 5, knobs 24=3, 14=2)");
  EXPECT_NEAR(arms[1].make_sampler().take().seconds, 10e-6, 1e-9) << "of made-up time";
  expect_no_complaints(p.key());
}

TEST_F(Cudnn, IsEvidenceAndNothingThatAFunctionCalls) {
  EXPECT_NE(why_no_call(problem(), "sm_90a"), "");
  EXPECT_EQ(baseline_of(Problem(problem()), device(), 1).why_not,
            "no library of the vendor's that is asked here computes attention")
      << "of AMD's";
  const auto notes = [](bool vendor) {
    return field_at(problem(), device(), 0, MeasureOptions(), vendor)->vendor_notes();
  };
  EXPECT_EQ(notes(true),
            std::vector<std::string>{"no vendor baseline: no library of the vendor's that is asked "
                                     "here computes attention"});
  EXPECT_TRUE(notes(false).empty());
}

/// The fake is strict, or the tests above show nothing.
TEST_F(Cudnn, TheFakeRefuses) {
  const CudnnLibrary& library = CudnnLibrary::of_process();
  CudnnDescriptor t(library, CudnnKind::tensor);
  EXPECT_THROW(t.finalize(), DriverError) << "nothing is set";
  EXPECT_THROW(t.set(CudnnAttribute::matmul_a, t), DriverError) << "no attribute of a tensor";
  EXPECT_THROW(t.set(CudnnAttribute::tensor_type, CudnnElement::int64, int64_t(0)), DriverError);
  const int64_t nine[9] = {};
  EXPECT_THROW(t.set(CudnnAttribute::tensor_strides, CudnnElement::int64, 9, nine), DriverError);
  CudnnDescriptor product(library, CudnnKind::matmul_operation);
  EXPECT_THROW(product.set(CudnnAttribute::matmul_a, t), DriverError) << "it is not final";
  EXPECT_EQ(state().complaints.size(), 5u);
}

} // namespace
} // namespace deepgen::cuda::cudnn_test
