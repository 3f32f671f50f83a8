// cpu_dot: types of 16 and 8 bits, with every instruction that this host has and with those that every host
// has.
#include "measure/values/inputs.h"
#include "measure/values/operands.h"
#include "measure/values/stored_values.h"
#include "tests/numerics/dot_pairs.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <set>

namespace deepgen::dot_test {
namespace {

using namespace numerics;

/// What kernels are made for: levels, and each extension alone; those that run here.
std::vector<int64_t> isas_here() {
  std::vector<int64_t> here;
  for (int64_t isa : {int64_t(1), int64_t(3), 3 | isa_avxvnni, int64_t(4), 4 | isa_avx512vnni,
                      4 | isa_avx512bf16, 4 | isa_amx | isa_avx512bf16})
    if (runs_on(isa, int64_t(cpu::usable_isa()))) here.push_back(isa);
  return here;
}

class DotPairs : public testing::TestWithParam<int> {};

TEST_P(DotPairs, MatchTheReference) {
  constexpr int kPairs = 50;
  const std::vector<int64_t> isas = isas_here();
  Rng rng(9000 + uint32_t(GetParam()));
  int pairs = 0;
  for (int tries = 0; pairs < kPairs && tries < 10 * kPairs; ++tries) {
    const Gemm p = random_dot(rng, size_t(tries));
    const std::vector<Choice> choices = choices_for(p, isas[rng() % isas.size()], rng, 1);
    if (choices.empty()) continue; // bf16 has no use for vpdpbusd, say
    SCOPED_TRACE(p.key() + " | " + choices[0].text());
    const KernelFile file = compile_candidate(p, "cpu", choices[0], true, pairs % 10 == 0);
    pairs += verify_all(file, choices[0].text()) > 0;
    if (testing::Test::HasFailure()) return;
  }
  EXPECT_EQ(pairs, kPairs);
}
INSTANTIATE_TEST_SUITE_P(Share, DotPairs, testing::Range(0, 10));

/// On a problem with several blocks in every direction.
class DotValues : public testing::TestWithParam<Layout> {};

TEST_P(DotValues, EachMatchesTheReference) {
  for (Type type : {Type::bf16, Type::i8}) {
    Gemm p = of_types({type, type, Type::bf16});
    p.m = 75, p.n = 611, p.k = 1100;
    p.layout = GetParam();
    p.epilogue = {EpilogueOp::bias, EpilogueOp::relu};
    ValueCounts covered;
    Rng rng(5);
    for (int64_t isa : isas_here())
      for (const Choice& choice : choices_for(p, isa, rng, 200)) {
        bool is_new = false;
        for (const auto& value : choice.config.values) is_new |= covered[value]++ == 0;
        if (!is_new) continue;
        SCOPED_TRACE(choice.text());
        EXPECT_GT(verify_all(compile_candidate(p, "cpu", choice, false, false), choice.text()), 0);
        if (HasFailure()) return;
      }
  }
}
INSTANTIATE_TEST_SUITE_P(Layouts, DotValues, testing::Values(Layout::nn, Layout::nt, Layout::tn, Layout::tt));

/// Few rows, where B is read in place: every form, and K of 1 and of whole and part groups.
TEST(DotForms, OfFewRowsMatchTheReference) {
  Rng rng(77);
  std::set<int64_t> forms;
  for (const Types& types : all_types())
    for (int64_t k : {1, 2, 3, 5, 64, 131})
      for (Layout layout : {Layout::nn, Layout::nt}) {
        Gemm p = of_types(types);
        p.m = between(rng, 1, 5), p.n = between(rng, 1, 70), p.k = k, p.layout = layout;
        const std::vector<int64_t> isas = isas_here();
        for (const Choice& choice : choices_for(p, isas[rng() % isas.size()], rng, 1)) {
          forms.insert(choice.config["form"]);
          SCOPED_TRACE(p.key() + " | " + choice.text());
          ASSERT_GT(verify_all(compile_candidate(p, "cpu", choice, false, false), choice.text()), 0);
          if (HasFailure()) return;
        }
      }
  EXPECT_EQ(forms.size(), 4u);
}

/// Panels of A whose vectors run along K: last rows, ends of K, several blocks of both.
TEST(DotForms, PanelsOfAAlongKMatchTheReference) {
  Rng rng(78);
  int found = 0;
  for (const Types& types : all_types())
    for (const auto& [m, k] : {std::pair<int64_t, int64_t>{2, 67}, {7, 131}, {21, 260}, {70, 1100}}) {
      Gemm p = of_types(types);
      p.m = m, p.n = between(rng, 1, 30), p.k = k, p.layout = Layout::nt;
      if (p.d != Type::i32 && m == 21) p.gate = EpilogueOp::silu;
      for (int64_t isa : isas_here())
        for (const Choice& choice : choices_for(p, isa, rng, 60)) {
          const auto parameter = [&](const char* name) { return choice.config[name]; };
          if (parameter("form") != 1 || !parameter("pack") || isa & isa_amx) continue;
          SCOPED_TRACE(p.key() + " | " + choice.text());
          ASSERT_GT(verify_all(compile_candidate(p, "cpu", choice, false, false), choice.text()), 0);
          if (HasFailure()) return;
          ++found;
          break; // one of each
        }
    }
  EXPECT_GT(found, 40);
}

/// One call on dense operands that are all one value, but for what a test changes.
class OneCall {
public:
  explicit OneCall(const Gemm& problem)
      : p(problem), a(size_t(p.m * p.k * size_of(p.a))), b(size_t(p.k * p.n * size_of(p.b))),
        c(size_t(p.m * p.n * size_of(p.d))), d(c.size()) {}

