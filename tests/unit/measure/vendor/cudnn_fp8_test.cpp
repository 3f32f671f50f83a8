// cuDNN's attention of 8-bit floats as a baseline: which types of out it is asked for, what is said of those
// that it refuses, and that tolerances fit for weights of e4m3 still find a wrong mask.
#include "tests/unit/measure/vendor/cudnn_fixture.h"

#include "cudnn_graph.h"
#include "measure/values/attention/attention_truth.h"
#include "measure/values/stored_values.h"

namespace deepgen::cuda::cudnn_fp8_test {
namespace {

using enum Type;
using fake_cudnn::state;

constexpr int kE4m3 = 12, kF16 = 2, kBf16 = 9, kF32 = 0; ///< cudnnDataType_t

Attention narrow(Type out, AttentionMask mask = AttentionMask::none) {
  Attention p = cudnn_problem(e4m3, mask);
  p.out = out;
  return p;
}

constexpr AttentionMask kMasks[] = {AttentionMask::none, AttentionMask::causal,
                                    AttentionMask::causal_top_left, AttentionMask::window};

TEST_F(Cudnn, AnEngineMayWriteTheProblemsTypeOfE4m3) {
  state().narrow_outs = {kE4m3, kF16, kBf16, kF32};
  for (Type out : {f16, bf16, f32})
    for (AttentionMask mask : kMasks)
      for (bool lse : {false, true}) {
        Attention p = narrow(out, mask);
        p.lse = lse;
        const Vendor v = asked(p);
        EXPECT_EQ(v.why_not, "") << p.key();
        EXPECT_EQ(v.name, "cudnn 9.10.2");
        EXPECT_EQ(v.left_out, std::vector<std::string>()) << p.key();
        ASSERT_EQ(v.algorithms.size(), 2u) << p.key();
        EXPECT_EQ(v.algorithms[0].text, "engine 5, knobs 24=3, 14=2, out of " + to_string(out));
        EXPECT_EQ(v.algorithms[1].text, "engine 8, out of " + to_string(out));
        expect_no_complaints(p.key());
      }
}

/// As on Hopper.
TEST_F(Cudnn, WhereNoEngineWritesItE4m3IsTimedAndSaid) {
  for (Type out : {f16, bf16, f32})
    for (AttentionMask mask : kMasks) {
      Attention p = narrow(out, mask);
      p.lse = true;
      const Vendor v = asked(p);
      EXPECT_EQ(v.why_not, "") << p.key();
      EXPECT_EQ(v.name, "cudnn 9.10.2 with out of e4m3");
      ASSERT_EQ(v.algorithms.size(), 2u) << p.key();
      EXPECT_EQ(v.algorithms[1].text, "engine 8, out of e4m3");
      ASSERT_EQ(v.left_out.size(), 1u);
      EXPECT_EQ(v.left_out[0], "out of " + to_string(out) + ": no engine writes such an output");
      expect_no_complaints(p.key());
    }
}

TEST_F(Cudnn, ReasonsOfAllTypesOfOutAreSaid) {
  state().narrow_outs = {};
  std::string why = asked(narrow(bf16)).why_not;
  EXPECT_EQ(why, "cudnn 9.10.2 has no engine for this problem: out of bf16: no engine writes such an output; "
                 "out of e4m3: no engine writes such an output");
  state().configs.clear(); // and no words
  EXPECT_EQ(asked(narrow(f16)).why_not, "cudnn 9.10.2 has no engine for this problem: out of f16: it has no "
                                        "engine; out of e4m3: it has no engine");
  fake_cudnn::reset();
  state().narrow_outs = {kE4m3}; // one is refused, and the other one is wrong
  for (fake_cudnn::Config& c : state().configs[3]) c.factor = 1.3;
  why = asked(narrow(bf16)).why_not;
  EXPECT_NE(why.find("; engine 5, knobs 24=3, 14=2, out of e4m3: wrong: "), std::string::npos) << why;
  EXPECT_TRUE(why.ends_with(", and 1 more left out")) << why;
}

TEST_F(Cudnn, AConfigThatDoesNotServeATypeOfOutIsNamedWithIt) {
  state().narrow_outs = {kBf16, kE4m3};
  state().configs[3] = {{.engine = 1, .plan_status = 3000}, {.engine = 2}};
  const Vendor v = asked(narrow(bf16));
  ASSERT_EQ(v.algorithms.size(), 1u);
  EXPECT_EQ(v.algorithms[0].text, "engine 2, out of bf16");
  ASSERT_EQ(v.left_out.size(), 1u) << "e4m3 is not asked for then";
  EXPECT_TRUE(v.left_out[0].starts_with("engine 1, out of bf16: cuDNN status 3000")) << v.left_out[0];
}

/// One key more is seen; rows show it without the LSE, too.
TEST_F(Cudnn, AWrongMaskOfE4m3IsFound) {
  state().narrow_outs = {kE4m3, kBf16};
  for (Type out : {bf16, f32}) // as it is; and as e4m3, whose rounding is as coarse as that of weights
    for (AttentionMask mask : {AttentionMask::causal, AttentionMask::causal_top_left})
      for (bool lse : {false, true})
        for (auto [queries, keys] : {std::pair<int64_t, int64_t>{13, 37}, {64, 128}}) {
          Attention p = narrow(out, mask);
          p.lse = lse, p.at_queries = queries, p.at_keys = keys;
          state().configs[3] = {{.engine = 1, .keys_beyond = 1}, {.engine = 2}};
          const Vendor v = asked(p);
          ASSERT_EQ(v.algorithms.size(), 1u) << p.key();
          EXPECT_TRUE(v.algorithms[0].text.starts_with("engine 2")) << p.key();
          EXPECT_NE(v.left_out.back().find("engine 1"), std::string::npos);
          EXPECT_NE(v.left_out.back().find(": wrong: "), std::string::npos) << v.left_out.back();
        }
}

TEST_F(Cudnn, AWrongScaleOfE4m3IsFound) {
  for (double factor : {0.5, 0.8, 1.25, 2.0}) {
    state().configs[3] = {{.engine = 1, .factor = factor}};
    EXPECT_TRUE(asked(narrow(bf16)).algorithms.empty()) << factor;
  }
}

/// The magnitudes of weights ahead of their scale, and of averages of values in [-1, 1] by weights that are
/// rounded.
TEST_F(Cudnn, MaximaOfE4m3AreWritten) {
  Attention p = narrow(bf16, AttentionMask::causal_top_left); // the first row has one key
  asked(p);
  ASSERT_EQ(state().maxima.size(), 4u) << "of two configs";
  EXPECT_EQ(state().maxima[0], 1);
  EXPECT_GT(state().maxima[1], 0.5);
  EXPECT_LE(state().maxima[1], 1.0625);
}

TEST_F(Cudnn, EachSetOfE4m3IsACallOfTheGraphThatServed) {
  for (bool same : {false, true}) {
    state().narrow_outs = same ? std::vector{kBf16, kE4m3} : std::vector{kE4m3};
    const Attention p = narrow(bf16);
    Bench bench(p, device(), 0, 1);
    const Vendor v = ask_cudnn(bench.ring(), "sm_90a", 1);
    ASSERT_EQ(v.algorithms.size(), 2u);
    const SlotValues& set = dynamic_cast<const AttentionSets&>(bench.ring().ring()).all().at(1);
    const int64_t count = p.at_batch * p.at_queries * p.heads * p.value_dim;
    std::vector<uint8_t> out(size_t(count * 2));
    bench.ring().tools().set_words(set[DEEPGEN_ARG_OUT], 0xffffffff, out.size());
    cudnn_call(v.algorithms[1], bench.ring())(1, bench.ring().context().stream());
    check(driver()->cuMemcpyDtoH(out.data(), set[DEEPGEN_ARG_OUT], out.size()), "reading");
    EXPECT_EQ(first_beyond(same ? bf16 : e4m3, out.data(), count, 1.125), -1);
    EXPECT_EQ(std::all_of(out.begin() + count, out.end(), [](uint8_t x) { return x == 0xff; }), !same);
    expect_no_complaints(p.key());
  }
}

/// Weights that are lost when the greatest one is 4 instead of 256.
TEST_F(Cudnn, ToleranceOfE4m3FollowsTheGreatestWeight) {
  const Attention p = narrow(f32);
  AttentionShape shape;
  shape.batch = p.at_batch, shape.queries = p.at_queries, shape.keys = p.at_keys;
  const AttentionInputs in(p, shape, 5);
  const auto row = [&](const AttentionArithmetic& how) {
    return AttentionReference(p, in, how).rows(0, 0, {{0, 0}})[0];
  };
  const ExpectedAttention ours = row(AttentionArithmetic::of(p, "sm_90a")),
                          its = row(cudnn_arithmetic(p, "sm_90a"));
  for (size_t d = 0; d < size_t(p.value_dim); ++d) {
    EXPECT_EQ(ours.value[d], its.value[d]);
    EXPECT_GT(its.tolerance[d], ours.tolerance[d]);
    EXPECT_LT(its.tolerance[d], ours.tolerance[d] + 37 * 0x1p-12);
  }
}

/// No scale and no maximum may be missing, or the tests above show less.
TEST_F(Cudnn, TheFakeIsStrictWithE4m3) {
  using fake_cudnn::Operation;
  asked(narrow(bf16));
  const std::vector<Operation> right = fake_cudnn::last_graph();
  EXPECT_EQ(fake_cudnn::fault_of(right), "");
  int left_out = 0;
  for (size_t i = 0; i < right.size(); ++i) {
    const bool scale = right[i].mode == fake_cudnn::POINTWISE_MUL && right[i].kind == Operation::pointwise;
    if (!scale && right[i].mode != fake_cudnn::REDUCE_AMAX) continue;
    std::vector<Operation> graph = right;
    graph.erase(graph.begin() + std::ptrdiff_t(i));
    for (Operation& o : graph)
      for (fake_cudnn::Tensor& x : o.in)
        if (x.uid == right[i].out.uid) x = right[i].in[0]; // so that nothing else is missing
    EXPECT_NE(fake_cudnn::fault_of(graph), "") << "without operation " << i;
    ++left_out;
  }
  EXPECT_EQ(left_out, 9);
}

} // namespace
} // namespace deepgen::cuda::cudnn_fp8_test
