#include "base/problem/problem.h"

#include "base/files/files.h"
#include "base/problem/packed_b.h"
#include "base/problem/signature.h"
#include "base/text/error.h"
#include "tests/paths.h"

#include <cstdlib>
#include <filesystem>
#include <gtest/gtest.h>
#include <random>
#include <set>
#include <sstream>
#include <unistd.h>

namespace deepgen::problem_test {
namespace {

std::string error_of(const std::string& key) {
  try {
    Problem::parse(key);
  } catch (const Error& e) {
    return e.what();
  }
  return "";
}

TEST(Problem, KeyIsCanonical) {
  Gemm p;
  p.m = 512, p.n = 2048, p.k = 512;
  p.layout = Layout::nt;
  p.epilogue = {EpilogueOp::bias, EpilogueOp::gelu};
  EXPECT_EQ(p.key(),
            "gemm m=512 n=2048 k=512 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nt epilogue=bias+gelu align=4");
}

TEST(Problem, RandomKeysRoundTrip) {
  std::mt19937 random(1);
  const std::vector<std::vector<EpilogueOp>> epilogues = {{},
                                                          {EpilogueOp::bias},
                                                          {EpilogueOp::relu},
                                                          {EpilogueOp::bias, EpilogueOp::silu},
                                                          {EpilogueOp::gelu, EpilogueOp::bias}};
  for (int i = 0; i < 500; ++i) {
    Gemm p;
    for (int64_t* size : {&p.m, &p.n, &p.k, &p.batch}) *size = 1 + int64_t(random() % (1 << (random() % 20)));
    if (random() % 2) p.a = p.b = p.d = p.accumulate = Type::f64, p.align = 8;
    p.layout = Layout(random() % 4);
    p.epilogue = epilogues[random() % epilogues.size()];
    if (random() % 2) p.gate = random() % 2 ? EpilogueOp::silu : EpilogueOp::gelu_tanh;
    if (p.batch == 1 && !p.a_transposed()) p.groups = int64_t(random() % 9);
    if (!p.groups && random() % 2) p.threads = 1 + int64_t(random() % 1024);
    const Problem parsed = Problem::parse(p.key());
    EXPECT_EQ(parsed.gemm(), p);
    EXPECT_EQ(parsed, p);
    EXPECT_EQ(parsed.key(), p.key());
  }
}

TEST(Problem, StoredShapesFollowTheLayout) {
  Gemm p;
  p.m = 2, p.n = 3, p.k = 5;
  p.layout = Layout::tt;
  EXPECT_EQ(p.a_rows(), 5);
  EXPECT_EQ(p.a_columns(), 2);
  EXPECT_EQ(p.b_rows(), 3);
  EXPECT_EQ(p.b_columns(), 5);
  EXPECT_EQ(p.flops(), 60);
}

TEST(Problem, AGateDoublesB) {
  const std::string key =
      "gemm m=2 n=3 k=5 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt gate=silu epilogue=bias align=2";
  Gemm p = Gemm::parse(key);
  EXPECT_EQ(p.key(), key);
  EXPECT_EQ(p.gate, EpilogueOp::silu);
  EXPECT_EQ(p.b_rows(), 6);
  EXPECT_EQ(p.b_columns(), 5);
  EXPECT_EQ(p.flops(), 120);
  EXPECT_EQ(p.ungated().n, 6);
  EXPECT_FALSE(p.ungated().gate);
  EXPECT_EQ(p.ungated().ungated(), p.ungated());
  p.layout = Layout::nn;
  EXPECT_EQ(p.b_rows(), 5);
  EXPECT_EQ(p.b_columns(), 6);
}

TEST(Problem, GroupsHaveMatricesOfB) {
  const std::string key = "gemm m=70 n=3 k=5 batch=1 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt groups=8 "
                          "gate=silu epilogue=bias align=2";
  const Gemm p = Gemm::parse(key);
  EXPECT_EQ(p.key(), key);
  EXPECT_EQ(p.groups, 8);
  EXPECT_EQ(p.b_matrices(), 8);
  EXPECT_EQ(p.group_rows(), 9);
  EXPECT_EQ(
      p.as_batch().key(),
      "gemm m=9 n=3 k=5 batch=8 a=bf16 b=bf16 d=bf16 acc=f32 layout=nt gate=silu epilogue=bias align=2");
  EXPECT_EQ(p.as_batch().as_batch(), p.as_batch());
}

TEST(Problem, BadGroupsSayWhy) {
  const auto with = [](const std::string& batch, const std::string& layout, const std::string& groups) {
    return error_of("gemm m=9 n=1 k=1 batch=" + batch + " a=f32 b=f32 d=f32 acc=f32 layout=" + layout +
                    " groups=" + groups + " epilogue=none align=4");
  };
  EXPECT_EQ(with("1", "nn", "1024"), "");
  EXPECT_NE(with("1", "nn", "1025").find("1 to 1024"), std::string::npos);
  EXPECT_NE(with("1", "nn", "0"), "");
  EXPECT_NE(with("1", "nn", "-1").find("1 to 1024"), std::string::npos);
  EXPECT_NE(with("2", "nt", "4").find("batch=1"), std::string::npos);
  EXPECT_NE(with("1", "tn", "4").find("nn or nt"), std::string::npos);
}

TEST(Problem, BadGatesSayWhy) {
  const std::string types = "gemm m=1 n=1 k=1 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nn ";
  EXPECT_EQ(error_of(types + "gate=relu epilogue=scale_row align=4"), "");
  EXPECT_NE(error_of(types + "gate=clamp epilogue=none align=4").find("silu, gelu, gelu_tanh, sigmoid, relu"),
            std::string::npos);
  EXPECT_NE(error_of(types + "gate=swish epilogue=none align=4").find("'swish'"), std::string::npos);
  const std::string of_tanh = error_of(types + "gate=tanh epilogue=none align=4");
  EXPECT_NE(of_tanh.find("use one of: silu, gelu, gelu_tanh, sigmoid, relu"), std::string::npos) << of_tanh;
  EXPECT_EQ(of_tanh.find("bias"), std::string::npos) << "an epilogue's steps are no gates";
  EXPECT_NE(error_of(types + "gate=silu epilogue=scale_b align=4").find("alpha"), std::string::npos);
  EXPECT_NE(error_of(types + "epilogue=none gate=silu align=4"), "");
  EXPECT_NE(
      error_of("gemm m=1 n=1 k=1 batch=1 a=i8 b=i8 d=i32 acc=i32 layout=nn gate=silu epilogue=none align=1")
          .find("D is i32"),
      std::string::npos);
  EXPECT_NE(
      error_of(
          "gemm m=1 n=1073741825 k=1 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nn gate=silu epilogue=none "
          "align=4")
          .find("2^30"),
      std::string::npos);
}

TEST(Problem, BadKeysNameTheField) {
  const std::string good = Problem().key();
  auto replaced = [&](const std::string& from, const std::string& to) {
    std::string key = good;
    return key.replace(key.find(from), from.size(), to);
  };
  EXPECT_EQ(error_of(good), "");
  EXPECT_NE(error_of(replaced("m=1", "m=0")).find("m = 0"), std::string::npos);
  EXPECT_NE(error_of(replaced("m=1", "m=x")).find("'x' is not an integer"), std::string::npos);
  EXPECT_NE(error_of(replaced("m=1", "m=01")).find("canonical"), std::string::npos);
  EXPECT_NE(error_of(replaced("layout=nn", "layout=xx")).find("nn, nt, tn, tt"), std::string::npos);
  EXPECT_NE(error_of(replaced("epilogue=none", "epilogue=relu+relu")).find("twice"), std::string::npos);
  EXPECT_NE(error_of(replaced(" a=f32", " a=f64")).find("a=f64 b=f32 d=f32"), std::string::npos);
  EXPECT_NE(error_of(replaced("d=f32", "d=q7")).find("'q7'"), std::string::npos);
  EXPECT_NE(error_of(replaced(" k=1", "")).find("'k'"), std::string::npos);
  EXPECT_NE(error_of(good + " more=1").find("trailing"), std::string::npos);
  EXPECT_NE(error_of("conv m=1").find("unknown operator"), std::string::npos);
}

TEST(Problem, ThreadsHaveAKeyOfTheirOwn) {
  const std::string one =
      "gemm m=512 n=2048 k=512 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nt epilogue=bias ";
  EXPECT_EQ(Gemm::parse(one + "align=4").threads, 1);
  Gemm p = Gemm::parse(one + "threads=8 align=4");
  EXPECT_EQ(p.threads, 8);
  EXPECT_EQ(p.at(p.sizes()).threads, 8);
  EXPECT_NE(error_of(one + "threads=1 align=4").find("leave out threads=1"), std::string::npos);
  for (const char* out : {"0", "1025"})
    EXPECT_NE(error_of(one + "threads=" + out + " align=4").find("1 to 1024"), std::string::npos);
  EXPECT_NE(error_of(one + "align=4 threads=8"), "");
  p.m = 9, p.least[0] = 1;
  EXPECT_NE(error_of(p.key()).find("not served with a range"), std::string::npos);
  p.least[0].reset(), p.groups = 2;
  EXPECT_NE(error_of(p.key()).find("not served with groups"), std::string::npos);
}

TEST(Problem, PackedB) {
  const std::string key = "gemm m=1..9 n=5 k=7 batch=1 a=i8 b=i8 d=f32 acc=i32 layout=nt gate=silu packed=b "
                          "epilogue=bias align=1";
  const Gemm p = Gemm::parse(key);
  EXPECT_TRUE(p.packed_b);
  EXPECT_EQ(p.key(), key);
  EXPECT_TRUE(p.at({3, 5, 7, 1}).packed_b);
  EXPECT_TRUE(signature(p)[1].packed);
  EXPECT_EQ(packed_layout_text(p).size(), 16u);
  Gemm other = p;
  other.m = 100, other.layout = Layout::nn, other.epilogue.clear(), other.a = Type::u8;
  EXPECT_EQ(packed_layout_id(other), packed_layout_id(p)) << "the layout follows from B alone";
  for (const auto& change :
       {+[](Gemm& x) { x.n = 6; }, +[](Gemm& x) { x.k = 8; }, +[](Gemm& x) { x.batch = 2; },
        +[](Gemm& x) { x.gate.reset(); }, +[](Gemm& x) { x.b = Type::bf16; }}) {
    other = p, change(other);
    EXPECT_NE(packed_layout_id(other), packed_layout_id(p));
  }
  const auto columns = [](Type type, int64_t n, bool gated) {
    return deepgen::packed_layout(uint8_t(type), n, 7, 1, gated).columns;
  };
  EXPECT_EQ(columns(Type::f64, 16, false), 16);
  EXPECT_EQ(columns(Type::f64, 17, false), 32);
  EXPECT_EQ(columns(Type::f32, 16, true), 32) << "of both weights";
  EXPECT_EQ(columns(Type::f32, 17, true), 64);
  EXPECT_EQ(columns(Type::bf16, 1000, false), 32);
  const auto refused = [&](const std::string& from, const std::string& to) {
    std::string text = key;
    text.replace(text.find(from), from.size(), to);
    return error_of(text);
  };
  EXPECT_NE(refused("packed=b", "packed=a").find("packed"), std::string::npos);
  EXPECT_NE(refused("n=5", "n=1..5").find("which is a range"), std::string::npos);
  EXPECT_NE(refused("a=i8 b=i8", "a=e4m3 b=e4m3"), "");
  const std::string mixed = "gemm m=1 n=5 k=7 batch=1 a=f32 b=i8 d=f32 acc=f32 layout=nt ";
  EXPECT_EQ(error_of(mixed + "packed=b epilogue=scale_col align=1"), "");
  EXPECT_NE(error_of(mixed + "epilogue=scale_col align=1").find("PREPACKED"), std::string::npos);
  EXPECT_NE(error_of("gemm m=1 n=1099511627 k=2000 batch=1 a=f32 b=f32 d=f32 acc=f32 layout=nt packed=b "
                     "epilogue=none align=4")
                .find("2^40"),
            std::string::npos);
}

/// deepgen_add_gemm() composes keys and refuses types on its own, before there is a tool to ask.
TEST(Problem, AttentionIsReadAsItIsWritten) {
  const std::string key = "attention heads=32 kv_heads=8 head_dim=192 value_dim=128 q=bf16 kv=f16 out=f32 "
                          "mask=window queries=8192 keys=131072 options=varlen+lse+softcap+sink at_batch=2 "
                          "at_queries=512 at_keys=8192";
  const Problem p = Problem::parse(key);
  EXPECT_EQ(p.key(), key);
  EXPECT_EQ(p.op(), "attention");
  EXPECT_EQ(p.attention().group(), 4);
  EXPECT_FALSE(p.ranged());
  EXPECT_FALSE(p.attention().paged());
  const std::string paged = "attention heads=1 kv_heads=1 head_dim=8 value_dim=8 q=f16 kv=f16 out=f16 "
                            "mask=none queries=1 keys=131072 options=lse page=64 at_batch=1 at_queries=1 "
                            "at_keys=8192";
  EXPECT_EQ(Problem::parse(paged).key(), paged);
  EXPECT_EQ(Problem::parse(paged).attention().page_size, 64);
  Attention biased = Attention::parse("attention heads=2 kv_heads=1 head_dim=8 value_dim=8 q=f16 kv=f16 "
                                      "out=f16 mask=causal queries=9 keys=9 options=sink bias=f32 page=64 "
                                      "splits=8 at_batch=3 at_queries=2 at_keys=9");
  EXPECT_EQ(biased.bias, Type::f32);
  EXPECT_EQ(Attention::parse(biased.key()), biased);
  const double with = biased.bytes();
  biased.bias = Type::bf16;
  EXPECT_EQ(with - biased.bytes(), 2.0 * 2 * (8 + 9)); // of what the mask shows, once for all entries
  biased.bias.reset();
  EXPECT_EQ(with - biased.bytes(), 4.0 * 2 * (8 + 9));
  EXPECT_EQ(biased.key().find("bias"), std::string::npos);
  EXPECT_EQ(p.flops(), 2.0 * (192 + 128) * 32 * 2 * 512 * 8192);
  Attention causal = p.attention();
  causal.mask = AttentionMask::causal, causal.at_queries = 3, causal.at_keys = 5; // 3 + 4 + 5 pairs
  EXPECT_EQ(causal.flops(), 2.0 * (192 + 128) * 32 * 2 * 12);
  causal.at_queries = 5, causal.at_keys = 3; // the first two queries see none
  EXPECT_EQ(causal.flops(), 2.0 * (192 + 128) * 32 * 2 * 6);
  causal.mask = AttentionMask::causal_top_left; // 1 + 2 + 3 + 3 + 3
  EXPECT_EQ(causal.flops(), 2.0 * (192 + 128) * 32 * 2 * 12);
}

TEST(Problem, AttentionOfSeveralCallsIsReadAsItIsWritten) {
  const std::string begin =
      "attention heads=32 kv_heads=8 head_dim=128 value_dim=128 q=bf16 kv=bf16 out=bf16 "
      "mask=causal queries=8192 keys=131072 options=varlen splits=8 ";
  const std::string key = begin + "at=1x1x4096+1x2048x2048+8x1x4096+10x1x16";
  const Problem p = Problem::parse(key);
  EXPECT_EQ(p.key(), key);
  EXPECT_TRUE(p.ranged());
  const Attention& a = p.attention();
  EXPECT_EQ(a.calls,
            (std::vector<Sizes>{{1, 16, 1, 10}, {1, 4096, 1, 1}, {1, 4096, 1, 8}, {2048, 2048, 1, 1}}));
  EXPECT_EQ(a.at_queries, 2048) << "the largest";
  EXPECT_EQ(p.sizes(), (Sizes{8192, 131072, 1, most_attention_batch}));
  EXPECT_EQ(p.least(Size::batch), 1);
  EXPECT_EQ(p.least(Size::k), std::nullopt);
  EXPECT_TRUE(p.takes({8192, 0, 1, 65536}));
  EXPECT_FALSE(p.takes({8193, 1, 1, 1}));
  const Problem one = p.at({3, 77, 1, 2});
  EXPECT_FALSE(one.ranged());
  EXPECT_EQ(one.key(), begin + "at_batch=2 at_queries=3 at_keys=77") << "as if it were tuned for that alone";
  EXPECT_EQ(one.attention().calls, a.calls) << "which kernels may be split";
  EXPECT_THROW(p.at({0, 77, 1, 2}), Error);
  EXPECT_THROW(p.at({3, 131073, 1, 2}), Error);
  for (const auto& [wrong, why] : {std::pair("at=1x1x4096", "2 to 32"),
                                   {"at=1x1x4096+1x1x4096", "twice"},
                                   {"at=1x1x4096+1x8193x16", "beyond its sizes"},
                                   {"at=1x1x4096+0x1x16", "at_batch = 0"},
                                   {"at=8x1x4096+1x1x4096", "canonical"},
                                   {"at=1x1x4096+1x16", "is no call"},
                                   {"at=1x1x4096+1x1x", "is not an integer"},
                                   {"at=1x1x4096+", "is no call"},
                                   {"at=1x1x4096+1x1x16 at_batch=1", "trailing"}})
    EXPECT_NE(error_of(begin + wrong).find(why), std::string::npos)
        << wrong << ": " << error_of(begin + wrong);
  std::string many = begin + "at=1x1x1";
  for (int i = 2; i <= 33; ++i) many += "+" + std::to_string(i) + "x1x1";
  EXPECT_NE(error_of(many).find("2 to 32"), std::string::npos);
}

TEST(Problem, WrongAttentionSaysWhat) {
  const std::string good =
      "attention heads=4 kv_heads=2 head_dim=64 value_dim=64 q=f32 kv=f32 out=f32 mask=none "
      "queries=8 keys=9 options=none at_batch=1 at_queries=8 at_keys=9";
  EXPECT_EQ(error_of(good), "");
  const auto with = [&](const std::string& field, const std::string& other) {
    std::string text = good;
    return error_of(text.replace(text.find(field), field.size(), other));
  };
  EXPECT_NE(with("kv_heads=2", "kv_heads=3").find("no multiple of kv_heads"), std::string::npos);
  EXPECT_NE(with("head_dim=64", "head_dim=513").find("1 to 512"), std::string::npos);
  EXPECT_NE(with("kv=f32", "kv=e4m3").find("f32, f16 or bf16"), std::string::npos);
  EXPECT_NE(with("q=f32", "q=e4m3").find("may all be e4m3"), std::string::npos);
  EXPECT_EQ(with("q=f32 kv=f32", "q=e4m3 kv=e4m3"), "");
  EXPECT_NE(with("q=f32 kv=f32 out=f32", "q=e4m3 kv=e4m3 out=e4m3"), "");
  EXPECT_NE(with("at_queries=8", "at_queries=9").find("beyond its sizes"), std::string::npos);
  for (const char* page : {"0", "48", "2048", "-1", "x"})
    EXPECT_NE(with("options=none", "options=none page=" + std::string(page)), "") << page;
  EXPECT_NE(with("options=none", "options=none page=48").find("a power of two from 1 to 1024"),
            std::string::npos);
  EXPECT_EQ(with("options=none", "options=none page=64 splits=8"), "");
  for (const char* splits : {"0", "3", "128"})
    EXPECT_NE(with("options=none", "options=none splits=" + std::string(splits)).find("from 1 to 64"),
              std::string::npos)
        << splits;
  EXPECT_NE(with("options=none", "options=none splits=8 page=64"), "") << "another order";
  EXPECT_EQ(with("options=none", "options=none bias=bf16 page=64"), "");
  EXPECT_NE(with("options=none", "options=none bias=e4m3").find("f32, f16 or bf16 (BIAS)"),
            std::string::npos);
  EXPECT_NE(with("options=none", "options=none page=64 bias=f32"), "") << "another order";
  EXPECT_NE(with("mask=none", "mask=all"), "");
  EXPECT_NE(with("options=none", "options=lse+varlen"), ""); // another spelling
  EXPECT_NE(with("options=none", "options=lse+lse"), "");
  EXPECT_NE(with("keys=9 ", "keys=0 "), "");
}

TEST(Problem, CMakeComposesTheSameKeys) {
  const std::string file = testing::TempDir() + "problem_keys_" + std::to_string(getpid());
  const std::string command = DEEPGEN_CMAKE_COMMAND " -DSOURCE=" + std::string(paths::source) +
                              " -DOUTPUT=" + file + " -P " +
                              paths::in_source("tests/unit/problem_keys.cmake");
  ASSERT_EQ(std::system(command.c_str()), 0);
  std::set<std::string> composed, served, gates;
  size_t grouped = 0, packed = 0, of_two = 0, of_most = 0;
  auto types = [](const Gemm& p) { return to_string(p.a) + " " + to_string(p.b) + " " + to_string(p.d); };
  std::istringstream lines(read_file(file));
  std::filesystem::remove(file);
  std::set<std::string> rows, attention;
  for (std::string key; std::getline(lines, key);) {
    EXPECT_EQ(Problem::parse(key).key(), key);
    if (key.rfind("rows ", 0) == 0) {
      rows.insert(key);
      continue;
    }
    if (key.rfind("attention ", 0) == 0) {
      attention.insert(key);
      continue;
    }
    const Gemm p = Gemm::parse(key);
    EXPECT_EQ(p.epilogue.size(),
              p.gate || p.groups || p.packed_b || p.d == Type::i32 ? 0u : size_t(epilogue_op_count))
        << key;
    composed.insert(types(p));
    if (p.gate) gates.insert(to_string(*p.gate));
    grouped += p.groups == 8;
    packed += p.packed_b;
    of_two += p.threads == 2, of_most += p.threads == most_threads;
  }
  for (int a = 0; a <= int(Type::u8); ++a)
    for (int b = 0; b <= int(Type::u8); ++b)
      for (int d = 0; d <= int(Type::u8); ++d) {
        Gemm p;
        p.a = Type(a), p.b = Type(b), p.d = Type(d);
        p.packed_b = p.a == Type::f32 && p.b != Type::f32;
        complete(p);
        if (error_of(p.key()).empty()) served.insert(types(p));
      }
  EXPECT_GT(of_two, 0u);
  EXPECT_EQ(of_two, of_most);
  EXPECT_EQ(rows.size(), 3u * 5 * 4 * 2);
  EXPECT_EQ(attention.size(), 4u * 4 * 2 + 1);
  EXPECT_TRUE(std::any_of(attention.begin(), attention.end(),
                          [](const std::string& key) { return Problem::parse(key).ranged(); }));
  const auto has = [&](const std::string& field) {
    return std::any_of(attention.begin(), attention.end(),
                       [&](const std::string& key) { return key.find(field) != std::string::npos; });
  };
  EXPECT_TRUE(has(" window=16777216,-1 at_batch="));
  EXPECT_TRUE(has(" window=127,0 at=1x1x131072+"));
  EXPECT_EQ(composed, served);
  EXPECT_EQ(served.size(), 29u);
  EXPECT_GE(grouped, 10u);
  EXPECT_EQ(packed, 16u);
  EXPECT_EQ(gates, (std::set<std::string>{"silu", "gelu", "gelu_tanh", "sigmoid", "relu"}));
}

} // namespace
} // namespace deepgen::problem_test