  void fill_a(double x) { fill(p.a, a, p.m * p.k, x); }
  void fill_b(double x) { fill(p.b, b, p.k * p.n, x); }
  void fill_c(double x) { fill(p.d, c, p.m * p.n, x); }
  void set_a(int64_t m, int64_t k, double x) { encode(p.a, x, a.data(), m * p.k + k); }
  void set_b(int64_t k, int64_t n, double x) { encode(p.b, x, b.data(), n * p.k + k); } // layout nt

  void set_bits_b(int64_t i, uint16_t bits) { std::memcpy(b.data() + 2 * i, &bits, 2); }
  double b_at(int64_t i) const { return decoded(p.b, b.data(), i); }

  void run(const Kernel& kernel, double alpha = 1, double beta = 0) {
    CallBuffers x;
    x.a = a.data(), x.b = b.data(), x.c = c.data(), x.d = d.data();
    x.lda = x.ldb = p.k, x.ldc = x.ldd = p.n;
    x.alpha = alpha, x.beta = beta;
    const PageBuffer workspace(size_t(kernel.workspace) + 64, 0);
    x.workspace = workspace.data();
    LoadedKernel(kernel).call(values_of(x, p));
  }
  double at(int64_t m, int64_t n) const { return decoded(p.d, d.data(), m * p.n + n); }
  bool all(double x) const {
    for (int64_t i = 0; i < p.m * p.n; ++i)
      if (decoded(p.d, d.data(), i) != x) return false;
    return true;
  }

private:
  static void fill(Type type, std::vector<char>& to, int64_t count, double x) {
    for (int64_t i = 0; i < count; ++i) encode(type, x, to.data(), i);
  }
  const Gemm p;
  std::vector<char> a, b, c, d;
};

/// Kernels of each isa that runs here, of every form where there are several of each.
template <typename Body>
void with_kernels(const Gemm& p, Body body, size_t of_each = 4) {
  Rng rng(11);
  for (int64_t isa : isas_here())
    for (const Choice& choice : choices_for(p, isa, rng, of_each)) {
      SCOPED_TRACE(p.key() + " | " + choice.text());
      const KernelFile file = compile_candidate(p, "cpu", choice, false, false);
      ASSERT_EQ(file.status, "ok") << file.detail;
      body(*file.find("main"));
    }
}

TEST(DotSpecial, IntegerSumsAreExactAtTheEndsOfTheRange) {
  for (const Types& types : {Types{Type::i8, Type::i8, Type::i32}, Types{Type::u8, Type::i8, Type::i32}})
    for (int64_t k : {1, 3, 66, 1025}) {
      Gemm p = of_types(types);
      p.m = 3, p.n = 21, p.k = k, p.layout = Layout::nt;
      const double low = p.a == Type::u8 ? 0 : -128, high = p.a == Type::u8 ? 255 : 127;
      with_kernels(p, [&](const Kernel& kernel) {
        OneCall call(p);
        for (double x : {low, high})
          for (double y : {-128.0, 127.0}) {
            call.fill_a(x), call.fill_b(y), call.run(kernel);
            EXPECT_TRUE(call.all(double(k) * x * y)) << x << " * " << y << ": " << call.at(0, 0);
          }
        call.fill_c(1000), call.run(kernel, -3, 2);
        EXPECT_TRUE(call.all(-3 * double(k) * high * 127 + 2000)) << call.at(0, 0);
      });
    }
}

TEST(DotSpecial, EightBitsSaturateAtBothEnds) {
  for (Type a : {Type::i8, Type::u8}) {
    Gemm p = of_types({a, Type::i8, Type::i8});
    p.m = 3, p.n = 21, p.k = 7, p.layout = Layout::nt;
    with_kernels(p, [&](const Kernel& kernel) {
      OneCall call(p);
      call.fill_a(100), call.fill_b(100), call.run(kernel);
      EXPECT_TRUE(call.all(127));
      call.run(kernel, -1);
      EXPECT_TRUE(call.all(-128));
      call.fill_a(1), call.fill_b(1), call.run(kernel, 0.5); // 3.5: to even
      EXPECT_TRUE(call.all(4)) << call.at(0, 0);
      call.run(kernel, std::numeric_limits<double>::quiet_NaN());
      EXPECT_TRUE(call.all(0)) << call.at(0, 0);
      call.fill_c(-100), call.run(kernel, 1, 2);
      EXPECT_TRUE(call.all(-128)) << call.at(0, 0);
    });
  }
}

TEST(DotSpecial, InfinitiesAndNanStayInTheirRowsAndColumns) {
  const double infinity = std::numeric_limits<double>::infinity(),
               nan = std::numeric_limits<double>::quiet_NaN();
  for (const Types& types :
       {Types{Type::bf16, Type::bf16, Type::bf16}, Types{Type::bf16, Type::bf16, Type::f32},
        Types{Type::f16, Type::f16, Type::f16}}) {
    Gemm p = of_types(types);
    p.m = 5, p.n = 37, p.k = 67, p.layout = Layout::nt;
    with_kernels(p, [&](const Kernel& kernel) {
      OneCall call(p);
      call.fill_a(1), call.fill_b(2);
      call.set_a(1, p.k - 1, nan), call.set_a(2, 0, infinity), call.set_a(3, 5, -infinity);
      call.set_b(p.k - 1, 4, infinity);
      call.run(kernel);
      for (int64_t n = 0; n < p.n; ++n) {
        EXPECT_EQ(call.at(0, n), n == 4 ? infinity : 134) << n;
        EXPECT_TRUE(std::isnan(call.at(1, n))) << n;
        EXPECT_EQ(call.at(2, n), infinity) << n;
        if (n == 4)
          EXPECT_TRUE(std::isnan(call.at(3, n)));
        else
          EXPECT_EQ(call.at(3, n), -infinity) << n;
      }
    });
  }
}

TEST(DotSpecial, ZerosAndSubnormals) {
  for (Type type : {Type::bf16, Type::f16}) {
    Gemm p = of_types({type, type, Type::f32});
    p.m = 2, p.n = 19, p.k = 33, p.layout = Layout::nt;
    const double tiny = type == Type::bf16 ? 0x1p-130 : 0x1p-24;
    with_kernels(p, [&](const Kernel& kernel) {
      OneCall call(p);
      call.fill_a(-0.0), call.fill_b(3), call.run(kernel);
      EXPECT_TRUE(call.all(0));
      call.fill_a(tiny), call.fill_b(1), call.run(kernel);
      // vdpbf16ps and AMX take a subnormal bf16 for zero; all else multiplies it.
      const bool flushes = kernel.choice.config["dot"] >= int64_t(DotKind::bf16);
      EXPECT_TRUE(call.all(flushes ? 0 : 33 * tiny)) << call.at(0, 0);
    });
  }
}

/// Ties and all else between two bf16: 256 x + y, exact in f32.
TEST(DotSpecial, Bf16ResultsAreRoundedToNearestEven) {
  Gemm p = of_types({Type::bf16, Type::bf16, Type::bf16});
  p.m = 2, p.n = 16411, p.k = 2, p.layout = Layout::nt;
  with_kernels(p, [&](const Kernel& kernel) {
    OneCall call(p);
    call.fill_a(-1), call.set_a(0, 0, 256), call.set_a(0, 1, 1);
    for (int64_t n = 0; n < p.n; ++n) {
      const int64_t high = n / 128, low = n % 128;
      call.set_b(0, n, double(high)), call.set_b(1, n, double(2 * low));
    }
    call.run(kernel);
    char expected[2];
    for (int64_t n = 0; n < p.n; ++n) {
      const int64_t high = n / 128, low = n % 128;
      encode(Type::bf16, double(256 * high + 2 * low), expected, 0);
      ASSERT_EQ(call.at(0, n), decoded(Type::bf16, expected, 0)) << n;
    }
  });
}

/// The conversion of AVX512-BF16 makes zeros of them, which docs/numerics.md says of its kernels.
TEST(DotSpecial, SubnormalBf16Results) {
  Gemm p = of_types({Type::bf16, Type::bf16, Type::bf16});
  p.m = 3, p.n = 53, p.k = 5, p.layout = Layout::nt;
  with_kernels(p, [&](const Kernel& kernel) {
    OneCall call(p);
    call.fill_a(1), call.fill_b(1), call.set_a(1, 0, -4);
    call.run(kernel, 0x1p-130);
    const bool flushes = kernel.choice.config["dot"] >= int64_t(DotKind::bf16);
    EXPECT_EQ(call.at(0, 0), flushes ? 0 : 5 * 0x1p-130);
    EXPECT_EQ(call.at(2, p.n - 1), flushes ? 0 : 5 * 0x1p-130);
    EXPECT_EQ(call.at(1, 0), 0); // -4 + 4
    call.run(kernel, 0x1p-120);
    EXPECT_EQ(call.at(2, p.n - 1), 5 * 0x1p-120);
  });
}

struct NarrowFunction {
  EpilogueOp op;
  long double (*exact)(long double);
};
constexpr long double kTwiceRoot = 1.595769121605730711759784239738127473L; // 2 sqrt(2 / pi)
const NarrowFunction kNarrow[] = {
    {EpilogueOp::gelu, [](long double x) { return x / 2 * std::erfc(-x * std::sqrt(0.5L)); }},
    {EpilogueOp::gelu_tanh,
     [](long double x) { return x / (1 + std::exp(-kTwiceRoot * (x + 0.044715L * x * x * x))); }},
    {EpilogueOp::silu, [](long double x) { return x / (1 + std::exp(-x)); }},
    {EpilogueOp::sigmoid, [](long double x) { return 1 / (1 + std::exp(-x)); }}};

class NarrowFunctions : public testing::TestWithParam<Type> {};

/// Of all numbers of the type: half a unit in the last place, and an eighth of that more. docs/numerics.md
/// has the bounds.
TEST_P(NarrowFunctions, AreAccurateForEveryNumber) {
  const Type type = GetParam();
  const bool brain = type == Type::bf16;
  const long double u = brain ? 0x1p-8L : 0x1p-11L, least = brain ? 0x1p-126L : 0x1p-24L;
  for (const NarrowFunction& f : kNarrow) {
    Gemm p = of_types({type, type, type});
    p.m = 1, p.n = 65536, p.k = 1, p.layout = Layout::nt, p.epilogue = {f.op};
    with_kernels(
        p,
        [&](const Kernel& kernel) {
          OneCall call(p);
          call.fill_a(1);
          for (int64_t n = 0; n < p.n; ++n) call.set_bits_b(n, uint16_t(n));
          call.run(kernel);
          const bool flushes = kernel.choice.config["dot"] >= int64_t(DotKind::bf16);
          for (int64_t n = 0; n < p.n; ++n) {
            const double x = call.b_at(n), d = call.at(0, n);
            if (std::isnan(x) || (std::isinf(x) && x < 0 && f.op != EpilogueOp::sigmoid)) {
              ASSERT_TRUE(std::isnan(d)) << to_string(f.op) << "(" << x << ") = " << d;
              continue;
            }
            if (std::isinf(x)) {
              ASSERT_EQ(d, x < 0                         ? 0
                           : f.op == EpilogueOp::sigmoid ? 1
                                                         : x)
                  << to_string(f.op) << "(" << x << ")";
              continue;
            }
            const long double exact = f.exact(x), tiny = flushes || !brain ? least : 0x1p-133L;
            // An exponential below 2^-126 is 0.
            const long double bound =
                1.125L * u * std::fabs(exact) + tiny + 0x1p-125L * std::fabs((long double)x);
            ASSERT_LE(std::fabs(d - exact), bound) << to_string(f.op) << "(" << x << ") = " << d;
          }
        },
        1);
  }
}
INSTANTIATE_TEST_SUITE_P(Types, NarrowFunctions, testing::Values(Type::bf16, Type::f16));

/// Whatever the types and the level, some config is legal, and fallbacks serve every x86-64.
TEST(DotSpace, IsNeverEmptyAndHasFallbacks) {
  Rng rng(19);
  for (size_t i = 0; i < 60; ++i) {
    Gemm p = random_dot(rng, i);
    if (i % 3 == 0) p.m = pick(rng, {1, 2, 1000, 4097});
    if (i % 3 == 1) p.n = pick(rng, {1, 2, 1000, 4097});
    if (i % 5 == 0) p.k = pick(rng, {1, 2, 1000, 9001});
    for (int64_t isa : {int64_t(1), int64_t(3), 3 | isa_avxvnni, int64_t(4),
                        4 | isa_avx512vnni | isa_avx512bf16, 4 | isa_amx, 4 | isa_amx | isa_avx512bf16}) {
      const Device device = device_of_isa(isa);
      const Space space(p, "cpu", device);
      ASSERT_GT(space.size(), 0u) << p.key() << " at " << isa_text(isa);
      const Choice first = space.default_choice();
      EXPECT_EQ(why_illegal(p, "cpu", device, first), "") << p.key();
      const std::vector<Choice> others = find_template(first.template_name).fallbacks(p, "cpu", first.config);
      const Choice& last = others.empty() ? first : others.back();
      EXPECT_EQ(last.config["isa"], 1) << p.key() << " at " << isa_text(isa);
    }
  }
}

} // namespace
} // namespace deepgen::dot_test
